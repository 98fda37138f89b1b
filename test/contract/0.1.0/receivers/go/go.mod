module receiver

go 1.23
