package paybell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const levelsMax = 64

// A surrogate without the other half is group 1: Go would read U+FFFD in its place.
var surrogate = regexp.MustCompile(`(?i)\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f])|.)`)

// parse reads one JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels. isTexts: all its
// scalars are strings.
func parse(raw []byte) (read object, isTexts bool, err error) {
	defer caught(&err)
	isLone := func(found [][]byte) bool { return found[1] != nil }
	refusedIf(!utf8.Valid(raw), "not_text")
	refusedIf(!json.Valid(raw) || slices.ContainsFunc(surrogate.FindAllSubmatch(raw, -1), isLone), "not_json")
	reader := reader{json.NewDecoder(bytes.NewReader(raw)), true}
	read, isObject := reader.value(levelsMax).(object)
	refusedIf(!isObject, "not_json")
	return read, reader.isTexts, nil
}

type reader struct {
	*json.Decoder
	isTexts bool
}

// The next value of a text that is known to be JSON.
func (reader *reader) value(levels int) any {
	token, _ := reader.Token()
	open, isNested := token.(json.Delim)
	if !isNested {
		_, isText := token.(string)
		reader.isTexts = reader.isTexts && isText
		return token
	}
	refusedIf(levels == 0, "not_json")
	read, list := object{}, []any{}
	for reader.More() {
		if open == '[' {
			list = append(list, reader.value(levels-1))
			continue
		}
		key, _ := reader.Token()
		_, isThere := read[key.(string)]
		refusedIf(isThere, "duplicate_key")
		read[key.(string)] = reader.value(levels - 1)
	}
	_, _ = reader.Token()
	if open == '[' {
		return list
	}
	return read
}

var escapes = func() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`, "\b", `\b`, "\t", `\t`, "\n", `\n`, "\f", `\f`, "\r", `\r`}
	for control := range 0x20 {
		pairs = append(pairs, string(rune(control)), fmt.Sprintf(`\u%04x`, control))
	}
	return strings.NewReplacer(pairs...)
}()

// RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, nothing escaped needlessly.
func canonical(value any) string {
	var parts []string
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			parts = append(parts, canonical(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case object:
		for _, name := range slices.SortedFunc(maps.Keys(value), func(one, other string) int {
			return slices.Compare(utf16.Encode([]rune(one)), utf16.Encode([]rune(other)))
		}) {
			parts = append(parts, canonical(name)+":"+canonical(value[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return `"` + escapes.Replace(value.(string)) + `"`
}
