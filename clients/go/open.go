package paybell

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FreshnessSeconds is the greatest difference between webhook-timestamp and this machine's clock. BodyBytesMax is the
// longest body that is read.
const FreshnessSeconds, BodyBytesMax = 300, 16 << 20

// Longer bodies are not tried with other settings: refusing a body must not cost more than sending it.
const triedBytesMax = 1 << 20

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
	keys := source.Current()
	refusedIf(len(body) > BodyBytesMax, "too_large")
	checkSender(keys, body, headers, now)
	named := headers.Get("paybell-key")
	if received, err = keys.decrypted(body); err != nil {
		code, finding := cmp.Or(mistakeOf(body), keys.explain(body, err.(*Error).Code)), ""
		if code == "decryption" && named != "" {
			finding = fmt.Sprintf("No encryptionKey decrypts it; the message names the version %.64q.", named)
		}
		panic(refused(code, finding))
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
		refusedIf(headers.Values(name) == nil, "missing_headers")
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
		switch {
		case code != "":
		case isTried && matches(onlyData.ReplaceAll(body, []byte(`{"data":$1}`)), "webhookSecret"):
			code = "rewritten_body"
		case isTried && matches(body, "encryptionKey", "signingKey"):
			code = "swapped_keys"
		default:
			code = "webhook_signature"
		}
		panic(refused(code, ""))
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - seconds; age < -FreshnessSeconds || age > FreshnessSeconds {
		panic(refused("not_fresh", fmt.Sprintf("webhook-timestamp is %d s old by this clock.", age)))
	}
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
	tries := contract.Tries.Body
	if code == "signature" {
		tries = contract.Tries.Signature
	}
	for _, try := range tries {
		if len(body) > triedBytesMax {
			break
		}
		other := &Keys{keys.agreed, maps.Clone(keys.versions)}
		other.agreed.Cipher = cmp.Or(try.Cipher, other.agreed.Cipher)
		other.agreed.Encoding = cmp.Or(try.Encoding, other.agreed.Encoding)
		if try.Fields != nil {
			other.agreed.Fields = try.Fields
		}
		if try.Signing.Mode != "" {
			other.agreed.Signing = try.Signing
		}
		for kind, others := range try.Keys {
			other.versions[kind] = nil
			for _, key := range keys.all(others...) {
				other.versions[kind] = append(other.versions[kind], version{bytes: key.bytes})
			}
		}
		_, err := other.decrypted(body)
		if err == nil || err.(*Error).Code == "signature" && code != "signature" {
			return try.Code
		}
	}
	return code
}

func (keys *Keys) decrypted(body []byte) (received *Received, err error) {
	defer caught(&err)
	envelope, _, err := parse(body)
	data, isText := envelope["data"].(string)
	refusedIf(err != nil || len(envelope) != 1 || !isText, "envelope")
	message, code := messageOf(keys.agreed, data), "unknown_key"
	for _, key := range keys.versions["encryptionKey"] {
		if message.keyID != "" && key.id != "" && key.id != message.keyID {
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
	return nil, refused(code, "")
}

func (keys *Keys) verified(message message, key version) (received *Received, err error) {
	defer caught(&err)
	wire, isTexts, err := parse(message.decrypt(key))
	if err != nil {
		return nil, err
	}
	refusedIf(!isTexts, "wrong_type") // section 2: all scalars are strings, those of unknown fields as well
	_, hasList := wire["settlementList"]
	_, hasQuantity := wire["saleQuantity"]
	settles := hasQuantity || wire["transaction_type"] == "SETTLE" && hasList
	isMissing := func(name string) bool { _, isThere := wire[name]; return !isThere }
	for _, fields := range contract.Settings.Fields {
		table := tableOf(settles, fields)
		// With the whole IPN signed, one without these fields has the same signed string.
		if !slices.Contains(keys.agreed.Fields, fields) || slices.ContainsFunc(table.Added, isMissing) {
			continue
		}
		ipn := byTableNames(wire, table.Fields)
		signature, expected := strings.ToLower(ipn["signature"].(string)), keys.signatures(settles, fields, wire, ipn)
		if !slices.ContainsFunc(expected, func(one string) bool { return hmac.Equal([]byte(one), []byte(signature)) }) {
			continue
		}
		if scheme, isCard := ipn["cardScheme"].(string); isCard {
			ipn["cardScheme"] = strings.ToUpper(scheme)
		}
		return &Received{Wire: wire, ipn: ipn, KeyID: cmp.Or(key.id, message.keyID)}, nil
	}
	return nil, refused("signature", "")
}

func tableOf(settles bool, fields string) table {
	if settles {
		return contract.Tables.Settlement[fields]
	}
	return contract.Tables.Card[fields]
}

// The IPN's own signature by each signing key: section 5.1. The extended fields follow the agreed list, unless it names
// them. If the receiver accepts IPNs without them too, a list that names them skips them there.
func (keys *Keys) signatures(settles bool, fields string, wire, ipn object) (all []string) {
	table, agreed := tableOf(settles, fields), keys.agreed.Signing.Card
	if settles {
		agreed = keys.agreed.Signing.Settlement
	}
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
	if keys.agreed.Signing.Mode == "whole" {
		content := maps.Clone(wire)
		delete(content, "signature")
		text = canonical(content)
	}
	for _, key := range keys.versions["signingKey"] {
		all = append(all, hex.EncodeToString(hmacOf(key, text)))
	}
	return all
}

func byTableNames(wire object, columns [][]string) object {
	ipn := object{}
	for _, names := range columns {
		var found []any
		for _, name := range names {
			if value, isThere := wire[name]; isThere {
				found = append(found, value)
			}
		}
		refusedIf(len(found) > 1, "two_names")
		if names[0] == "settlementList" {
			ipn[names[0]] = entriesOf(append(found, []any{})[0])
			continue
		}
		text, isText := append(found, "")[0].(string)
		refusedIf(!isText, "wrong_type")
		ipn[names[0]] = text
	}
	return ipn
}

func entriesOf(value any) []any {
	rows, isList := value.([]any)
	refusedIf(!isList, "wrong_type")
	entries := make([]any, len(rows))
	for at, row := range rows {
		entry, isObject := row.(object)
		refusedIf(!isObject, "wrong_type")
		entries[at] = byTableNames(entry, contract.Entry)
	}
	return entries
}
