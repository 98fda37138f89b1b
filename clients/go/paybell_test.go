package paybell_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"paybell.example/go/paybell"
)

const newKey = "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ="

func code(err error) string {
	var found *paybell.Error
	if errors.As(err, &found) {
		return found.Code
	}
	return fmt.Sprint(err)
}

func sample(t *testing.T, kind string, keys *paybell.Keys) ([]byte, http.Header) {
	t.Helper()
	body, headers, err := paybell.Sample(kind, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	return body, headers
}

func TestEverySampleOpensInEveryCipherEncodingAndWayOfSigning(t *testing.T) {
	for _, kind := range strings.Fields("sale decline void preauth preauth_complete cancel refund settlement") {
		for _, cipher := range []string{"aes-256-gcm", "aes-256-cbc", "jwe"} {
			for _, encoding := range []string{"base64", "base64url", "hex"} {
				for _, mode := range []string{"fields", "whole"} {
					keys := paybell.SampleKeys(`"cipher":"`+cipher+`"`, `"encoding":"`+encoding+`"`, `"signing":{"mode":"`+mode+`"}`)
					body, headers := sample(t, kind, keys)
					received, err := paybell.Open(body, headers, keys)
					if err != nil || (received.Settlement != nil) != (kind == "settlement") || received.ID() == "" {
						t.Fatal(kind, cipher, encoding, mode, code(err))
					}
				}
			}
		}
	}
	if _, _, err := paybell.Sample("sale", paybell.SampleKeys(), map[string]any{"ammount": "1"}); code(err) != "wrong_option" {
		t.Fatal("a field that the IPN does not have was accepted")
	}
}

func TestAKeyWithoutAnIDOpensWhateverTheMessageNames(t *testing.T) {
	named := `"encryptionKey":[{"id":"v1","key":"` + newKey + `"}]`
	for _, cipher := range []string{"aes-256-gcm", "jwe"} {
		parse := func(key string) *paybell.Keys {
			keys, err := paybell.ParseKeys([]byte(`{"cipher":"` + cipher + `",` + key + `,` +
				`"signingKey":"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=",` +
				`"webhookSecret":"whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="}`))
			if err != nil {
				t.Fatal(err)
			}
			return keys
		}
		body, headers := sample(t, "sale", parse(named))
		headers.Set("paybell-key", "v1")
		for _, key := range []string{named, `"encryptionKey":"` + newKey + `"`} {
			received, err := paybell.Open(body, headers, parse(key))
			if err != nil || received.KeyID != "v1" {
				t.Fatal(cipher, key, code(err))
			}
		}
		headers.Set("paybell-key", "v9")
		if received, err := paybell.Open(body, headers, parse(named)); err != nil || received.KeyID != "v1" {
			t.Fatal("the key is not the one that opened it", code(err))
		}
	}
}

func TestTheSettingDecidesWhichFieldsAreReadAndSigned(t *testing.T) {
	extended, both := paybell.SampleKeys(`"fields":"extended"`), paybell.SampleKeys(`"fields":["specification","extended"]`)
	body, headers := sample(t, "void", extended)
	for _, keys := range []*paybell.Keys{extended, both} {
		received, err := paybell.Open(body, headers, keys)
		if err != nil || received.Card.Command != "VOID" || received.Card.OriginalID != received.Headers.OriginalTransactionID {
			t.Fatal(code(err), received)
		}
	}
	if _, err := paybell.Open(body, headers, paybell.SampleKeys()); code(err) != "wrong_fields" {
		t.Fatal(code(err))
	}
	body, headers = sample(t, "settlement", extended)
	if received, err := paybell.Open(body, headers, extended); err != nil || received.Settlement.Currency != "VND" {
		t.Fatal(code(err))
	}
	body, headers = sample(t, "sale", paybell.SampleKeys(`"fields":"extended"`, `"signing":{"mode":"whole"}`))
	received, err := paybell.Open(body, headers, paybell.SampleKeys(`"signing":{"mode":"whole"}`))
	if err != nil || received.Card.Command != "" || received.Wire["command"] != "SALE" {
		t.Fatal("an unknown field was not kept", code(err))
	}
}

func TestEachRefusalHasItsCodeAndTheSameText(t *testing.T) {
	body, headers := sample(t, "sale", paybell.SampleKeys())
	for wanted, given := range map[string]struct {
		body    []byte
		headers http.Header
		keys    *paybell.Keys
	}{
		"missing_headers": {body, http.Header{}, paybell.SampleKeys()},
		"wrong_cipher":    {body, headers, paybell.SampleKeys(`"cipher":"jwe"`)},
		"wrong_encoding":  {body, headers, paybell.SampleKeys(`"encoding":"hex"`)},
		"rewritten_body":  {append(bytes.Clone(body), ' '), headers, paybell.SampleKeys()},
		"too_large":       {make([]byte, paybell.BodyBytesMax+1), headers, paybell.SampleKeys()},
	} {
		_, err := paybell.Open(given.body, given.headers, given.keys)
		var refused *paybell.Error
		if code(err) != wanted || !errors.As(err, &refused) || refused.Remedy == "" || err.Error() != "the IPN is not authentic" {
			t.Error(wanted, code(err), err)
		}
	}
}

func TestAWrongKeyIsNamedButNeverShown(t *testing.T) {
	const good = `"encryptionKey":"` + newKey + `","webhookSecret":"whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="`
	for given, wanted := range map[string]string{
		`{` + good + `}`: "missing_key", `{` + good + `,"signingKey":"QUJD"}`: "key_length",
		`{` + good + `,"signingKey":"!"}`: "key_not_base64", `{` + good + `,"signingKey":"` + newKey + `"}`: "shared_key",
		`{"webhookSecret":"` + newKey + `"}`: "no_whsec_prefix", `[`: "wrong_option",
		`{` + good + `,"signingKey":"CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ"}`: "key_length",
	} {
		if _, err := paybell.ParseKeys([]byte(given)); code(err) != wanted || strings.Contains(err.Error(), newKey) {
			t.Error(given, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainAndOlderShapesRewritten(t *testing.T) {
	folder := t.TempDir()
	first, rotation := filepath.Join(folder, "paybell.json"), filepath.Join(folder, "rotation.json")
	write(t, first, `{"encryptionKeys":[{"id":"1","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}],`+
		`"signingKeys":["AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="],`+
		`"webhookSecrets":["whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="]}`)
	link := filepath.Join(folder, "link.json")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	write(t, rotation, `{"id":"2","kind":"encryptionKey","secret":"`+newKey+`","activeFrom":"2026-01-01T00:00:00Z"}`)
	keys, err := paybell.OpenKeys(link, rotation)
	if err != nil {
		t.Fatal(err)
	}
	for path, wanted := range map[string]string{first: `"signingKey": [`, rotation: `"encryptionKey": [`} {
		text, _ := os.ReadFile(path)
		if info, _ := os.Stat(path); !strings.Contains(string(text), wanted) || info.Mode().Perm() != 0o640 {
			t.Error(path, info.Mode())
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("a link was replaced", err)
	}
	body, headers := sample(t, "sale", paybell.SampleKeys())
	if received, err := paybell.Open(body, headers, keys); err != nil || received.KeyID != "1" {
		t.Fatal(code(err))
	}
	write(t, first, "{")
	if _, err := paybell.Open(body, headers, keys); err != nil {
		t.Fatal("a broken file took the keys away", code(err))
	}
	write(t, first, `{"cipher":"jwe"}`)
	if _, err := paybell.Open(body, headers, keys); err != nil {
		t.Fatal("files without a signing key took the keys away", code(err))
	}
	write(t, first, `{"signingKey":"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=","webhookSecret":"whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="}`)
	if _, err := paybell.Open(body, headers, keys); code(err) != "decryption" {
		t.Fatal("the file was not read again", code(err))
	}
	// Within the same second, and of the same length.
	info, _ := os.Stat(rotation)
	write(t, rotation, `{"encryptionKey":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}`)
	set(t, rotation, info.ModTime().Truncate(time.Second))
	if _, err := paybell.Open(body, headers, keys); err != nil {
		t.Fatal("the file was not read again", code(err))
	}
	write(t, rotation, `{"encryptionKey":"`+newKey+`"}`)
	set(t, rotation, info.ModTime().Truncate(time.Second).Add(time.Millisecond))
	if _, err := paybell.Open(body, headers, keys); code(err) != "decryption" {
		t.Fatal("a second change within a second was not seen", code(err))
	}
	// As one that only root could read, until its rights were changed: that changes no time.
	right := `{"encryptionKey":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}`
	for _, step := range [][2]string{{strings.Repeat(" ", len(right)), "decryption"}, {right, "<nil>"}} {
		write(t, rotation, step[0])
		set(t, rotation, info.ModTime().Truncate(time.Second).Add(time.Minute))
		if _, err := paybell.Open(body, headers, keys); code(err) != step[1] {
			t.Fatal("a file that can be read again was not", code(err))
		}
	}
}

func set(t *testing.T, path string, modified time.Time) {
	t.Helper()
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}

func TestARewrittenFileHasNoOtherKeysThanBefore(t *testing.T) {
	folder := t.TempDir()
	first, rotation := filepath.Join(folder, "paybell.json"), filepath.Join(folder, "rotation.json")
	write(t, first, `{"encryptionKey":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",`+
		`"signingKey":"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=",`+
		`"webhookSecret":"whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="}`)
	write(t, rotation, `{"encryptionKeys":["`+newKey+`"]}`)
	if _, err := paybell.OpenKeys(first, rotation); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(rotation)
	var got, wanted any
	_ = json.Unmarshal([]byte(`{"encryptionKey":[{"key":"`+newKey+`"}]}`), &wanted)
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, wanted) {
		t.Fatal(string(text))
	}
}

func TestTheHandlerAnswers2xxOnlyWhenTheFunctionHasReturned(t *testing.T) {
	keys, failing := paybell.SampleKeys(), error(nil)
	handler := paybell.Handler(keys, func(*http.Request, *paybell.Received) error { return failing })
	ask := func(method string, body []byte, headers http.Header) int {
		request, answer := httptest.NewRequest(method, "/ipn", bytes.NewReader(body)), httptest.NewRecorder()
		request.Header = headers
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	body, headers := sample(t, "sale", keys)
	got := []int{ask("POST", body, headers), ask("GET", nil, nil), ask("POST", body, nil),
		ask("POST", make([]byte, paybell.BodyBytesMax+1), headers)}
	failing = errors.New("the database is away")
	if got = append(got, ask("POST", body, headers)); fmt.Sprint(got) != "[204 405 400 413 500]" {
		t.Fatal(got)
	}
}

func TestCatchUpGivesPageAfterPage(t *testing.T) {
	var asked []string
	answers := []string{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Authorization"))
		if len(answers) == 0 {
			w.WriteHeader(410)
			answers = []string{`{"code":"cursor_expired","detail":"It is gone."}`}
		}
		_, _ = w.Write([]byte(answers[0]))
		answers = answers[1:]
	}))
	defer service.Close()
	keys := paybell.SampleKeys(`"baseUrl":"`+service.URL+`"`, `"apiKey":"pb_x"`)
	for _, next := range []string{"1", "2"} {
		body, headers := sample(t, "sale", keys)
		var envelope struct{ Data string }
		named := map[string]string{}
		for name := range headers {
			named[strings.ToLower(name)] = headers.Get(name)
		}
		_ = json.Unmarshal(body, &envelope)
		item, _ := json.Marshal(map[string]any{"data": envelope.Data, "headers": named})
		answers = append(answers, fmt.Sprintf(`{"items":[%s],"next":%q}`, item, next))
	}
	cursors, failure := "", error(nil)
	for page, err := range paybell.CatchUp(context.Background(), "start", keys, 0) {
		if failure = err; err == nil {
			cursors += page.Cursor + page.Items[0].Card.Status
		}
	}
	if cursors != "1SUCCESS2SUCCESS" || code(failure) != "cursor_expired" || asked[1] != "/v1/notifications?after=1 Bearer pb_x" {
		t.Fatal(cursors, failure, asked)
	}
	folder, pages := t.TempDir(), 0
	first, rotation := filepath.Join(folder, "paybell.json"), filepath.Join(folder, "rotation.json")
	write(t, first, `{"encryptionKey":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",`+
		`"signingKey":"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=","apiKey":"pb_old","baseUrl":"`+service.URL+`",`+
		`"webhookSecret":"whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="}`)
	write(t, rotation, `{"kind":"apiKey","secret":"pb_new","expiresOld":"2026-01-02T00:00:00Z"}`)
	rotated, err := paybell.OpenKeys(first, rotation)
	if err != nil {
		t.Fatal(err)
	}
	answers = []string{`{"items":[],"next":"2"}`}
	for range paybell.CatchUp(context.Background(), "2", rotated, 30) {
		pages++
	}
	if last := asked[len(asked)-1]; pages != 1 || last != "/v1/notifications?after=2&wait=30 Bearer pb_new" {
		t.Fatal(pages, last)
	}
	item, _ := json.Marshal(map[string]any{"data": "AAAA", "headers": map[string]string{}})
	answers = []string{fmt.Sprintf(`{"items":[%s],"next":"3"}`, item)}
	for page, err := range paybell.CatchUp(context.Background(), "2", keys, 0) {
		if code(err) != "missing_headers" || page.Cursor != "" {
			t.Fatal("a page was given without one of its items", page, code(err))
		}
	}
	redirecting := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer redirecting.Close()
	for url, wanted := range map[string]string{"http://paybell.example": "wrong_option",
		"http://localhost.example": "wrong_option", redirecting.URL: "not_paybell"} {
		for _, err := range paybell.CatchUp(context.Background(), "", paybell.SampleKeys(`"baseUrl":"`+url+`"`), 0) {
			if code(err) != wanted {
				t.Fatal("the API key would be sent to", url, code(err))
			}
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (send transport) RoundTrip(request *http.Request) (*http.Response, error) { return send(request) }

func TestCatchUpEndsAlsoIfTheAnswerStops(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = transport(func(request *http.Request) (*http.Response, error) {
		if _, isLimited := request.Context().Deadline(); !isLimited {
			t.Error("it may wait forever")
		}
		body := io.MultiReader(strings.NewReader(`{"items":[`), iotest.ErrReader(context.DeadlineExceeded))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: request}, nil
	})
	for _, err := range paybell.CatchUp(context.Background(), "", paybell.SampleKeys(`"baseUrl":"https://paybell.example"`), 30) {
		if code(err) != "no_answer" {
			t.Fatal(code(err))
		}
	}
}
