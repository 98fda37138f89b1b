// Package paybell receives the payment notifications (IPNs) of Paybell: it verifies who sent them, decrypts them,
// verifies their signature, and gives them typed. It needs the standard library only.
package paybell

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

// Version is the one of Paybell that it was released with.
const Version = "0.1.0"

//go:embed contract.json
var contractJSON []byte

// Fields are lists of the names that a field may have, the table's first. Signed is the list without another agreement;
// Added follows any other.
type table struct {
	Fields        [][]string
	Signed, Added []string
}

// try is another setting, and the code of the mistake if an IPN opens with it: with keys of these kinds in their place.
type try struct {
	Code, Cipher, Encoding string
	Signing                Signing
	Fields                 []string
	Keys                   map[string][]string
}

// contract has the tables of the specification, generated from Paybell's own code.
var contract = func() (read struct {
	Tables     struct{ Card, Settlement map[string]table }
	Entry      [][]string
	Defaults   object
	Settings   struct{ Cipher, Encoding, Signing, Fields []string }
	SampleKeys object
	Errors     map[string]struct{ Finding, Remedy string }
	Starts     map[string]string
	Tries      struct{ Signature, Body []try }
	Samples    map[string]struct {
		Headers map[string]string
		IPN     object
	}
}) {
	if err := json.Unmarshal(contractJSON, &read); err != nil {
		panic(err)
	}
	return read
}()

type object = map[string]any

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
	return strings.TrimSpace(err.Code + ": " + err.Finding + " " + err.Remedy)
}

// finding: the table's if it is empty; of a key its kind, because the table has what is wrong with it.
func mistake(code, finding string) *Error {
	known := contract.Errors[code]
	if slices.Contains(kinds, finding) {
		finding += " " + known.Finding
	}
	return &Error{Code: code, Finding: cmp.Or(finding, known.Finding), Remedy: known.Remedy}
}

func refused(code, finding string) *Error {
	err := mistake(code, finding)
	err.Refused = true
	return err
}

// Inside of the package an *Error is thrown, as in the parsers of the standard library: these throw it if it is so.
func misusedIf(isSo bool, code, finding string) {
	if isSo {
		panic(mistake(code, finding))
	}
}

func refusedIf(isSo bool, code string) {
	if isSo {
		panic(refused(code, ""))
	}
}

// caught is deferred by what returns the *Error.
func caught(err *error) {
	if thrown := recover(); thrown != nil {
		found, isOwn := thrown.(*Error)
		if !isOwn {
			panic(thrown)
		}
		*err = found
	}
}
