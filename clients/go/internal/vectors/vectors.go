// Command vectors holds the package to test vectors: `vectors vectors.json`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"time"

	"paybell.example/go/paybell"
)

type vector struct {
	Name, Body, KeyID, Code string
	NowSeconds              int64
	Headers                 map[string]string
	IPN                     map[string]any
}

func isRight(one vector, text []byte) bool {
	keys, err := paybell.ParseKeys(text)
	if err != nil {
		log.Fatal(err)
	}
	headers := http.Header{}
	for name, value := range one.Headers {
		headers.Set(name, value)
	}
	received, err := paybell.OpenAt([]byte(one.Body), headers, keys, time.Unix(one.NowSeconds, 0))
	var refused *paybell.Error
	if errors.As(err, &refused) {
		if one.Code != "" && one.Code != refused.Code {
			fmt.Fprintf(os.Stderr, "%s instead of %s: %s\n", refused.Code, one.Code, one.Name)
			return false
		}
		return one.IPN == nil
	}
	var found map[string]any
	if written, _ := json.Marshal(received.IPN()); json.Unmarshal(written, &found) != nil {
		return false
	}
	return reflect.DeepEqual(found, one.IPN) && (one.KeyID == "" || one.KeyID == received.KeyID)
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		log.Fatal(err)
	}
	status := 0
	for _, text := range file.Vectors {
		var one vector
		if err := json.Unmarshal(text, &one); err != nil {
			log.Fatal(err)
		}
		result := "ok  "
		if !isRight(one, text) {
			result, status = "FAIL", 1
		}
		fmt.Println(result, one.Name)
	}
	os.Exit(status)
}
