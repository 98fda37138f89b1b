// Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.
//
//	go run . agreement.json                # listens on PORT, or 8080; stores in the folder inbox
//	go run . --vectors ../../vectors.json  # runs the test vectors (vectors.go)
package main

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
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const freshnessSeconds, bodyBytesMax = 300, 16 << 20

// The tables of the specification, section 2. After a slash: a second name of the field.
var (
	card = strings.Fields(`aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme
		currency deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName
		merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime
		transaction_type signature`)
	settlement = strings.Fields(`batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId
		saleQuantity saleTotalAmount status tid totalAmount transaction_time transaction_type voidQuantity
		voidTotalAmount settlementList signature`)
	entry      = []string{"reqId/reqID", "refNo"}
	cardSigned = strings.Fields(`aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid
		mid traceNo batchNo`)
	settlementSigned = strings.Fields(`batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount
		totalAmount tid mid`)
)

// Agreement is what was agreed with the operator: never taken from a message. Several keys are a rotation's versions.
type Agreement struct {
	Cipher, Encoding string
	Signing          struct {
		Mode             string
		Card, Settlement []string
	}
	EncryptionKeys []struct {
		ID  string // empty: matches any
		Key Key
	}
	SigningKeys, WebhookSecrets []Key
}

// Key is 32 bytes, written in base64, those of a webhook secret behind whsec_.
type Key []byte

func (key *Key) UnmarshalText(text []byte) (err error) {
	*key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(string(text), "whsec_"))
	if err == nil && len(*key) != 32 {
		return errors.New("each key is the base64 of 32 bytes")
	}
	return err
}

type object = map[string]any

// Refused says why a message is not authentic or not as agreed: for your log, never for the sender.
type Refused string

func (why Refused) Error() string { return string(why) }

// Within this file a refusal is a panic, as a parser's error is: attempt makes an error of it.
func require(isSo bool, otherwise string) {
	if !isSo {
		panic(Refused(otherwise))
	}
}

func attempt(read func() object) (ipn object, err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case Refused:
			err = why
		default:
			panic(why)
		}
	}()
	return read(), nil
}

// Verify gives the IPN by the tables' names, or a Refused. The body is the bytes as received.
func Verify(agreed *Agreement, body []byte, headers http.Header, now time.Time) (object, error) {
	return attempt(func() object {
		checkHeaders(agreed, body, headers, now)
		envelope := parse(body)
		data, isText := envelope["data"].(string)
		require(len(envelope) == 1 && isText, "the body is not {data}")
		named, iv, sealed, authenticated := takeApart(agreed, data)
		var refused error = Refused("no key has this kid")
		for _, one := range agreed.EncryptionKeys {
			if named != "" && one.ID != "" && one.ID != named {
				continue
			}
			// A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
			ipn, err := attempt(func() object {
				return checkContent(agreed, decrypt(agreed.Cipher, one.Key, iv, sealed, authenticated))
			})
			if err == nil {
				return ipn
			}
			refused = err
		}
		panic(refused)
	})
}

var idShape, timestampShape = regexp.MustCompile(`^[^.\s]{1,256}$`), regexp.MustCompile(`^[0-9]{1,12}$`)

// Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends.
func checkHeaders(agreed *Agreement, body []byte, headers http.Header, now time.Time) {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	require(idShape.MatchString(id) && timestampShape.MatchString(timestamp), "a webhook header is missing or malformed")
	entries := strings.Split(headers.Get("webhook-signature"), " ")
	require(slices.ContainsFunc(agreed.WebhookSecrets, func(secret Key) bool {
		mac := hmacOf(secret, id+"."+timestamp+"."+string(body))
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac))
		return slices.ContainsFunc(entries, func(entry string) bool { return hmac.Equal(expected, []byte(entry)) })
	}), "webhook-signature does not match the body")
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	age := now.Unix() - seconds
	require(-freshnessSeconds <= age && age <= freshnessSeconds, "webhook-timestamp is too far from this clock")
}

func hmacOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The id of the key where the message names it, the IV, the ciphertext, the additional authenticated data.
func takeApart(agreed *Agreement, data string) (named string, iv, sealed, authenticated []byte) {
	if agreed.Cipher != "jwe" {
		raw, ivBytes := decode(data, agreed.Encoding), 12
		if agreed.Cipher == "aes-256-cbc" {
			ivBytes = aes.BlockSize
		}
		require(len(raw) >= ivBytes, "data is too short")
		return "", raw[:ivBytes], raw[ivBytes:], nil
	}
	parts := strings.Split(data, ".")
	require(len(parts) == 5 && parts[1] == "", "the JWE does not have the five parts of dir")
	iv, tag := decode(parts[2], "base64url"), decode(parts[4], "base64url")
	header := parse(decode(parts[0], "base64url"))
	named, _ = header["kid"].(string)
	isUsual := header["alg"] == "dir" && header["enc"] == "A256GCM" && named != "" && len(iv) == 12 && len(tag) == 16
	require(isUsual && header["zip"] == nil && header["crit"] == nil, "the JWE is not as agreed")
	return named, iv, append(decode(parts[3], "base64url"), tag...), []byte(parts[0])
}

func decrypt(name string, key, iv, sealed, authenticated []byte) []byte {
	block, _ := aes.NewCipher(key)
	if name != "aes-256-cbc" {
		gcm, _ := cipher.NewGCM(block)
		plain, err := gcm.Open(nil, iv, sealed, authenticated)
		require(err == nil, "decryption failed")
		return plain
	}
	require(len(sealed) > 0 && len(sealed)%aes.BlockSize == 0, "not whole blocks")
	plain := make([]byte, len(sealed))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, sealed)
	padding := plain[len(plain)-1]
	isPadded := 0 < padding && padding <= aes.BlockSize
	require(isPadded && bytes.HasSuffix(plain, bytes.Repeat([]byte{padding}, int(padding))), "wrong padding")
	return plain[:len(plain)-int(padding)]
}

func checkContent(agreed *Agreement, plain []byte) object {
	wire := parse(plain)
	_, hasList := wire["settlementList"]
	_, hasQuantity := wire["saleQuantity"]
	settles := hasQuantity || wire["transaction_type"] == "SETTLE" && hasList
	table, usual, signed := card, cardSigned, agreed.Signing.Card
	if settles {
		table, usual, signed = settlement, settlementSigned, agreed.Signing.Settlement
	}
	if signed == nil {
		signed = usual
	}
	ipn := byTableNames(wire, table)
	pairs := make([]string, len(signed))
	for at, name := range signed {
		pairs[at] = name + "=" + ipn[name].(string)
	}
	text := strings.Join(pairs, "&")
	if agreed.Signing.Mode == "whole" {
		delete(wire, "signature")
		text = canonical(wire)
	}
	signature, err := hex.DecodeString(ipn["signature"].(string))
	require(err == nil && slices.ContainsFunc(agreed.SigningKeys, func(key Key) bool {
		return hmac.Equal(hmacOf(key, text), signature)
	}), "signature does not match the signed string")
	if !settles {
		ipn["cardScheme"] = strings.ToUpper(ipn["cardScheme"].(string))
	}
	return ipn
}

func byTableNames(wire object, table []string) object {
	ipn := object{}
	for _, field := range table {
		name, alias, hasAlias := strings.Cut(field, "/")
		value := wire[name]
		if second, isThere := wire[alias]; hasAlias && isThere {
			require(value == nil, name+" appears under two names")
			value = second
		}
		if name != "settlementList" {
			text, isText := value.(string)
			require(isText || value == nil, name+" is not a string")
			ipn[name] = text
			continue
		}
		list, isList := value.([]any)
		require(isList || value == nil, name+" is not a list")
		entries := make([]any, len(list))
		for at, item := range list {
			fields, isObject := item.(object)
			require(isObject, name+" is not a list of objects")
			entries[at] = byTableNames(fields, entry)
		}
		ipn[name] = entries
	}
	return ipn
}

// A surrogate without the other half is group 1: Go would read U+FFFD in its place.
var surrogate = regexp.MustCompile(`(?i)\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f])|.)`)

// One JSON object in UTF-8 whose scalars are strings, without duplicate keys or lone surrogates.
func parse(raw []byte) object {
	require(utf8.Valid(raw) && json.Valid(raw), "not JSON in UTF-8")
	for _, found := range surrogate.FindAllSubmatchIndex(raw, -1) {
		require(found[2] < 0, "a lone surrogate")
	}
	read, isObject := next(json.NewDecoder(bytes.NewReader(raw)), 64).(object)
	require(isObject, "not a JSON object")
	return read
}

func next(decoder *json.Decoder, levels int) any {
	token, _ := decoder.Token() // the text is known to be JSON
	if text, isText := token.(string); isText {
		return text
	}
	read, list := object{}, []any{}
	require(token == json.Delim('{') || token == json.Delim('['), "a value is not a string")
	require(levels > 0, "nested too deep")
	for decoder.More() {
		if token == json.Delim('[') {
			list = append(list, next(decoder, levels-1))
			continue
		}
		name, _ := next(decoder, 0).(string)
		_, isThere := read[name]
		require(!isThere, "a key appears twice")
		read[name] = next(decoder, levels-1)
	}
	if end, _ := decoder.Token(); end == json.Delim(']') {
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
func decode(text, encoding string) []byte {
	if encoding == "hex" {
		raw, err := hex.DecodeString(text)
		require(err == nil, "not hexadecimal")
		return raw
	}
	alphabet := base64.StdEncoding
	if encoding == "base64url" {
		alphabet = base64.RawURLEncoding
	}
	raw, err := alphabet.DecodeString(text)
	require(err == nil && alphabet.EncodeToString(raw) == text, "not "+encoding)
	return raw
}

var fileName = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// Returns whether it was new. A table with a unique key on the id, written with the rest of your work, is better.
func storeOnce(ipn object) (isNew bool, err error) {
	id := ipn["id"].(string)
	if !fileName.MatchString(id) {
		return false, errors.New("the id is no file name")
	}
	file, err := os.CreateTemp("inbox", ".new-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(file.Name())
	if err := cmp.Or(json.NewEncoder(file).Encode(ipn), file.Sync(), file.Close()); err != nil {
		return false, err
	}
	err = os.Link(file.Name(), filepath.Join("inbox", id+".json")) // of two at once, one fails
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func receive(agreed *Agreement, w http.ResponseWriter, r *http.Request) int {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	ipn, err := Verify(agreed, body, r.Header, time.Now())
	if err != nil {
		log.Print("refused: ", err)
		return http.StatusBadRequest
	}
	isNew, err := storeOnce(ipn)
	if err != nil {
		log.Print("not stored: ", err)
		return http.StatusInternalServerError // brings the IPN again
	}
	log.Print(ipn["transaction_type"], " ", ipn["id"], ", new: ", isNew)
	return http.StatusNoContent
}

func serve(agreed *Agreement) error {
	if err := os.MkdirAll("inbox", 0o700); err != nil {
		return err
	}
	http.HandleFunc("POST /ipn", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(receive(agreed, w, r)) })
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8080"))
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s/ipn", listener.Addr())
	return (&http.Server{ReadTimeout: 30 * time.Second}).Serve(listener)
}

func readJSON(file string, into any) {
	text, err := os.ReadFile(file)
	if err = cmp.Or(err, json.Unmarshal(text, into)); err != nil {
		log.Fatal(err)
	}
}

func main() {
	var agreed Agreement
	readJSON(os.Args[1], &agreed)
	log.Fatal(serve(&agreed))
}
