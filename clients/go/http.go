package paybell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Handler is the callback. It answers 2xx only when your function has returned nil; after an error the IPN comes again.
// Delivery is at least once: deduplicate by ID.
func Handler(keys Source, onIPN func(*http.Request, *Received) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, BodyBytesMax+1)) // what came of an unfinished one is refused
		received, err := Open(body, r.Header, keys)
		status := http.StatusBadRequest
		if refusal, isRefusal := err.(*Error); isRefusal {
			slog.Warn("paybell: IPN refused ("+refusal.Code+")", "finding", refusal.Finding, "remedy", refusal.Remedy)
			if refusal.Code == "too_large" {
				status = http.StatusRequestEntityTooLarge
			}
		} else if err := onIPN(r, received); err != nil {
			slog.Error("paybell: IPN not processed; it will be delivered again", "error", err)
			status = http.StatusInternalServerError
		} else {
			status = http.StatusNoContent
		}
		w.WriteHeader(status)
	})
}

// Page is a page of the pull API. Store Cursor once all Items are processed, and start from it the next time.
type Page struct {
	Items  []*Received
	Cursor string
}

// CatchUp fetches everything after a cursor ("": from the oldest; "now": from this moment), page by page, and ends when
// nothing is left; with waitSeconds (1 to 30) when nothing arrived for that long. The file of the keys names baseUrl and
// apiKey. Its error is an *Error with the service's code, or a refusal: then its page was not given.
func CatchUp(ctx context.Context, cursor string, keys Source, waitSeconds int) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for {
			page, err := pull(ctx, cursor, keys.Current(), waitSeconds)
			if !yield(page, err) || err != nil || len(page.Items) == 0 {
				return
			}
			cursor = page.Cursor
		}
	}
}

var secure = regexp.MustCompile(`^(https://|http://(localhost|127\.[0-9.]+|\[::1\])(:\d+)?(/|$))`)

// A redirection would be sent the API key. The timeout is for a whole answer: 30 s of waiting, then 8 MiB by a slow line.
var client = &http.Client{
	Timeout:       5 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func pull(ctx context.Context, cursor string, keys *Keys, waitSeconds int) (page Page, err error) {
	defer caught(&err)
	query := url.Values{}
	if cursor != "" {
		query.Set("after", cursor)
	}
	if waitSeconds != 0 {
		query.Set("wait", strconv.Itoa(waitSeconds))
	}
	base := keys.agreed.BaseURL
	throwIf(!secure.MatchString(base), "wrong_option", "baseUrl is not https://; http:// is for localhost alone.")
	address := strings.TrimRight(base, "/") + "/v1/notifications?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	throwIf(err != nil, "wrong_option", "baseUrl is not a URL.")
	request.Header.Set("Authorization", "Bearer "+keys.agreed.APIKey)
	response, err := client.Do(request)
	throwIf(err != nil, "no_answer", fmt.Sprint(err))
	defer response.Body.Close()
	var answer struct {
		Items []struct {
			Data    string
			Headers map[string]string
		}
		Next, Code, Detail, Remedy string
	}
	text, err := io.ReadAll(response.Body)
	throwIf(err != nil, "no_answer", fmt.Sprint(err))
	err = json.Unmarshal(text, &answer, json.MatchCaseInsensitiveNames(true))
	isOther := err != nil || response.StatusCode != 200 && answer.Code == ""
	throwIf(isOther, "not_paybell", fmt.Sprintf("HTTP %d:", response.StatusCode))
	if response.StatusCode != 200 {
		refusal := newError(answer.Code, answer.Detail)
		refusal.Remedy = cmp.Or(refusal.Remedy, answer.Remedy)
		return page, refusal
	}
	for _, item := range answer.Items {
		body, _ := json.Marshal(map[string]string{"data": item.Data})
		received, err := Open(body, headerOf(item.Headers), keys)
		if err != nil {
			return Page{}, err
		}
		page.Items = append(page.Items, received)
	}
	page.Cursor = answer.Next
	return page, nil
}

func headerOf(named map[string]string) http.Header {
	header := http.Header{}
	for name, value := range named {
		header.Set(name, value)
	}
	return header
}
