package paybell

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

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

// A redirection would be sent the API key.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

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
	misusedIf(!secure.MatchString(base), "wrong_option", "baseUrl is not https://; http:// is for localhost alone.")
	address := strings.TrimRight(base, "/") + "/v1/notifications?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	misusedIf(err != nil, "wrong_option", "baseUrl is not a URL.")
	request.Header.Set("Authorization", "Bearer "+keys.agreed.APIKey)
	response, err := client.Do(request)
	if err != nil {
		return page, mistake("no_answer", err.Error())
	}
	defer response.Body.Close()
	var answer struct {
		Items []struct {
			Data    string
			Headers map[string]string
		}
		Next, Code, Detail, Remedy string
	}
	isOther := json.NewDecoder(response.Body).Decode(&answer) != nil || response.StatusCode != 200 && answer.Code == ""
	misusedIf(isOther, "not_paybell", fmt.Sprintf("HTTP %d without an answer of Paybell's.", response.StatusCode))
	if response.StatusCode != 200 {
		refusal := mistake(answer.Code, answer.Detail)
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
