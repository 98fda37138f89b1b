package paybell

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FreshnessSeconds is the greatest difference between webhook-timestamp and this machine's clock. BodyBytesMax is the
// longest body that is read.
const FreshnessSeconds, BodyBytesMax = 300, 16 << 20

// Longer bodies are not tried with other settings: refusing a body must not cost more than sending it.
const triedBytesMax = 1 << 20

const levelsMax = 64

// Headers are hints that no signature covers: show them and log them, but decide nothing by them.
type Headers struct {
	Attempt, Command, OriginalTransactionID string
	OutOfOrder                              bool
}

// Received is an authentic IPN: Card or Settlement, the other is nil. Wire is the object as it was sent, with the fields
// that this version does not know.
type Received struct {
	Card           *CardIPN
	Settlement     *SettlementIPN
	Wire           map[string]any
	NotificationID string
	KeyID          string
	Headers        Headers
	ipn            object
}

// ID is the one by which you deduplicate.
func (received *Received) ID() string { return received.ipn["id"].(string) }

// IPN has the fields of Card or Settlement by the tables' names, to store or write them: those of the extended setting
// only if it is agreed.
func (received *Received) IPN() map[string]any { return received.ipn }

// Open opens a POST: the body is the bytes as received. Its error is an *Error, for anything else than an authentic,
// fresh IPN.
func Open(body []byte, headers http.Header, keys Source) (*Received, error) {
	return OpenAt(body, headers, keys, time.Now())
}

// OpenAt opens a POST by another clock.
func OpenAt(body []byte, headers http.Header, source Source, now time.Time) (received *Received, err error) {
	defer caught(&err)
	keys, named := source.Current(), headers.Get("paybell-key")
	throwIf(len(body) > BodyBytesMax, "too_large")
	checkSender(keys, body, headers, now)
	if received, err = keys.decrypted(body); err != nil {
		code := cmp.Or(mistakeOf(body), keys.explain(body, err.(*Error).Code))
		throwIf(code == "decryption" && named != "", code, fmt.Sprintf("The message names the version %.64q.", named))
		panic(newError(code))
	}
	received.NotificationID, received.KeyID = headers.Get("webhook-id"), cmp.Or(received.KeyID, named)
	received.Headers = Headers{headers.Get("paybell-attempt"), headers.Get("paybell-command"),
		headers.Get("paybell-original-transaction"), headers.Get("paybell-out-of-order") == "1"}
	text, _ := json.Marshal(received.ipn)
	if _, settles := received.ipn["settlementList"]; settles {
		return received, json.Unmarshal(text, &received.Settlement)
	}
	return received, json.Unmarshal(text, &received.Card)
}

var (
	idShape, timestampShape = regexp.MustCompile(`^[^.\s]{1,256}$`), regexp.MustCompile(`^[0-9]{1,12}$`)
	onlyData                = regexp.MustCompile(`^\s*\{\s*"data"\s*:\s*("[^"\\]*")\s*\}\s*$`)
)

// Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends.
func checkSender(keys *Keys, body []byte, headers http.Header, now time.Time) {
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		throwIf(headers.Values(name) == nil, "missing_headers")
	}
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	entries := strings.Split(headers.Get("webhook-signature"), " ")
	isShaped := idShape.MatchString(id) && timestampShape.MatchString(timestamp)
	matches := func(text []byte, kinds ...string) bool {
		return isShaped && slices.ContainsFunc(keys.all(kinds...), func(key version) bool {
			expected := []byte(signatureOf(key, id, timestamp, text))
			return slices.ContainsFunc(entries, func(entry string) bool { return hmac.Equal(expected, []byte(entry)) })
		})
	}
	if !matches(body, "webhookSecret") {
		code, isTried := mistakeOf(body), len(body) <= triedBytesMax
		throwIf(code != "", code)
		parsed := onlyData.ReplaceAll(body, []byte(`{"data":$1}`))
		throwIf(isTried && matches(parsed, "webhookSecret"), "rewritten_body")
		throwIf(isTried && matches(body, "encryptionKey", "signingKey"), "swapped_keys")
		panic(newError("webhook_signature"))
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	age := now.Unix() - seconds
	throwIf(max(age, -age) > FreshnessSeconds, "not_fresh", "It is", fmt.Sprint(age), "s old by this clock:")
}

func signatureOf(key version, id, timestamp string, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(hmacOf(key, id+"."+timestamp+"."+string(body)))
}

// The mistake that the body itself shows, whoever sent it.
func mistakeOf(body []byte) string {
	if len(body) == 0 {
		return "empty_body"
	}
	for start, code := range contract.Starts {
		if bytes.HasPrefix(bytes.TrimSpace(body[:min(64, len(body))]), []byte(start)) {
			return code
		}
	}
	return ""
}

// Other settings are tried: only for the holder of the webhook secret.
func (keys *Keys) explain(body []byte, code string) string {
	tries := contract.Tries["body"]
	if code == "signature" {
		tries = contract.Tries[code]
	}
	for _, try := range tries {
		if len(body) > triedBytesMax {
			break
		}
		_, err := keys.with(try).decrypted(body)
		if err == nil || err.(*Error).Code == "signature" && code != "signature" {
			return try.Code
		}
	}
	return code
}

func (keys *Keys) decrypted(body []byte) (received *Received, err error) {
	defer caught(&err)
	envelope, err := parse(body)
	data, isText := envelope["data"].(string)
	throwIf(err != nil || len(envelope) != 1 || !isText, "envelope")
	message, code := messageOf(keys.agreed, data), "unknown_key"
	for _, key := range keys.versions["encryptionKey"] {
		if message.isJWE() && key.id != "" && key.id != message.keyID {
			continue
		}
		// A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
		received, err := keys.verified(message, key)
		if err == nil {
			return received, nil
		}
		if found := err.(*Error).Code; found != "decryption" || code == "unknown_key" {
			code = found
		}
	}
	return nil, newError(code)
}

func (keys *Keys) verified(message message, key version) (received *Received, err error) {
	defer caught(&err)
	wire, err := parse(message.decrypt(key))
	if err != nil {
		return nil, err
	}
	checkTexts(wire, levelsMax)
	_, hasList := wire["settlementList"]
	_, hasQuantity := wire["saleQuantity"]
	kind := "card"
	if hasQuantity || wire["transaction_type"] == "SETTLE" && hasList {
		kind = "settlement"
	}
	isMissing := func(name string) bool { _, isThere := wire[name]; return !isThere }
	for _, fields := range contract.Settings["fields"] {
		table := contract.Tables[kind][fields]
		// With the whole IPN signed, one without these fields has the same signed string.
		if !slices.Contains(keys.agreed.Fields, fields) || slices.ContainsFunc(table.Added, isMissing) {
			continue
		}
		ipn := byTableNames(wire, table.Fields)
		signature, expected := strings.ToLower(ipn["signature"].(string)), keys.signatures(kind, fields, wire, ipn)
		if !slices.ContainsFunc(expected, func(one string) bool { return hmac.Equal([]byte(one), []byte(signature)) }) {
			continue
		}
		if scheme, isCard := ipn["cardScheme"].(string); isCard {
			ipn["cardScheme"] = strings.ToUpper(scheme)
		}
		return &Received{Wire: wire, ipn: ipn, KeyID: cmp.Or(key.id, message.keyID)}, nil
	}
	return nil, newError("signature")
}

// parse reads one JSON object in UTF-8, without duplicate keys and lone surrogates.
func parse(raw []byte) (read object, err error) {
	defer caught(&err)
	throwIf(!utf8.Valid(raw), "not_text")
	err = json.Unmarshal(raw, &read)
	throwIf(errors.Is(err, jsontext.ErrDuplicateName), "duplicate_key")
	throwIf(err != nil || read == nil, "not_json")
	return read, nil
}

// Section 2: all scalars are strings, those of unknown fields as well.
func checkTexts(value any, levels int) {
	var items iter.Seq[any]
	switch value := value.(type) {
	case string:
		return
	case object:
		items = maps.Values(value)
	case []any:
		items = slices.Values(value)
	default:
		panic(newError("wrong_type"))
	}
	throwIf(levels == 0, "not_json")
	for item := range items {
		checkTexts(item, levels-1)
	}
}

// The IPN's own signature by each signing key: section 5.1. The extended fields follow the agreed list, unless it names
// them. If the receiver accepts IPNs without them too, a list that names them skips them there.
func (keys *Keys) signatures(kind, fields string, wire, ipn object) (all []string) {
	table, signing := contract.Tables[kind][fields], keys.agreed.Signing
	agreed := map[string][]string{"card": signing.Card, "settlement": signing.Settlement}[kind]
	if agreed == nil {
		agreed = table.Signed
	}
	var pairs []string
	for at, name := range slices.Concat(agreed, table.Added) {
		value, isThere := ipn[name].(string)
		if isThere && (at < len(agreed) || !slices.Contains(agreed, name)) {
			pairs = append(pairs, name+"="+value)
		}
	}
	text := strings.Join(pairs, "&")
	if signing.Mode == "whole" {
		content := maps.Clone(wire)
		delete(content, "signature")
		whole, _ := json.Marshal(content)
		_ = (*jsontext.Value)(&whole).Canonicalize() // RFC 8785
		text = string(whole)
	}
	for _, key := range keys.versions["signingKey"] {
		all = append(all, hex.EncodeToString(hmacOf(key, text)))
	}
	return all
}

// byTableNames throws two_names and wrong_type. Missing fields are empty.
func byTableNames(given any, columns [][]string) object {
	wire, isObject := given.(object)
	throwIf(!isObject, "wrong_type")
	ipn := object{}
	for _, names := range columns {
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return wire[name] == nil })
		throwIf(len(found) > 1, "two_names")
		value := wire[append(found, names[0])[0]]
		text, isText := value.(string)
		rows, isList := value.([]any)
		if names[0] != "settlementList" {
			throwIf(value != nil && !isText, "wrong_type")
			ipn[names[0]] = text
			continue
		}
		throwIf(value != nil && !isList, "wrong_type")
		entries := make([]any, len(rows))
		for at, row := range rows {
			entries[at] = byTableNames(row, contract.Entry)
		}
		ipn[names[0]] = entries
	}
	return ipn
}
