package simulator

import (
	"net/http"
	"slices"
)

// assertionHeader is the header with which the edge sends a visitor's token to the origin.
// Connectors look only there.
const assertionHeader = "Cf-Access-Jwt-Assertion"

// protect returns a handler that passes requests with a token of the team for one of the
// audiences, as cloudflared does: without a token and with one for other audiences, it
// returns 403. With a token that it cannot verify, for example an expired one, it returns
// 502, as with any other error. (Sources: Handle in ingress/middleware/jwtvalidator.go and
// ProxyHTTP in proxy/proxy.go of cloudflared. A team without a name has no keys.)
func (a accessRule) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get(assertionHeader)
		if token == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		claims, err := verify(a.TeamName, token)
		switch {
		case err != nil || a.TeamName == "":
			// cloudflared answers with a status alone; the text is for tests.
			http.Error(w, "unable to verify the token", http.StatusBadGateway)
		case !slices.ContainsFunc(claims.Audience, func(tag string) bool { return slices.Contains(a.AUDTag, tag) }):
			w.WriteHeader(http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
