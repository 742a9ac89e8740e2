package web

import (
	"net/http"
	"slices"
	"strings"
)

// maxURL is how long a path with its query can be, in bytes. A URL to explain with its
// headers fits several times.
const maxURL = 16 << 10

// contentPolicy permits only what the server itself serves, and no inline script or style.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers are in every response.
var headers = map[string]string{
	"Content-Security-Policy":      contentPolicy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cache-Control":                "no-store",
}

// refusal is why a request is not answered.
type refusal struct {
	status  int
	message string
}

const (
	messageNoSession = "Each link from tunnel-gateway ui works once, in one browser. Press Enter in its terminal for another link."
	messageCrossSite = "Another site refers to this page. Copy the link to the address bar."
)

// protect rejects requests that another host name, another site, another method or a visitor
// without a session makes. It begins a session for a request with a link's token.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch problem := s.check(r); {
		case problem != nil:
			if problem.status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD")
			}
			refuse(w, problem.status, problem.message)
		case hasToken(r):
			s.begin(w, r)
		case !s.sessions.includes(r):
			refuse(w, http.StatusForbidden, messageNoSession)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// check returns why the server does not answer the request for any visitor, or nil.
func (s *Server) check(r *http.Request) *refusal {
	switch {
	case !slices.Contains(s.Hosts, r.Host):
		return &refusal{http.StatusMisdirectedRequest, "This address is not the one that tunnel-gateway ui printed."}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &refusal{http.StatusMethodNotAllowed, "The page changes nothing, so it answers only GET requests."}
	case len(r.RequestURI) > maxURL:
		return &refusal{http.StatusRequestURITooLong, "The address is too long."}
	case isCrossSite(r):
		return &refusal{http.StatusForbidden, messageCrossSite}
	default:
		return nil
	}
}

// isCrossSite reports whether a page from another origin, also from another port, made the request.
// Old browsers do not say so; their requests from other sites have no session, because the cookie is
// SameSite=Strict.
func isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// hasToken reports whether the request is for a link from [Server.NewLink].
func hasToken(r *http.Request) bool { return r.URL.Path == "/" && r.URL.Query().Has(tokenParameter) }

// begin begins a session and removes the token from the address bar. A request that only
// prepares a visit does not use up the token.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	if !s.sessions.includes(r) { // reloading an old link does not end the session
		if r.Method == http.MethodHead || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
			refuse(w, http.StatusForbidden, messageNoSession)
			return
		}
		id, ok := s.sessions.begin(r.URL.Query().Get(tokenParameter))
		if !ok {
			refuse(w, http.StatusForbidden, messageNoSession)
			return
		}
		http.SetCookie(w, &http.Cookie{ // #nosec G124 -- the loopback address has no HTTPS, and some browsers refuse Secure without it
			Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func refuse(w http.ResponseWriter, status int, message string) { http.Error(w, message, status) }
