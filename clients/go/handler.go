package paybell

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
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
		w.WriteHeader(statusOf(w, r, keys, onIPN))
	})
}

func statusOf(w http.ResponseWriter, r *http.Request, keys Source, onIPN func(*http.Request, *Received) error) int {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, BodyBytesMax))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	received, err := Open(body, r.Header, keys)
	var refusal *Error
	if errors.As(err, &refusal) {
		slog.Warn("paybell: IPN refused ("+refusal.Code+")", "finding", refusal.Finding, "remedy", refusal.Remedy)
		return http.StatusBadRequest
	}
	if err == nil {
		err = onIPN(r, received)
	}
	if err != nil {
		slog.Error("paybell: IPN not processed; it will be delivered again", "error", err)
		return http.StatusInternalServerError
	}
	return http.StatusNoContent
}
