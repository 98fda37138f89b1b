package paybell

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// SampleKeys gives keys that everybody knows: for tests only. Settings are added as JSON members: `"cipher": "jwe"`.
func SampleKeys(settings ...string) *Keys {
	named, _ := json.Marshal(contract.SampleKeys)
	keys, err := ParseKeys(named, []byte("{"+strings.Join(settings, ",")+"}"))
	if err != nil {
		panic(err)
	}
	return keys
}

// Sample is an IPN as Paybell would POST it, signed and encrypted: for tests of your own callback. The kinds are sale,
// decline, void, preauth, preauth_complete, cancel, refund and settlement; fields replace those of the IPN.
func Sample(kind string, source Source, fields map[string]any) (body []byte, headers http.Header, err error) {
	defer caught(&err)
	keys, sample := source.Current(), contract.Samples[kind]
	known := strings.Join(slices.Sorted(maps.Keys(contract.Samples)), ", ")
	throwIf(sample.IPN == nil, "wrong_option", "There is no sample", kind+", but", known+".")
	table, setting := "card", slices.Min(keys.agreed.Fields) // "extended" if it is one of them
	if kind == "settlement" {
		table = kind
	}
	ipn := byTableNames(sample.IPN, contract.Tables[table][setting].Fields)
	ipn["id"], ipn["reqId"] = newID(), newID()
	for name, value := range fields {
		throwIf(ipn[name] == nil, "wrong_option", "A", kind, "has no field", name+".")
		ipn[name] = value
	}
	ipn["signature"] = keys.signatures(table, setting, ipn, ipn)[0]
	plain, _ := json.Marshal(ipn)
	body, _ = json.Marshal(map[string]string{"data": seal(keys.agreed, keys.versions["encryptionKey"][0], plain)})
	headers = headerOf(sample.Headers)
	id, timestamp := newID(), strconv.FormatInt(time.Now().Unix(), 10)
	headers.Set("webhook-id", id)
	headers.Set("webhook-timestamp", timestamp)
	headers.Set("webhook-signature", signatureOf(keys.versions["webhookSecret"][0], id, timestamp, body))
	return body, headers, nil
}

// seal encrypts as Paybell does.
func seal(agreed agreement, key version, plain []byte) string {
	block, _ := aes.NewCipher(key.bytes)
	if agreed.Cipher == "aes-256-cbc" {
		padding := 16 - len(plain)%16
		sealed := slices.Concat(random(16), plain, bytes.Repeat([]byte{byte(padding)}, padding))
		cipher.NewCBCEncrypter(block, sealed[:16]).CryptBlocks(sealed[16:], sealed[16:])
		return encodings[agreed.Encoding].encode(sealed)
	}
	gcm, _ := cipher.NewGCMWithRandomNonce(block)
	if agreed.Cipher == "aes-256-gcm" {
		return encodings[agreed.Encoding].encode(gcm.Seal(nil, nil, plain, nil))
	}
	encode := encodings["base64url"].encode
	fields, _ := json.Marshal(map[string]string{"alg": "dir", "enc": "A256GCM", "kid": key.id})
	header := encode(fields)
	sealed := gcm.Seal(nil, nil, plain, []byte(header))
	tagAt := len(sealed) - 16
	return strings.Join([]string{header, "", encode(sealed[:12]), encode(sealed[12:tagAt]), encode(sealed[tagAt:])}, ".")
}

func random(length int) []byte {
	raw := make([]byte, length)
	_, _ = rand.Read(raw) // It never fails.
	return raw
}

// A UUID v4.
func newID() string {
	raw := random(16)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}
