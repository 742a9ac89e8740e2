package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// edgeError is an error with which Cloudflare itself answers a visitor. The number is the HTTP
// status, or one of Cloudflare's own with four digits.
type edgeError int

// Errors for a request that Cloudflare cannot send to an origin.
const (
	errNoZone       edgeError = 1001 // DNS resolution error
	errOtherAccount edgeError = 1014 // CNAME cross-user banned
	errNoOrigin     edgeError = 1016 // origin DNS error
	errNoTunnel     edgeError = 1033 // the tunnel has no connection
)

// edgeStatuses are the HTTP statuses of the errors with four digits, as the documentation
// gives them.
var edgeStatuses = map[edgeError]int{
	1000: http.StatusForbidden, errNoZone: http.StatusConflict, 1010: http.StatusForbidden,
	errOtherAccount: http.StatusForbidden, 1015: http.StatusTooManyRequests, errNoOrigin: statusNoTunnel,
	1020: http.StatusForbidden, errNoTunnel: statusNoTunnel, 1101: http.StatusInternalServerError,
}

func (e edgeError) status() int {
	if status, ok := edgeStatuses[e]; ok {
		return status
	}
	if e >= 1000 {
		return http.StatusInternalServerError
	}
	return int(e)
}

// EdgeError returns a handler that answers with an error of Cloudflare, for example 1033 or 522,
// in the format that the client asks for: JSON, Markdown, HTML, and otherwise text. (Sources:
// Cloudflare's documentation of error responses; public reports for text, which curl gets
// although it accepts everything.)
func EdgeError(number int) http.Handler { return edgeError(number) }

// ServeHTTP implements [http.Handler].
func (e edgeError) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, body := "text/plain; charset=UTF-8", fmt.Sprintf("error code: %d", e)
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, "json"):
		kind, body = "application/json; charset=utf-8", e.json()
	case strings.Contains(accept, "text/markdown"):
		kind, body = "text/markdown; charset=utf-8", e.markdown()
	case strings.Contains(accept, "text/html"):
		kind, body = "text/html; charset=UTF-8", e.html(r.Host)
	}
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "private, max-age=0, no-store, no-cache, must-revalidate, post-check=0, pre-check=0")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Frame-Options", "SAMEORIGIN")
	w.WriteHeader(e.status())
	_, _ = w.Write([]byte(body)) // #nosec G705 -- a test reads it, and no browser
}

func (e edgeError) json() string {
	text, _ := json.Marshal(map[string]any{ // cannot fail
		"title": fmt.Sprintf("Error %d", e), "status": e.status(), "error_code": int(e), "cloudflare_error": true,
	})
	return string(text)
}

func (e edgeError) markdown() string {
	return fmt.Sprintf("---\nerror_code: %d\nstatus: %d\ncloudflare_error: true\n---\n\n# Error %d\n", e, e.status(), e)
}

// html returns a page with the marks of Cloudflare's. Errors with three digits have another
// page than those with four. The page of the WAF has no number.
func (e edgeError) html(host string) string {
	title, number := fmt.Sprintf("Error %d | %s | Cloudflare", e, host), fmt.Sprintf(
		`<span class="cf-error-type">Error</span> <span class="cf-error-code">%d</span>`, e)
	switch {
	case e == 1020:
		title, number = "Attention Required! | Cloudflare", "<h1>Sorry, you have been blocked</h1>"
	case e < 1000:
		title, number = fmt.Sprintf("%s | %d: %s", host, e, http.StatusText(int(e))), fmt.Sprintf(`<span class="code-label">Error code %d</span>`, e)
	}
	return fmt.Sprintf(`<!DOCTYPE html><html><head><title>%s</title><link rel="stylesheet" href="/cdn-cgi/styles/main.css"></head>`+
		`<body><div id="cf-wrapper"><div id="cf-error-details">%s</div></div></body></html>`, title, number)
}

// Challenge returns a handler that answers with the page with which Cloudflare finds out
// whether a visitor is human.
func Challenge() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cf-Mitigated", "challenge")
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>")) // as above
	})
}

// Cached returns a handler that answers from Cloudflare's cache.
func Cached() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cf-Cache-Status", "HIT")
		w.WriteHeader(http.StatusOK)
	})
}
