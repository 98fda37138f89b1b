package paybell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var kinds = []string{"encryptionKey", "signingKey", "webhookSecret"}

type version struct {
	id  string
	key []byte
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
	encryption       []version
	signing, webhook [][]byte
	cipher, encoding string
	signed           Signing
	fields           []string
	baseURL, apiKey  string
}

// Source gives the keys that are valid now: Keys and KeyFile are sources.
type Source interface{ Current() *Keys }

// Current gives the keys themselves.
func (keys *Keys) Current() *Keys { return keys }

// ParseKeys reads one file's content or several: their versions are put together.
func ParseKeys(contents ...[]byte) (*Keys, error) {
	keys := &Keys{cipher: "aes-256-gcm", encoding: "base64", signed: Signing{Mode: "fields"}}
	keys.fields = []string{"specification"}
	found := map[string][]version{}
	for _, content := range contents {
		written, _, err := modern(content)
		if err != nil {
			return nil, err
		}
		if err := keys.add(written, found); err != nil {
			return nil, err
		}
	}
	owners := map[string]string{}
	for _, kind := range kinds {
		if len(found[kind]) == 0 {
			return nil, mistake("missing_key", kind+" is missing.")
		}
		for _, one := range found[kind] {
			if owner, isThere := owners[string(one.key)]; isThere && owner != kind {
				return nil, mistake("shared_key", kind+" is the same key as "+owner+".")
			}
			owners[string(one.key)] = kind
		}
	}
	keys.encryption = found["encryptionKey"]
	for _, one := range found["signingKey"] {
		keys.signing = append(keys.signing, one.key)
	}
	for _, one := range found["webhookSecret"] {
		keys.webhook = append(keys.webhook, one.key)
	}
	return keys, keys.check()
}

func (keys *Keys) add(written map[string]json.RawMessage, found map[string][]version) error {
	settings := map[string]any{"cipher": &keys.cipher, "encoding": &keys.encoding, "signing": &keys.signed,
		"baseUrl": &keys.baseURL, "apiKey": &keys.apiKey}
	for name, into := range settings {
		if text, isThere := written[name]; isThere && json.Unmarshal(text, into) != nil {
			return mistake("wrong_option", name+" has another type.")
		}
	}
	if text, isThere := written["fields"]; isThere {
		var one string
		if json.Unmarshal(text, &one) == nil {
			keys.fields = []string{one}
		} else if json.Unmarshal(text, &keys.fields) != nil {
			return mistake("wrong_option", "fields is neither a text nor a list.")
		}
	}
	for _, kind := range kinds {
		var list []struct{ ID, Key string }
		if text, isThere := written[kind]; isThere && json.Unmarshal(text, &list) != nil {
			list = []struct{ ID, Key string }{{}}
			if json.Unmarshal(text, &list[0].Key) != nil {
				return mistake("wrong_option", kind+" is neither a text nor a list of versions.")
			}
		}
		for _, one := range list {
			key, err := keyBytes(kind, one.Key)
			if err != nil {
				return err
			}
			found[kind] = append(found[kind], version{one.ID, key})
		}
	}
	return nil
}

func (keys *Keys) check() error {
	rules := []struct {
		name, value string
		allowed     []string
	}{{"cipher", keys.cipher, ciphers}, {"encoding", keys.encoding, encodings},
		{"signing.mode", keys.signed.Mode, []string{"fields", "whole"}}}
	for _, setting := range append([]string{}, keys.fields...) {
		rules = append(rules, struct {
			name, value string
			allowed     []string
		}{"fields", setting, []string{"specification", "extended"}})
	}
	for _, rule := range rules {
		if !slices.Contains(rule.allowed, rule.value) {
			return mistake("wrong_option", rule.name+" must be one of "+strings.Join(rule.allowed, ", ")+".")
		}
	}
	if len(keys.fields) == 0 {
		return mistake("wrong_option", "fields is an empty list.")
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
	keys, err := readKeys(paths)
	return &KeyFile{paths: paths, stamp: stampOf(paths), keys: keys}, err
}

// Current reads the files again if one has changed.
func (file *KeyFile) Current() *Keys {
	file.mutex.Lock()
	defer file.mutex.Unlock()
	if stampOf(file.paths) != file.stamp {
		if keys, err := readKeys(file.paths); err != nil {
			slog.Warn("paybell: the keys stay as they were", "error", err)
		} else {
			file.keys = keys
		}
		file.stamp = stampOf(file.paths)
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
		written, isOld, err := modern(content)
		if err != nil {
			return nil, err
		}
		if contents[at] = content; isOld {
			contents[at], _ = json.MarshalIndent(written, "", "  ")
			slog.Warn("paybell: a file of keys has an older shape", "path", path, "not rewritten", rewrite(path, contents[at]))
		}
	}
	return ParseKeys(contents...)
}

func rewrite(path string, content []byte) error {
	info, err := os.Stat(path)
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
func modern(content []byte) (written map[string]json.RawMessage, isOld bool, err error) {
	if json.Unmarshal(content, &written) != nil || written == nil { // Its error would quote the file.
		return nil, false, mistake("wrong_option", "The file of the keys is not a JSON object.")
	}
	var kind string
	if json.Unmarshal(written["kind"], &kind) == nil && written["secret"] != nil {
		entry := map[string]json.RawMessage{"key": written["secret"]}
		for _, name := range []string{"id", "activeFrom", "expiresOld"} {
			if written[name] != nil {
				entry[name] = written[name]
			}
		}
		list, _ := json.Marshal([]any{entry})
		if kind == "apiKey" {
			list = written["secret"]
		}
		return map[string]json.RawMessage{kind: list}, true, nil
	}
	for _, kind := range kinds {
		var list []json.RawMessage
		if json.Unmarshal(written[kind+"s"], &list) != nil {
			continue
		}
		for at, one := range list {
			if one[0] == '"' {
				list[at] = json.RawMessage(`{"key":` + string(one) + `}`)
			}
		}
		written[kind], _ = json.Marshal(list)
		delete(written, kind+"s")
		isOld = true
	}
	return written, isOld, nil
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
