package paybell

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// message is an encrypted IPN. keyID is the id of the key where the message names it; sealed is the IV, the ciphertext,
// and GCM's tag.
type message struct {
	isCBC                 bool
	keyID                 string
	sealed, authenticated []byte
}

func messageOf(agreed agreement, data string) message {
	if agreed.Cipher != "jwe" {
		sealed, isCBC := decode(data, agreed.Encoding, "encoding"), agreed.Cipher == "aes-256-cbc"
		throwIf(!isCBC && len(sealed) < 28 || isCBC && (len(sealed) < 32 || len(sealed)%16 != 0), "encoding")
		return message{isCBC: isCBC, sealed: sealed}
	}
	parts := strings.Split(data, ".")
	throwIf(len(parts) != 5 || parts[1] != "", "encoding")
	iv, tag := decode(parts[2], "base64url", "encoding"), decode(parts[4], "base64url", "encoding")
	throwIf(len(iv) != 12 || len(tag) != 16, "encoding")
	sealed := slices.Concat(iv, decode(parts[3], "base64url", "encoding"), tag)
	header, err := parse(decode(parts[0], "base64url", "jwe_header"))
	keyID, hasKid := header["kid"].(string)
	_, isZipped := header["zip"]
	_, isCritical := header["crit"]
	isUsual := header["alg"] == "dir" && header["enc"] == "A256GCM" && hasKid && !isZipped && !isCritical
	throwIf(err != nil || !isUsual, "jwe_header")
	return message{false, keyID, sealed, []byte(parts[0])}
}

func (message message) isJWE() bool { return message.authenticated != nil }

func (message message) decrypt(key version) []byte {
	block, _ := aes.NewCipher(key.bytes)
	if !message.isCBC {
		gcm, _ := cipher.NewGCMWithRandomNonce(block)
		plain, err := gcm.Open(nil, nil, message.sealed, message.authenticated)
		throwIf(err != nil, "decryption")
		return plain
	}
	plain := make([]byte, len(message.sealed)-16)
	cipher.NewCBCDecrypter(block, message.sealed[:16]).CryptBlocks(plain, message.sealed[16:])
	padding := plain[len(plain)-1:]
	count := int(padding[0])
	isPadded := 0 < count && count <= 16 && bytes.HasSuffix(plain, bytes.Repeat(padding, count))
	throwIf(!isPadded, "decryption")
	return plain[:len(plain)-count]
}

func hmacOf(key version, text string) []byte {
	mac := hmac.New(sha256.New, key.bytes)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

var encodings = map[string]struct {
	encode func([]byte) string
	decode func(string) ([]byte, error)
}{
	"base64":    {base64.StdEncoding.EncodeToString, base64.StdEncoding.Strict().DecodeString},
	"base64url": {base64.RawURLEncoding.EncodeToString, base64.RawURLEncoding.Strict().DecodeString},
	"hex":       {hex.EncodeToString, hex.DecodeString},
}

// decode refuses what no encoder writes: decoders accept line ends.
func decode(text, encoding, code string, seen ...string) []byte {
	raw, err := encodings[encoding].decode(text)
	throwIf(err != nil || strings.ContainsAny(text, "\r\n"), code, seen...)
	return raw
}
