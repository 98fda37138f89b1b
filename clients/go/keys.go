package paybell

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// agreement is what was agreed with the operator. Signing says what the IPN's own signature covers.
type agreement struct {
	BaseURL, APIKey, Cipher, Encoding string
	Signing                           struct {
		Mode             string
		Card, Settlement []string
	}
	Fields []string
}

type version struct {
	id    string
	bytes []byte
}

var kinds = []string{"encryptionKey", "signingKey", "webhookSecret"}

// Keys are the keys and the agreement of a registration. Several versions of a key are those of a rotation: each is
// accepted.
type Keys struct {
	settings object
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
	settings, versions, owners := maps.Clone(contract.Defaults), map[string][]version{}, map[string]string{}
	for _, content := range contents {
		file, _ := modern(content)
		for _, kind := range kinds {
			list, _ := file[kind].([]any)
			for _, one := range list {
				written, _ := one.(object)
				id, _ := written["id"].(string)
				key := keyBytes(kind, written["key"])
				throwIf(cmp.Or(owners[string(key)], kind) != kind, "shared_key", kind)
				owners[string(key)] = kind
				versions[kind] = append(versions[kind], version{id, key})
			}
			delete(file, kind)
		}
		maps.Copy(settings, file)
	}
	for _, kind := range kinds {
		throwIf(versions[kind] == nil, "missing_key", kind)
	}
	return newKeys(settings, versions), nil
}

func newKeys(settings object, versions map[string][]version) *Keys {
	keys := &Keys{settings: settings, versions: versions}
	text, _ := json.Marshal(settings)
	err := json.Unmarshal(text, &keys.agreed, json.MatchCaseInsensitiveNames(true)) // It would quote the file.
	throwIf(err != nil, "wrong_option", "A member of the file of the keys has another type.")
	given := map[string][]string{"cipher": {keys.agreed.Cipher}, "encoding": {keys.agreed.Encoding},
		"signing": {keys.agreed.Signing.Mode}, "fields": keys.agreed.Fields}
	for name, allowed := range contract.Settings {
		isOther := func(one string) bool { return !slices.Contains(allowed, one) }
		isWrong := len(given[name]) == 0 || slices.ContainsFunc(given[name], isOther)
		throwIf(isWrong, "wrong_option", name, "must be one of", strings.Join(allowed, ", ")+".")
	}
	return keys
}

// with gives the same with another setting.
func (keys *Keys) with(other try) *Keys {
	settings, versions := maps.Clone(keys.settings), maps.Clone(keys.versions)
	maps.Copy(settings, other.Settings)
	for kind, others := range other.Keys {
		versions[kind] = nil
		for _, key := range keys.all(others...) {
			versions[kind] = append(versions[kind], version{bytes: key.bytes})
		}
	}
	return newKeys(settings, versions)
}

// A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning.
func keyBytes(kind string, written any) []byte {
	text, _ := written.(string)
	throwIf(text == "", "missing_key", kind)
	bare, isSecret := strings.CutPrefix(text, "whsec_")
	throwIf(kind == "webhookSecret" && !isSecret, "no_whsec_prefix", kind)
	throwIf(kind != "webhookSecret" && isSecret, "key_not_base64", kind)
	raw := decode(bare, "base64", "key_not_base64", kind)
	throwIf(len(raw) != 32, "key_length", kind)
	return raw
}

// modern gives the content of a file in today's shape, each key as a list of its versions: encryptionKeys, and kind and
// secret, are those of older files.
func modern(content []byte) (file object, isOld bool) {
	err := json.Unmarshal(content, &file, jsontext.AllowDuplicateNames(true)) // It would quote the file.
	throwIf(err != nil || file == nil, "wrong_option", "The file of the keys is not a JSON object.")
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
		if versions, isThere := file[kind+"s"]; isThere {
			file[kind], isOld = versions, true
			delete(file, kind+"s")
		}
		if file[kind] == nil {
			continue
		}
		list, isList := file[kind].([]any)
		if !isList {
			list = []any{file[kind]}
		}
		for at, one := range list {
			if key, isText := one.(string); isText {
				list[at] = object{"key": key}
			}
		}
		file[kind] = list
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
		// The stamp is from before reading: a change in between is read the next time. After a failure it stays, because
		// a file gets the right to be read without a change of its times.
		file.keys, file.stamp = keys, stamp
	}
	return err
}

func rewrite(path string, content object) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, failure := os.Stat(path)
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // 0600
	if err = cmp.Or(failure, err); err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	failure = json.MarshalWrite(file, content, json.Deterministic(true), jsontext.WithIndent("  "))
	if err := cmp.Or(failure, file.Chmod(info.Mode()), file.Sync()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
