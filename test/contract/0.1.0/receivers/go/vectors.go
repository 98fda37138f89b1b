package main

import (
	"fmt"
	"net/http"
	"os"
	"reflect"
	"time"
)

// With --vectors, runs the test vectors instead of main. Nothing needs this file.
func init() {
	if len(os.Args) != 3 || os.Args[1] != "--vectors" {
		return
	}
	var all struct {
		Vectors []struct {
			Agreement
			Name, Body string
			Headers    map[string]string
			NowSeconds int64
			IPN        object
		}
	}
	readJSON(os.Args[2], &all)
	failed := 0
	for _, vector := range all.Vectors {
		headers := http.Header{}
		for name, value := range vector.Headers {
			headers.Set(name, value)
		}
		result := "ok  "
		found, _ := Verify(&vector.Agreement, []byte(vector.Body), headers, time.Unix(vector.NowSeconds, 0))
		if !reflect.DeepEqual(found, vector.IPN) {
			failed, result = failed+1, "FAIL"
		}
		fmt.Println(result, vector.Name)
	}
	os.Exit(min(failed, 1))
}
