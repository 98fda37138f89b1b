module paybell.example/go/paybell

go 1.23
