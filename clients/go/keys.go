package paybell

import (
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

// Signing says what the IPN's own signature covers, as agreed with the operator.
type Signing struct {
	Mode       string   `json:"mode"`
	Card       []string `json:"card,omitempty"`
	Settlement []string `json:"settlement,omitempty"`
}

type agreement struct {
	BaseURL, APIKey, Cipher, Encoding string
	Signing                           Signing
	Fields                            []string
}

type version struct {
	id    string
	bytes []byte
}

var kinds = []string{"encryptionKey", "signingKey", "webhookSecret"}

// Keys are the keys and the agreement of a registration. Several versions of a key are those of a rotation: each is
// accepted.
type Keys struct {
	agreed   agreement
	versions map[string][]version
}

// Source gives the keys that are valid now: Keys and KeyFile are sources.
type Source interface{ Current() *Keys }

// Current gives the keys themselves.
func (keys *Keys) Current() *Keys { return keys }

func (keys *Keys) all(kinds ...string) (all []version) {
	for _, kind := range kinds {
		all = append(all, keys.versions[kind]...)
	}
	return all
}

// ParseKeys reads one file's content or several: their versions are put together.
func ParseKeys(contents ...[]byte) (keys *Keys, err error) {
	defer caught(&err)
	merged, owners := maps.Clone(contract.Defaults), map[string]string{}
	keys = &Keys{versions: map[string][]version{}}
	for _, content := range contents {
		file, _ := modern(content)
		maps.Copy(merged, file)
		for _, kind := range kinds {
			list, _ := file[kind].([]any)
			for _, one := range list {
				written, _ := one.(object)
				id, _ := written["id"].(string)
				text, _ := written["key"].(string)
				key := keyBytes(kind, text)
				keys.versions[kind] = append(keys.versions[kind], version{id, key})
				owner, isOwned := owners[string(key)]
				misusedIf(isOwned && owner != kind, "shared_key", kind)
				owners[string(key)] = kind
			}
		}
	}
	for _, kind := range kinds {
		misusedIf(keys.versions[kind] == nil, "missing_key", kind)
	}
	text, _ := json.Marshal(merged) // An error of Unmarshal would quote the file.
	isOther := json.Unmarshal(text, &keys.agreed) != nil
	misusedIf(isOther, "wrong_option", "A member of the file of the keys has another type.")
	allowed("cipher", contract.Settings.Cipher, keys.agreed.Cipher)
	allowed("encoding", contract.Settings.Encoding, keys.agreed.Encoding)
	allowed("signing.mode", contract.Settings.Signing, keys.agreed.Signing.Mode)
	allowed("fields", contract.Settings.Fields, keys.agreed.Fields...)
	return keys, nil
}

func allowed(name string, values []string, given ...string) {
	isOther := func(one string) bool { return !slices.Contains(values, one) }
	finding := name + " must be one of " + strings.Join(values, ", ") + "."
	misusedIf(len(given) == 0 || slices.ContainsFunc(given, isOther), "wrong_option", finding)
}

// A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning.
func keyBytes(kind, text string) []byte {
	bare, isSecret := strings.CutPrefix(text, "whsec_")
	raw, isBase64 := decode(bare, "base64")
	misusedIf(text == "", "missing_key", kind)
	misusedIf(kind == "webhookSecret" && !isSecret, "no_whsec_prefix", kind)
	misusedIf(kind != "webhookSecret" && isSecret || !isBase64, "key_not_base64", kind)
	misusedIf(len(raw) != 32, "key_length", kind)
	return raw
}

// modern gives the content of a file in today's shape, each key as a list of its versions: encryptionKeys, and kind and
// secret, are those of older files.
func modern(content []byte) (file object, isOld bool) {
	err := json.Unmarshal(content, &file) // It would quote the file.
	misusedIf(err != nil || file == nil, "wrong_option", "The file of the keys is not a JSON object.")
	kind, hasKind := file["kind"].(string)
	if secret, hasSecret := file["secret"].(string); hasKind && hasSecret {
		delete(file, "kind")
		delete(file, "secret")
		if kind == "apiKey" {
			return object{kind: secret}, true
		}
		file["key"] = secret
		return object{kind: []any{file}}, true
	}
	for _, kind := range kinds {
		if list, isThere := file[kind+"s"]; isThere {
			file[kind], isOld = list, true
			delete(file, kind+"s")
		}
		if key, isText := file[kind].(string); isText {
			file[kind] = []any{key}
		}
		list, _ := file[kind].([]any)
		for at, one := range list {
			if key, isText := one.(string); isText {
				list[at] = object{"key": key}
			}
		}
	}
	if one, isText := file["fields"].(string); isText {
		file["fields"] = []string{one}
	}
	return file, isOld
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
	file := &KeyFile{paths: paths}
	return file, file.read()
}

// Current reads the files again if one has changed.
func (file *KeyFile) Current() *Keys {
	file.mutex.Lock()
	defer file.mutex.Unlock()
	if err := file.read(); err != nil {
		slog.Warn("paybell: the keys stay as they were", "error", err)
	}
	return file.keys
}

func (file *KeyFile) read() (err error) {
	defer caught(&err)
	stamp := ""
	for _, path := range file.paths {
		if info, err := os.Stat(path); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
		}
	}
	if file.keys != nil && stamp == file.stamp {
		return nil
	}
	file.stamp = stamp // before reading: a change in between is read the next time
	contents := make([][]byte, len(file.paths))
	for at, path := range file.paths {
		if contents[at], err = os.ReadFile(path); err != nil {
			return err
		}
		if content, isOld := modern(contents[at]); isOld {
			slog.Warn("paybell: a file of keys has an older shape", "path", path, "not rewritten", rewrite(path, content))
		}
	}
	keys, err := ParseKeys(contents...)
	if err == nil {
		file.keys = keys
	}
	return err
}

func rewrite(path string, content object) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	encoder := json.NewEncoder(file)
	encoder.SetIndent("", "  ")
	write := func() error { return encoder.Encode(content) }
	mode := func() error { return file.Chmod(info.Mode()) }
	replace := func() error { return os.Rename(file.Name(), path) }
	for _, step := range []func() error{write, mode, file.Sync, replace} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
