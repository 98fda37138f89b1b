package paybell

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var kinds = []string{"encryptionKey", "signingKey", "webhookSecret"}

type version struct {
	id    string
	bytes []byte
}

// Signing says what the IPN's own signature covers, as agreed with the operator.
type Signing struct {
	Mode       string   `json:"mode"`
	Card       []string `json:"card,omitempty"`
	Settlement []string `json:"settlement,omitempty"`
}

// Keys are the keys and the agreement of a registration. Several versions of a key are those of a rotation: each is
// accepted.
type Keys struct {
	encryption, signing, webhook []version
	cipher, encoding             string
	signed                       Signing
	fields                       []string
	baseURL, apiKey              string
}

// Source gives the keys that are valid now: Keys and KeyFile are sources.
type Source interface{ Current() *Keys }

// Current gives the keys themselves.
func (keys *Keys) Current() *Keys { return keys }

// The content of a file of keys.
type written struct {
	BaseURL, APIKey, Cipher, Encoding        string
	Signing                                  *Signing
	Fields                                   oneOrMore[string]
	EncryptionKey, SigningKey, WebhookSecret oneOrMore[writtenKey]
}

type oneOrMore[T any] []T

func (all *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(all))
	}
	*all = make([]T, 1)
	return json.Unmarshal(text, &(*all)[0])
}

type writtenKey struct{ ID, Key string }

func (key *writtenKey) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &key.Key)
	}
	type object writtenKey
	return json.Unmarshal(text, (*object)(key))
}

// ParseKeys reads one file's content or several: their versions are put together.
func ParseKeys(contents ...[]byte) (*Keys, error) {
	keys := &Keys{cipher: "aes-256-gcm", encoding: "base64", signed: Signing{Mode: "fields"}, fields: []string{"specification"}}
	for _, content := range contents {
		text, _, err := modern(content)
		if err == nil {
			err = keys.add(text)
		}
		if err != nil {
			return nil, err
		}
	}
	return keys, keys.check()
}

func (keys *Keys) lists() []*[]version {
	return []*[]version{&keys.encryption, &keys.signing, &keys.webhook}
}

func (keys *Keys) add(text []byte) error {
	var file written
	if json.Unmarshal(text, &file) != nil { // Its error would quote the file.
		return mistake("wrong_option", "A member of the file of the keys has another type.")
	}
	keys.cipher, keys.encoding = cmp.Or(file.Cipher, keys.cipher), cmp.Or(file.Encoding, keys.encoding)
	keys.baseURL, keys.apiKey = cmp.Or(file.BaseURL, keys.baseURL), cmp.Or(file.APIKey, keys.apiKey)
	if file.Signing != nil {
		keys.signed = *file.Signing
	}
	if file.Fields != nil {
		keys.fields = file.Fields
	}
	for at, list := range [][]writtenKey{file.EncryptionKey, file.SigningKey, file.WebhookSecret} {
		for _, one := range list {
			key, err := keyBytes(kinds[at], one.Key)
			if err != nil {
				return err
			}
			versions := keys.lists()[at]
			*versions = append(*versions, version{one.ID, key})
		}
	}
	return nil
}

func (keys *Keys) check() error {
	owners := map[string]string{}
	for at, list := range keys.lists() {
		if len(*list) == 0 {
			return mistake("missing_key", kinds[at]+" is missing.")
		}
		for _, one := range *list {
			if owner := cmp.Or(owners[string(one.bytes)], kinds[at]); owner != kinds[at] {
				return mistake("shared_key", kinds[at]+" is the same key as "+owner+".")
			}
			owners[string(one.bytes)] = kinds[at]
		}
	}
	for _, rule := range []struct {
		name           string
		given, allowed []string
	}{{"cipher", []string{keys.cipher}, ciphers}, {"encoding", []string{keys.encoding}, encodings},
		{"signing.mode", []string{keys.signed.Mode}, modes}, {"fields", keys.fields, fieldSets}} {
		isOther := func(one string) bool { return !slices.Contains(rule.allowed, one) }
		if len(rule.given) == 0 || slices.ContainsFunc(rule.given, isOther) {
			return mistake("wrong_option", rule.name+" must be one of "+strings.Join(rule.allowed, ", ")+".")
		}
	}
	return nil
}

// KeyFile has keys in files, such as the one of the registration and those of rotations. They are read again when one
// changes. If they cannot be read then, the keys stay as they were, with a warning in the log.
type KeyFile struct {
	paths []string
	mutex sync.Mutex
	stamp string
	keys  *Keys
}

// OpenKeys reads the files, and rewrites those of older shapes, with a warning in the log.
func OpenKeys(paths ...string) (*KeyFile, error) {
	stamp := stampOf(paths)
	keys, err := readKeys(paths)
	return &KeyFile{paths: paths, stamp: stamp, keys: keys}, err
}

// Current reads the files again if one has changed.
func (file *KeyFile) Current() *Keys {
	file.mutex.Lock()
	defer file.mutex.Unlock()
	if stamp := stampOf(file.paths); stamp != file.stamp {
		file.stamp = stamp // before reading: a change in between is read the next time
		if keys, err := readKeys(file.paths); err != nil {
			slog.Warn("paybell: the keys stay as they were", "error", err)
		} else {
			file.keys = keys
		}
	}
	return file.keys
}

func stampOf(paths []string) (stamp string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
		}
	}
	return stamp
}

func readKeys(paths []string) (*Keys, error) {
	contents := make([][]byte, len(paths))
	for at, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text, isOld, err := modern(content)
		if err != nil {
			return nil, err
		}
		if contents[at] = text; isOld {
			slog.Warn("paybell: a file of keys has an older shape", "path", path, "not rewritten", rewrite(path, text))
		}
	}
	return ParseKeys(contents...)
}

func rewrite(path string, content []byte) error {
	info, err := os.Stat(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	for _, step := range []func() error{file.Sync, func() error { return file.Chmod(info.Mode()) }, file.Close,
		func() error { return os.Rename(file.Name(), path) }} {
		if err == nil {
			err = step()
		}
	}
	return err
}

// The same in today's shape: encryptionKeys and {kind, secret} are those of older files.
func modern(content []byte) (text []byte, isOld bool, err error) {
	var file map[string]any
	if json.Unmarshal(content, &file) != nil || file == nil { // Its error would quote the file.
		return nil, false, mistake("wrong_option", "The file of the keys is not a JSON object.")
	}
	kind, hasKind := file["kind"].(string)
	secret, hasSecret := file["secret"].(string)
	if isOld = hasKind && hasSecret; isOld {
		maps.DeleteFunc(file, func(name string, _ any) bool {
			return !slices.Contains([]string{"id", "activeFrom", "expiresOld"}, name)
		})
		file["key"] = secret
		file = object{kind: []any{file}}
		if kind == "apiKey" {
			file[kind] = secret
		}
	}
	for _, kind := range kinds {
		if list, isList := file[kind+"s"].([]any); isList {
			for at, one := range list {
				if key, isText := one.(string); isText {
					list[at] = object{"key": key}
				}
			}
			file[kind], isOld = list, true
			delete(file, kind+"s")
		}
	}
	if isOld {
		content, err = json.MarshalIndent(file, "", "  ")
	}
	return content, isOld, err
}

// A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning.
func keyBytes(kind, text string) ([]byte, error) {
	if text == "" {
		return nil, mistake("missing_key", kind+" is missing.")
	}
	bare, hasPrefix := strings.CutPrefix(text, "whsec_")
	if kind != "webhookSecret" {
		bare = text
	} else if !hasPrefix {
		return nil, mistake("no_whsec_prefix", kind+" does not begin with whsec_.")
	}
	raw, err := base64.StdEncoding.DecodeString(bare)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != bare {
		return nil, mistake("key_not_base64", kind+" is not base64.")
	}
	if len(raw) != 32 {
		return nil, mistake("key_length", fmt.Sprintf("%s has %d bytes instead of 32.", kind, len(raw)))
	}
	return raw, nil
}
