// Package paybell receives the payment notifications (IPNs) of Paybell: it verifies who sent them, decrypts them,
// verifies their signature, and gives them typed. It needs the standard library only.
package paybell

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// Version is the one of Paybell that it was released with.
const Version = "0.1.0"

//go:embed contract.json
var contractJSON []byte

type table struct {
	Fields           [][2]string
	Signed, Extended []string
}

// contract has the tables of the specification, generated from Paybell's own code.
var contract = func() (read struct {
	Card, Settlement, Entry table
	Errors                  map[string][2]string
	Samples                 map[string]struct {
		Command string
		IPN     map[string]any
	}
}) {
	if err := json.Unmarshal(contractJSON, &read); err != nil {
		panic(err)
	}
	return read
}()

// Error has one of the codes of Paybell's own partner library. Branch on Code; Finding and Remedy are for your log. None
// contains a key or decrypted content.
type Error struct {
	Code, Finding, Remedy string
	// Refused: the IPN is not authentic or not fresh. Answer each refusal in the same way.
	Refused bool
}

// Error is the same for every refusal: an answer that tells them apart helps a forger.
func (err *Error) Error() string {
	if err.Refused {
		return "the IPN is not authentic"
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", err.Code, err.Finding, err.Remedy))
}

func mistake(code, finding string) *Error {
	return &Error{Code: code, Finding: finding, Remedy: contract.Errors[code][1]}
}

func refused(code string) *Error {
	return &Error{Code: code, Finding: contract.Errors[code][0], Remedy: contract.Errors[code][1], Refused: true}
}
