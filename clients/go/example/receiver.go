// Command example stores each IPN once, as a file in the folder inbox: `PORT=8080 receiver paybell.json`.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"

	"paybell.example/go/paybell"
)

var fileName = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// A table with a unique key on the id, written with the rest of your work, is better.
func store(_ *http.Request, received *paybell.Received) error {
	if !fileName.MatchString(received.ID()) {
		return errors.New("the id is no file name")
	}
	file, err := os.CreateTemp("inbox", ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := cmp.Or(json.NewEncoder(file).Encode(received.IPN()), file.Sync(), file.Close()); err != nil {
		return err
	}
	err = os.Link(file.Name(), "inbox/"+received.ID()+".json") // of two at once, one fails
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

func main() {
	keys, err := paybell.OpenKeys(os.Args[1])
	if err = cmp.Or(err, os.MkdirAll("inbox", 0o700)); err != nil {
		log.Fatal(err)
	}
	http.Handle("/ipn", paybell.Handler(keys, store))
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8080"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s/ipn", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
