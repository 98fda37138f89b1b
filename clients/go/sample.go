package paybell

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SampleKeys gives keys that everybody knows: for tests only. Settings are added as JSON members: `"cipher": "jwe"`.
func SampleKeys(settings ...string) *Keys {
	key := func(fill byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)) }
	named := fmt.Sprintf(`"encryptionKey":%q,"signingKey":%q,"webhookSecret":%q`, key(1), key(2), "whsec_"+key(3))
	keys, err := ParseKeys([]byte("{" + strings.Join(append(settings, named), ",") + "}"))
	if err != nil {
		panic(err)
	}
	return keys
}

// Sample is an IPN as Paybell would POST it, signed and encrypted: for tests of your own callback. The kinds are sale,
// decline, void, preauth, preauth_complete, cancel, refund and settlement; fields replace those of the IPN.
func Sample(kind string, source Source, fields map[string]any) (body []byte, headers http.Header, err error) {
	keys, content := source.Current(), contract.Samples[kind]
	if content.IPN == nil {
		kinds := slices.Sorted(maps.Keys(contract.Samples))
		return nil, nil, mistake("wrong_option", "There is no sample "+kind+", but "+strings.Join(kinds, ", ")+".")
	}
	settles, original, extended := kind == "settlement", "", slices.Contains(keys.fields, "extended")
	if slices.Contains([]string{"VOID", "PREAUTH_COMPLETE", "REFUND"}, content.Command) {
		original = newID()
	}
	ipn := maps.Clone(content.IPN)
	ipn["id"], ipn["reqId"] = newID(), newID()
	more := object{"command": content.Command, "originalId": original, "originalReqId": "", "currency": "VND"}
	for _, name := range tableOf(settles).Extended {
		if extended {
			ipn[name] = more[name]
		}
	}
	for name, value := range fields {
		if _, isThere := ipn[name]; !isThere {
			return nil, nil, mistake("wrong_option", "A "+kind+" has no field "+name+".")
		}
		ipn[name] = value
	}
	ipn["signature"] = hex.EncodeToString(hmacOf(keys.signing[0], signedText(keys.signed, settles, ipn, ipn, extended)))
	plain, _ := json.Marshal(ipn)
	body, _ = json.Marshal(map[string]string{"data": seal(keys, plain)})
	id, timestamp := newID(), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmacOf(keys.webhook[0], id+"."+timestamp+"."+string(body))
	headers = http.Header{}
	for name, value := range map[string]string{"Content-Type": "application/json", "Webhook-Id": id,
		"Webhook-Timestamp": timestamp, "Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac),
		"Paybell-Attempt": "1", "Paybell-Command": content.Command} {
		headers.Set(name, value)
	}
	if original != "" {
		headers.Set("Paybell-Original-Transaction", original)
	}
	return body, headers, nil
}

func newID() string {
	raw := random(16)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

func random(length int) []byte {
	raw := make([]byte, length)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return raw
}

func seal(keys *Keys, plain []byte) string {
	block, _ := aes.NewCipher(keys.encryption[0].bytes)
	if keys.cipher == "aes-256-cbc" {
		iv, padding := random(aes.BlockSize), aes.BlockSize-len(plain)%aes.BlockSize
		sealed := append(slices.Clone(plain), bytes.Repeat([]byte{byte(padding)}, padding)...)
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(sealed, sealed)
		return encode(append(iv, sealed...), keys.encoding)
	}
	gcm, _ := cipher.NewGCM(block)
	iv := random(12)
	if keys.cipher == "aes-256-gcm" {
		return encode(gcm.Seal(iv, iv, plain, nil), keys.encoding)
	}
	text, _ := json.Marshal(map[string]string{"alg": "dir", "enc": "A256GCM", "kid": keys.encryption[0].id})
	header := encode(text, "base64url")
	sealed := gcm.Seal(nil, iv, plain, []byte(header))
	content, tag := sealed[:len(sealed)-16], sealed[len(sealed)-16:]
	return header + ".." + encode(iv, "base64url") + "." + encode(content, "base64url") + "." + encode(tag, "base64url")
}

func encode(raw []byte, encoding string) string {
	if encoding == "hex" {
		return hex.EncodeToString(raw)
	}
	return alphabet(encoding).EncodeToString(raw)
}
