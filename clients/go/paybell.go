// Package paybell receives the payment notifications (IPNs) of Paybell: it verifies who sent them, decrypts them,
// verifies their signature, and gives them typed.
package paybell

import (
	_ "embed"
	"strings"

	"github.com/go-json-experiment/json"
)

// Version is the one of Paybell that it was released with.
const Version = "0.1.0"

//go:embed contract.json
var contractJSON []byte

type object = map[string]any

// Fields are lists of the names that a field may have, the table's first. Signed is the list without another agreement;
// Added follows any other.
type table struct {
	Fields        [][]string
	Signed, Added []string
}

// try is another setting, and the code of the mistake if an IPN opens with it: with keys of these kinds in their place.
type try struct {
	Code     string
	Keys     map[string][]string
	Settings object `json:",embed"`
}

// contract has the tables of the specification, generated from Paybell's own code.
var contract = func() (read struct {
	Tables               map[string]map[string]table
	Entry                [][]string
	Defaults, SampleKeys object
	Settings             map[string][]string
	Errors               map[string]Error
	Starts               map[string]string
	Tries                map[string][]try
	Samples              map[string]struct {
		Headers map[string]string
		IPN     object
	}
}) {
	if err := json.Unmarshal(contractJSON, &read, json.MatchCaseInsensitiveNames(true)); err != nil {
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
	return strings.TrimSpace(err.Code + ": " + err.Finding + " " + err.Remedy)
}

// newError has the finding and the remedy of the table; what was seen goes before the finding.
func newError(code string, seen ...string) *Error {
	err := contract.Errors[code]
	err.Code, err.Finding = code, strings.TrimSpace(strings.Join(seen, " ")+" "+err.Finding)
	return &err
}

// Inside of the package an *Error is thrown, as in the parsers of the standard library.
func throwIf(isSo bool, code string, seen ...string) {
	if isSo {
		panic(newError(code, seen...))
	}
}

// caught is deferred by what returns the *Error.
func caught(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}
