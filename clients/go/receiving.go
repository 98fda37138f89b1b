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

var (
	ciphers, encodings = []string{"aes-256-gcm", "aes-256-cbc", "jwe"}, []string{"base64", "base64url", "hex"}
	// extended first: it says more of the same IPN
	fieldSets, modes = []string{"extended", "specification"}, []string{"whole", "fields"}
)

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
		return nil, refused("too_large")
	}
	if err := checkHeaders(keys, body, headers, now); err != nil {
		return nil, err
	}
	received, code := openBody(body, keys)
	if code != "" {
		err := refused(cmp.Or(mistakeOf(body), explained(body, code, keys)))
		if named := headers.Get("paybell-key"); err.Code == "decryption" && named != "" {
			err.Finding = fmt.Sprintf("No encryptionKey decrypts it; the message names the version %.64q.", named)
		}
		return nil, err
	}
	received.NotificationID = headers.Get("webhook-id")
	received.KeyID = cmp.Or(received.KeyID, headers.Get("paybell-key"))
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
func checkHeaders(keys *Keys, body []byte, headers http.Header, now time.Time) error {
	id, timestamp, signature := headers.Get("webhook-id"), headers.Get("webhook-timestamp"), headers.Get("webhook-signature")
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		if headers.Values(name) == nil {
			return refused("missing_headers")
		}
	}
	isShaped := idShape.MatchString(id) && timestampShape.MatchString(timestamp)
	matches := func(text string, secrets []version) bool {
		return isShaped && slices.ContainsFunc(secrets, func(secret version) bool {
			mac := hmacOf(secret, id+"."+timestamp+"."+text)
			expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac))
			return slices.ContainsFunc(strings.Split(signature, " "), func(entry string) bool {
				return hmac.Equal(expected, []byte(entry))
			})
		})
	}
	if !matches(string(body), keys.webhook) {
		code := mistakeOf(body)
		if code == "" && len(body) <= triedBytesMax {
			data := onlyData.ReplaceAll(body, []byte(`{"data":$1}`))
			if matches(string(data), keys.webhook) {
				code = "rewritten_body"
			} else if matches(string(body), slices.Concat(keys.encryption, keys.signing)) {
				code = "swapped_keys"
			}
		}
		return refused(cmp.Or(code, "webhook_signature"))
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - seconds; age < -FreshnessSeconds || age > FreshnessSeconds {
		err := refused("not_fresh")
		err.Finding = fmt.Sprintf("webhook-timestamp is %d s old by this clock.", age)
		return err
	}
	return nil
}

func hmacOf(key version, text string) []byte {
	mac := hmac.New(sha256.New, key.bytes)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The mistake that the body itself shows, whoever sent it.
func mistakeOf(body []byte) string {
	start := string(bytes.TrimSpace(body[:min(64, len(body))]))
	switch {
	case len(body) == 0:
		return "empty_body"
	case strings.HasPrefix(start, "\x1f\x8b"):
		return "compressed_body"
	case strings.HasPrefix(start, "<"):
		return "html_body"
	case strings.HasPrefix(start, "[object "), strings.HasPrefix(start, `"`):
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
		_, code := openBody(body, &other)
		return code
	}
	if code == "signature" {
		others := slices.DeleteFunc(slices.Clone(fieldSets), func(set string) bool { return slices.Contains(keys.fields, set) })
		if gives(func(other *Keys) { other.fields = others }) == "" {
			return "wrong_fields"
		}
		for _, mode := range modes {
			if gives(func(other *Keys) { other.signed, other.fields = Signing{Mode: mode}, fieldSets }) == "" {
				return "wrong_signing"
			}
		}
		if gives(func(other *Keys) { other.signing = slices.Concat(keys.encryption, keys.webhook) }) == "" {
			return "swapped_keys"
		}
		return code
	}
	decrypts := func(change func(*Keys)) bool { return slices.Contains([]string{"", "signature"}, gives(change)) }
	for _, cipher := range ciphers {
		for _, encoding := range encodings {
			opens := decrypts(func(other *Keys) { other.cipher, other.encoding = cipher, encoding })
			if opens && cipher != keys.cipher {
				return "wrong_cipher"
			} else if opens && encoding != keys.encoding && cipher != "jwe" {
				return "wrong_encoding"
			}
		}
	}
	if decrypts(func(other *Keys) {
		other.encryption = nil
		for _, key := range slices.Concat(keys.signing, keys.webhook) {
			other.encryption = append(other.encryption, version{bytes: key.bytes})
		}
	}) {
		return "swapped_keys"
	}
	return code
}

func openBody(body []byte, keys *Keys) (*Received, string) {
	envelope, _, code := parse(body)
	data, isText := envelope["data"].(string)
	if code != "" || len(envelope) != 1 || !isText {
		return nil, "envelope"
	}
	message, code := takeApart(keys, data)
	if code != "" {
		return nil, code
	}
	code = "unknown_key"
	for _, one := range keys.encryption {
		if keys.cipher == "jwe" && one.id != "" && one.id != message.keyID {
			continue
		}
		if code == "unknown_key" {
			code = "decryption"
		}
		plain, isOpen := message.decrypt(one.bytes)
		if !isOpen {
			continue
		}
		// A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
		received, found := checkContent(keys, plain)
		if found == "" {
			received.KeyID = cmp.Or(one.id, message.keyID)
			return received, ""
		}
		code = found
	}
	return nil, code
}

// keyID is the id of the key where the message names it.
type sealed struct {
	isCBC                      bool
	keyID                      string
	iv, content, authenticated []byte
}

func takeApart(keys *Keys, data string) (*sealed, string) {
	if keys.cipher != "jwe" {
		raw, isRead := decode(data, keys.encoding)
		isCBC, ivBytes := keys.cipher == "aes-256-cbc", 12
		if isCBC {
			ivBytes = aes.BlockSize
		}
		if !isRead || len(raw) < ivBytes+16 || isCBC && len(raw)%aes.BlockSize != 0 {
			return nil, "encoding"
		}
		return &sealed{isCBC: isCBC, iv: raw[:ivBytes], content: raw[ivBytes:]}, ""
	}
	parts := strings.Split(data, ".")
	if len(parts) != 5 || parts[1] != "" {
		return nil, "encoding"
	}
	iv, isIV := decode(parts[2], "base64url")
	content, isContent := decode(parts[3], "base64url")
	tag, isTag := decode(parts[4], "base64url")
	if !isIV || !isContent || !isTag || len(iv) != 12 || len(tag) != 16 {
		return nil, "encoding"
	}
	text, _ := decode(parts[0], "base64url")
	header, _, code := parse(text)
	keyID, hasKid := header["kid"].(string)
	_, isZipped := header["zip"]
	_, isCritical := header["crit"]
	if code != "" || header["alg"] != "dir" || header["enc"] != "A256GCM" || !hasKid || isZipped || isCritical {
		return nil, "jwe_header"
	}
	return &sealed{keyID: keyID, iv: iv, content: append(content, tag...), authenticated: []byte(parts[0])}, ""
}

func (message *sealed) decrypt(key []byte) (plain []byte, isOpen bool) {
	block, _ := aes.NewCipher(key)
	if !message.isCBC {
		gcm, _ := cipher.NewGCM(block)
		plain, err := gcm.Open(nil, message.iv, message.content, message.authenticated)
		return plain, err == nil
	}
	plain = make([]byte, len(message.content))
	cipher.NewCBCDecrypter(block, message.iv).CryptBlocks(plain, message.content)
	padding := int(plain[len(plain)-1])
	isOpen = 0 < padding && padding <= aes.BlockSize && bytes.HasSuffix(plain, bytes.Repeat(plain[len(plain)-1:], padding))
	return plain[:max(0, len(plain)-padding)], isOpen
}

func checkContent(keys *Keys, plain []byte) (*Received, string) {
	wire, isTexts, code := parse(plain)
	if code != "" || !isTexts {
		return nil, cmp.Or(code, "wrong_type") // section 2: all scalars are strings, those of unknown fields as well
	}
	_, hasList := wire["settlementList"]
	_, hasQuantity := wire["saleQuantity"]
	settles := hasQuantity || wire["transaction_type"] == "SETTLE" && hasList
	for _, setting := range fieldSets {
		table, extended := tableOf(settles), setting == "extended"
		isMissing := func(name string) bool { return wire[name] == nil }
		// With the whole IPN signed, one without these fields has the same signed string.
		if !slices.Contains(keys.fields, setting) || extended && slices.ContainsFunc(table.Extended, isMissing) {
			continue
		}
		ipn, code := byTableNames(wire, table.Fields)
		if code != "" {
			return nil, code
		}
		for _, name := range table.Extended {
			if extended {
				text, isText := wire[name].(string)
				if ipn[name] = text; !isText {
					return nil, "wrong_type"
				}
			}
		}
		text, signature := signedText(keys.signed, settles, wire, ipn, extended), strings.ToLower(ipn["signature"].(string))
		if slices.ContainsFunc(keys.signing, func(key version) bool {
			return hmac.Equal([]byte(hex.EncodeToString(hmacOf(key, text))), []byte(signature))
		}) {
			if scheme, isCard := ipn["cardScheme"].(string); isCard {
				ipn["cardScheme"] = strings.ToUpper(scheme)
			}
			return &Received{Wire: wire, ipn: ipn}, ""
		}
	}
	return nil, "signature"
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
	added, list := tableOf(settles).Extended, signed.Card
	if settles {
		list = signed.Settlement
	}
	if list == nil {
		list = tableOf(settles).Signed
	}
	var pairs []string
	for at, name := range slices.Concat(list, added) {
		value, _ := ipn[name].(string)
		isNamed := at >= len(list) && slices.Contains(list, name)
		// A list for both kinds of IPN may name them: they are no part of the other kind.
		if !isNamed && (extended || !slices.Contains(added, name)) {
			pairs = append(pairs, name+"="+value)
		}
	}
	return strings.Join(pairs, "&")
}

func byTableNames(wire object, fields [][2]string) (ipn object, code string) {
	ipn = object{}
	for _, names := range fields {
		value, isThere := wire[names[0]]
		if second, isSecond := wire[names[1]]; isSecond && names[1] != "" {
			if isThere {
				return nil, "two_names"
			}
			value, isThere = second, true
		}
		text, isText := value.(string)
		rows, isList := value.([]any)
		if names[0] != "settlementList" {
			if ipn[names[0]] = text; isThere && !isText {
				return nil, "wrong_type"
			}
			continue
		}
		entries := make([]any, len(rows))
		for at, row := range rows {
			entry, isObject := row.(object)
			isList = isList && isObject
			if entries[at], code = byTableNames(entry, contract.Entry.Fields); code != "" {
				return nil, code
			}
		}
		if ipn[names[0]] = entries; isThere && !isList {
			return nil, "wrong_type"
		}
	}
	return ipn, ""
}

// A surrogate without the other half is group 1: Go would read U+FFFD in its place.
var surrogate = regexp.MustCompile(`(?i)\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f])|.)`)

// One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels. isTexts: all its scalars are
// strings.
func parse(raw []byte) (read object, isTexts bool, code string) {
	if !utf8.Valid(raw) {
		return nil, false, "not_text"
	}
	if !json.Valid(raw) {
		return nil, false, "not_json"
	}
	reader := reader{Decoder: json.NewDecoder(bytes.NewReader(raw)), isTexts: true}
	read, isObject := reader.value(0).(object)
	isLone := func(found [][]byte) bool { return found[1] != nil }
	switch {
	case reader.levels > levelsMax:
		code = "not_json"
	case reader.hasDuplicate:
		code = "duplicate_key"
	case !isObject, slices.ContainsFunc(surrogate.FindAllSubmatch(raw, -1), isLone):
		code = "not_json"
	}
	return read, reader.isTexts, code
}

type reader struct {
	*json.Decoder
	levels                int
	isTexts, hasDuplicate bool
}

// The next value of a text that is known to be JSON.
func (reader *reader) value(levels int) any {
	token, _ := reader.Token()
	_, isText := token.(string)
	open, isNested := token.(json.Delim)
	reader.isTexts = reader.isTexts && (isText || isNested)
	if !isNested {
		return token
	}
	reader.levels = max(reader.levels, levels+1)
	read, list := object{}, []any{}
	for reader.More() {
		if open == '[' {
			list = append(list, reader.value(levels+1))
			continue
		}
		key, _ := reader.Token()
		_, isThere := read[key.(string)]
		reader.hasDuplicate = reader.hasDuplicate || isThere
		read[key.(string)] = reader.value(levels + 1)
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
