package paybell

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// message is an encrypted IPN. keyID is the id of the key where the message names it; the content ends with the tag.
type message struct {
	isCBC                      bool
	keyID                      string
	iv, content, authenticated []byte
}

func messageOf(agreed agreement, data string) message {
	if agreed.Cipher != "jwe" {
		raw, isRead := decode(data, agreed.Encoding)
		isCBC, ivBytes := agreed.Cipher == "aes-256-cbc", 12
		if isCBC {
			ivBytes = aes.BlockSize
		}
		refusedIf(!isRead || len(raw) < ivBytes+16 || isCBC && len(raw)%aes.BlockSize != 0, "encoding")
		return message{isCBC: isCBC, iv: raw[:ivBytes], content: raw[ivBytes:]}
	}
	parts := strings.Split(data, ".")
	refusedIf(len(parts) != 5 || parts[1] != "", "encoding")
	iv, isIV := decode(parts[2], "base64url")
	content, isContent := decode(parts[3], "base64url")
	tag, isTag := decode(parts[4], "base64url")
	refusedIf(!isIV || !isContent || !isTag || len(iv) != 12 || len(tag) != 16, "encoding")
	text, _ := decode(parts[0], "base64url")
	header, _, err := parse(text)
	keyID, hasKid := header["kid"].(string)
	_, isZipped := header["zip"]
	_, isCritical := header["crit"]
	isUsual := header["alg"] == "dir" && header["enc"] == "A256GCM" && hasKid && !isZipped && !isCritical
	refusedIf(err != nil || !isUsual, "jwe_header")
	return message{keyID: keyID, iv: iv, content: append(content, tag...), authenticated: []byte(parts[0])}
}

func (message message) decrypt(key version) []byte {
	block, _ := aes.NewCipher(key.bytes)
	if !message.isCBC {
		gcm, _ := cipher.NewGCM(block)
		plain, err := gcm.Open(nil, message.iv, message.content, message.authenticated)
		refusedIf(err != nil, "decryption")
		return plain
	}
	plain := make([]byte, len(message.content))
	cipher.NewCBCDecrypter(block, message.iv).CryptBlocks(plain, message.content)
	padding := plain[len(plain)-1:]
	count := int(padding[0])
	isPadded := 0 < count && count <= aes.BlockSize && bytes.HasSuffix(plain, bytes.Repeat(padding, count))
	refusedIf(!isPadded, "decryption")
	return plain[:len(plain)-count]
}

// seal encrypts as Paybell does.
func seal(agreed agreement, key version, plain []byte) string {
	block, _ := aes.NewCipher(key.bytes)
	if agreed.Cipher == "aes-256-cbc" {
		iv, padding := random(aes.BlockSize), aes.BlockSize-len(plain)%aes.BlockSize
		content := append(bytes.Clone(plain), bytes.Repeat([]byte{byte(padding)}, padding)...)
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(content, content)
		return encode(append(iv, content...), agreed.Encoding)
	}
	gcm, _ := cipher.NewGCM(block)
	iv := random(12)
	if agreed.Cipher == "aes-256-gcm" {
		return encode(gcm.Seal(iv, iv, plain, nil), agreed.Encoding)
	}
	text, _ := json.Marshal(map[string]string{"alg": "dir", "enc": "A256GCM", "kid": key.id})
	header := encode(text, "base64url")
	content := gcm.Seal(nil, iv, plain, []byte(header))
	tagAt := len(content) - 16
	parts := []string{header, ""}
	for _, part := range [][]byte{iv, content[:tagAt], content[tagAt:]} {
		parts = append(parts, encode(part, "base64url"))
	}
	return strings.Join(parts, ".")
}

func random(length int) []byte {
	raw := make([]byte, length)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return raw
}

func hmacOf(key version, text string) []byte {
	mac := hmac.New(sha256.New, key.bytes)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// decode gives the bytes if the text is exactly what an encoder writes: decoders accept line ends and stray bits.
func decode(text, encoding string) (raw []byte, isExact bool) {
	if encoding == "hex" {
		raw, err := hex.DecodeString(text)
		return raw, err == nil
	}
	raw, err := alphabet(encoding).DecodeString(text)
	return raw, err == nil && encode(raw, encoding) == text
}

func encode(raw []byte, encoding string) string {
	if encoding == "hex" {
		return hex.EncodeToString(raw)
	}
	return alphabet(encoding).EncodeToString(raw)
}

func alphabet(encoding string) *base64.Encoding {
	if encoding == "base64url" {
		return base64.RawURLEncoding
	}
	return base64.StdEncoding
}
