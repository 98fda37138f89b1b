package paybell

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
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
	"unicode/utf16"
	"unicode/utf8"
)

// FreshnessSeconds is the greatest difference between webhook-timestamp and this machine's clock. BodyBytesMax is the
// longest body that is read.
const FreshnessSeconds, BodyBytesMax = 300, 16 << 20

// Longer bodies are not tried with other settings: refusing a body must not cost more than sending it.
const levelsMax, triedBytesMax = 64, 1 << 20

var ciphers, encodings = []string{"aes-256-gcm", "aes-256-cbc", "jwe"}, []string{"base64", "base64url", "hex"}

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
func (received *Received) ID() string {
	if received.Card != nil {
		return received.Card.ID
	}
	return received.Settlement.ID
}

// IPN has the fields of Card or Settlement by the tables' names, to store or write them: those of the extended setting
// only if it is agreed.
func (received *Received) IPN() map[string]any { return received.ipn }

type object = map[string]any

// Open opens a POST: the body is the bytes as received. Its error is an *Error, for anything else than an authentic,
// fresh IPN.
func Open(body []byte, headers http.Header, keys Source) (*Received, error) {
	return OpenAt(body, headers, keys, time.Now())
}

// OpenAt opens a POST by another clock.
func OpenAt(body []byte, headers http.Header, source Source, now time.Time) (*Received, error) {
	keys := source.Current()
	if len(body) > BodyBytesMax {
		return nil, refused("too_large", "")
	}
	if err := checkHeaders(keys, body, headers, now); err != nil {
		return nil, err
	}
	settles, ipn, wire, keyID, code := openBody(body, keys)
	if code != "" {
		code, finding := cmp.Or(mistakeOf(body), explained(body, code, keys)), ""
		if named := headers.Get("paybell-key"); code == "decryption" && named != "" {
			finding = fmt.Sprintf("No encryptionKey decrypts it; the message names the version %.64q.", named)
		}
		return nil, refused(code, finding)
	}
	hints := Headers{headers.Get("paybell-attempt"), headers.Get("paybell-command"),
		headers.Get("paybell-original-transaction"), headers.Get("paybell-out-of-order") == "1"}
	received := &Received{ipn: ipn, Wire: wire, NotificationID: headers.Get("webhook-id"), Headers: hints}
	received.KeyID = cmp.Or(keyID, headers.Get("paybell-key"))
	text, _ := json.Marshal(ipn)
	if settles {
		return received, json.Unmarshal(text, &received.Settlement)
	}
	return received, json.Unmarshal(text, &received.Card)
}

var (
	idShape, timestampShape = regexp.MustCompile(`^[^.\s]{1,256}$`), regexp.MustCompile(`^[0-9]{1,12}$`)
	onlyData                = regexp.MustCompile(`^\s*\{\s*"data"\s*:\s*("[^"\\]*")\s*\}\s*$`)
)

// Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends.
func checkHeaders(keys *Keys, body []byte, headers http.Header, now time.Time) error {
	id, timestamp, signature := headers.Values("webhook-id"), headers.Values("webhook-timestamp"), headers.Values("webhook-signature")
	if id == nil || timestamp == nil || signature == nil {
		return refused("missing_headers", "")
	}
	isShaped := idShape.MatchString(id[0]) && timestampShape.MatchString(timestamp[0])
	matches := func(text []byte, secrets [][]byte) bool {
		return isShaped && slices.ContainsFunc(secrets, func(secret []byte) bool {
			mac := hmacOf(secret, id[0]+"."+timestamp[0]+"."+string(text))
			expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac))
			return slices.ContainsFunc(strings.Split(signature[0], " "), func(entry string) bool {
				return hmac.Equal(expected, []byte(entry))
			})
		})
	}
	if !matches(body, keys.webhook) {
		code := mistakeOf(body)
		if code == "" && len(body) <= triedBytesMax {
			if found := onlyData.FindSubmatch(body); found != nil && matches(slices.Concat([]byte(`{"data":`), found[1], []byte("}")), keys.webhook) {
				code = "rewritten_body"
			} else if matches(body, append(encryptionBytes(keys), keys.signing...)) {
				code = "swapped_keys"
			}
		}
		return refused(cmp.Or(code, "webhook_signature"), "")
	}
	seconds, _ := strconv.ParseInt(timestamp[0], 10, 64)
	if age := now.Unix() - seconds; age < -FreshnessSeconds || age > FreshnessSeconds {
		return refused("not_fresh", fmt.Sprintf("webhook-timestamp is %d s old by this clock.", age))
	}
	return nil
}

func encryptionBytes(keys *Keys) (all [][]byte) {
	for _, one := range keys.encryption {
		all = append(all, one.key)
	}
	return all
}

func hmacOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The mistake that the body itself shows, whoever sent it.
func mistakeOf(body []byte) string {
	start := bytes.TrimSpace(body[:min(64, len(body))])
	has := func(prefix string) bool { return bytes.HasPrefix(start, []byte(prefix)) }
	switch {
	case len(body) == 0:
		return "empty_body"
	case has("\x1f\x8b"):
		return "compressed_body"
	case has("<"):
		return "html_body"
	case has("[object "), has(`"`):
		return "stringified_body"
	}
	return ""
}

// Other settings are tried: only for the holder of the webhook secret.
func explained(body []byte, code string, keys *Keys) string {
	if len(body) > triedBytesMax {
		return code
	}
	gives := func(change func(*Keys)) string {
		other := *keys
		change(&other)
		_, _, _, _, code := openBody(body, &other)
		return code
	}
	if code == "signature" {
		for _, mode := range []string{"whole", "fields"} {
			if gives(func(other *Keys) {
				other.signed, other.fields = Signing{Mode: mode}, []string{"specification", "extended"}
			}) == "" {
				return "wrong_signing"
			}
		}
		if gives(func(other *Keys) { other.signing = append(encryptionBytes(keys), keys.webhook...) }) == "" {
			return "swapped_keys"
		}
		return code
	}
	for _, cipher := range ciphers {
		for _, encoding := range encodings {
			got := gives(func(other *Keys) { other.cipher, other.encoding = cipher, encoding })
			switch opens := got == "" || got == "signature"; {
			case opens && cipher != keys.cipher:
				return "wrong_cipher"
			case opens && encoding != keys.encoding && cipher != "jwe":
				return "wrong_encoding"
			}
		}
	}
	got := gives(func(other *Keys) {
		other.encryption = nil
		for _, key := range slices.Concat(keys.signing, keys.webhook) {
			other.encryption = append(other.encryption, version{"", key})
		}
	})
	if got == "" || got == "signature" {
		return "swapped_keys"
	}
	return code
}

func openBody(body []byte, keys *Keys) (settles bool, ipn, wire object, keyID, code string) {
	envelope, code := parse(body)
	data, isText := envelope["data"].(string)
	if code != "" || len(envelope) != 1 || !isText {
		return false, nil, nil, "", "envelope"
	}
	named, iv, sealed, authenticated, code := takeApart(keys, data)
	if code != "" {
		return false, nil, nil, "", code
	}
	code = "unknown_key"
	for _, one := range keys.encryption {
		if keys.cipher == "jwe" && one.id != "" && one.id != named {
			continue
		}
		if code == "unknown_key" {
			code = "decryption"
		}
		plain, isOpen := decrypt(keys.cipher, one.key, iv, sealed, authenticated)
		if !isOpen {
			continue
		}
		// A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
		settles, ipn, wire, found := checkContent(keys, plain)
		if found == "" {
			return settles, ipn, wire, cmp.Or(one.id, named), ""
		}
		code = found
	}
	return false, nil, nil, "", code
}

// The id of the key where the message names it, the IV, the ciphertext, the additional authenticated data.
func takeApart(keys *Keys, data string) (named string, iv, sealed, authenticated []byte, code string) {
	if keys.cipher != "jwe" {
		raw, isRead := decode(data, keys.encoding)
		ivBytes, least := 12, 28
		if keys.cipher == "aes-256-cbc" {
			ivBytes, least = aes.BlockSize, 2*aes.BlockSize
			isRead = isRead && len(raw)%aes.BlockSize == 0
		}
		if !isRead || len(raw) < least {
			return "", nil, nil, nil, "encoding"
		}
		return "", raw[:ivBytes], raw[ivBytes:], nil, ""
	}
	parts := strings.Split(data, ".")
	if len(parts) != 5 || parts[1] != "" {
		return "", nil, nil, nil, "encoding"
	}
	iv, isIV := decode(parts[2], "base64url")
	content, isContent := decode(parts[3], "base64url")
	tag, isTag := decode(parts[4], "base64url")
	if !isIV || !isContent || !isTag || len(iv) != 12 || len(tag) != 16 {
		return "", nil, nil, nil, "encoding"
	}
	text, _ := decode(parts[0], "base64url")
	header, code := parse(text)
	named, hasKid := header["kid"].(string)
	_, isZipped := header["zip"]
	_, isCritical := header["crit"]
	if code != "" || header["alg"] != "dir" || header["enc"] != "A256GCM" || !hasKid || isZipped || isCritical {
		return "", nil, nil, nil, "jwe_header"
	}
	return named, iv, append(content, tag...), []byte(parts[0]), ""
}

func decrypt(name string, key, iv, sealed, authenticated []byte) ([]byte, bool) {
	block, _ := aes.NewCipher(key)
	if name != "aes-256-cbc" {
		gcm, _ := cipher.NewGCM(block)
		plain, err := gcm.Open(nil, iv, sealed, authenticated)
		return plain, err == nil
	}
	plain := make([]byte, len(sealed))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, sealed)
	padding := plain[len(plain)-1]
	isPadded := 0 < padding && padding <= aes.BlockSize &&
		bytes.HasSuffix(plain, bytes.Repeat([]byte{padding}, int(padding)))
	return plain[:len(plain)-min(int(padding), len(plain))], isPadded
}

func checkContent(keys *Keys, plain []byte) (settles bool, ipn, wire object, code string) {
	wire, code = parse(plain)
	if code != "" {
		return false, nil, nil, code
	}
	_, hasList := wire["settlementList"]
	_, hasQuantity := wire["saleQuantity"]
	settles = hasQuantity || wire["transaction_type"] == "SETTLE" && hasList
	if !textsOnly(wire) {
		return settles, nil, nil, "wrong_type"
	}
	for _, setting := range slices.Sorted(slices.Values(keys.fields)) { // extended first: it says more of the same IPN
		// With the whole IPN signed, one without these fields has the same signed string.
		isMissing := func(name string) bool { return wire[name] == nil }
		if setting == "extended" && slices.ContainsFunc(tableOf(settles).Extended, isMissing) {
			continue
		}
		ipn, code = byTableNames(wire, tableOf(settles), setting == "extended")
		if code != "" {
			return settles, nil, nil, code
		}
		text := signedText(keys.signed, settles, wire, ipn, setting == "extended")
		signature, _ := hex.DecodeString(ipn["signature"].(string))
		if slices.ContainsFunc(keys.signing, func(key []byte) bool { return hmac.Equal(hmacOf(key, text), signature) }) {
			if !settles {
				ipn["cardScheme"] = strings.ToUpper(ipn["cardScheme"].(string))
			}
			return settles, ipn, wire, ""
		}
	}
	return settles, nil, nil, "signature"
}

func tableOf(settles bool) table {
	if settles {
		return contract.Settlement
	}
	return contract.Card
}

// Section 5.1. The extended fields follow the agreed list, unless it names them.
func signedText(signed Signing, settles bool, wire, ipn object, extended bool) string {
	if signed.Mode == "whole" {
		content := maps.Clone(wire)
		delete(content, "signature")
		return canonical(content)
	}
	list := signed.Card
	if settles {
		list = signed.Settlement
	}
	if list == nil {
		list = tableOf(settles).Signed
	}
	names := slices.Clone(list)
	for _, name := range tableOf(settles).Extended {
		if extended && !slices.Contains(list, name) {
			names = append(names, name)
		}
	}
	// A list for both kinds of IPN may name them: they are no part of the other kind.
	names = slices.DeleteFunc(names, func(name string) bool {
		return !extended && slices.Contains(tableOf(settles).Extended, name)
	})
	for at, name := range names {
		value, _ := ipn[name].(string)
		names[at] = name + "=" + value
	}
	return strings.Join(names, "&")
}

func byTableNames(wire object, table table, extended bool) (ipn object, code string) {
	ipn = object{}
	fields := slices.Clone(table.Fields)
	for _, name := range table.Extended {
		if extended {
			fields = append(fields, [2]string{name, ""})
		}
	}
	for _, field := range fields {
		name, value := field[0], wire[field[0]]
		if second, isThere := wire[field[1]]; isThere && field[1] != "" {
			if value != nil {
				return nil, "two_names"
			}
			value = second
		}
		if name != "settlementList" {
			text, isText := value.(string)
			if !isText && value != nil {
				return nil, "wrong_type"
			}
			ipn[name] = text
			continue
		}
		list, isList := value.([]any)
		if !isList && value != nil {
			return nil, "wrong_type"
		}
		entries := make([]any, len(list))
		for at, item := range list {
			entry, isObject := item.(object)
			if !isObject {
				return nil, "wrong_type"
			}
			if entries[at], code = byTableNames(entry, contract.Entry, false); code != "" {
				return nil, code
			}
		}
		ipn[name] = entries
	}
	return ipn, ""
}

// Section 2: all scalars are strings. This applies to unknown fields as well.
func textsOnly(value any) bool {
	switch value := value.(type) {
	case string:
		return true
	case []any:
		return !slices.ContainsFunc(value, func(item any) bool { return !textsOnly(item) })
	case object:
		for _, item := range value {
			if !textsOnly(item) {
				return false
			}
		}
		return true
	}
	return false
}

// A surrogate without the other half is group 1: Go would read U+FFFD in its place.
var surrogate = regexp.MustCompile(`(?i)\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f])|.)`)

// One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels.
func parse(raw []byte) (object, string) {
	if !utf8.Valid(raw) {
		return nil, "not_text"
	}
	if !json.Valid(raw) {
		return nil, "not_json"
	}
	value, code := next(json.NewDecoder(bytes.NewReader(raw)), levelsMax)
	for _, found := range surrogate.FindAllSubmatchIndex(raw, -1) {
		if found[2] >= 0 && code == "" {
			code = "not_json"
		}
	}
	read, isObject := value.(object)
	if code == "" && !isObject {
		code = "not_json"
	}
	return read, code
}

// The text is known to be JSON. A nesting that is too deep counts before a duplicate key.
func next(decoder *json.Decoder, levels int) (any, string) {
	token, _ := decoder.Token()
	delimiter, isNested := token.(json.Delim)
	if !isNested {
		return token, ""
	}
	if levels == 0 {
		return nil, "not_json"
	}
	read, list, code := object{}, []any{}, ""
	for decoder.More() {
		name := ""
		if delimiter == '{' {
			key, _ := decoder.Token()
			name, _ = key.(string)
		}
		value, found := next(decoder, levels-1)
		if found == "not_json" {
			return nil, found
		}
		if _, isThere := read[name]; isThere && delimiter == '{' {
			found = "duplicate_key"
		}
		code = cmp.Or(code, found)
		if delimiter == '{' {
			read[name] = value
		} else {
			list = append(list, value)
		}
	}
	_, _ = decoder.Token()
	if delimiter == '{' {
		return read, code
	}
	return list, code
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
		names := slices.SortedFunc(maps.Keys(value), func(one, other string) int {
			return slices.Compare(utf16.Encode([]rune(one)), utf16.Encode([]rune(other)))
		})
		for _, name := range names {
			parts = append(parts, canonical(name)+":"+canonical(value[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return `"` + escapes.Replace(value.(string)) + `"`
}

// The bytes, if the text is exactly what an encoder writes: decoders accept line ends and stray bits.
func decode(text, encoding string) ([]byte, bool) {
	if encoding == "hex" {
		raw, err := hex.DecodeString(text)
		return raw, err == nil
	}
	raw, err := alphabet(encoding).DecodeString(text)
	return raw, err == nil && alphabet(encoding).EncodeToString(raw) == text
}

func alphabet(encoding string) *base64.Encoding {
	if encoding == "base64url" {
		return base64.RawURLEncoding
	}
	return base64.StdEncoding
}
