package simulator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// The cookies of Access. The edge removes the second from requests to the origin.
const (
	sessionCookie = "CF_Authorization"
	bindingCookie = "CF_Binding"
)

// sessionHeader is the header in which a program sends the token instead of the cookie.
const sessionHeader = "Cf-Access-Token"

// authorizedPath is where a login leads on the application's hostname.
const authorizedPath = "/cdn-cgi/access/authorized"

// accessAnswer returns what Access answers to a request for the account's hostname, or nil
// if the request passes. A request that passes an application gets its token in the header
// Cf-Access-Jwt-Assertion, which replaces a visitor's own. Without an application, and with
// one that bypasses Access, the edge leaves the header alone; whether Cloudflare removes it
// then is uncertain, and this is the more permissive behavior.
func (s *Server) accessAnswer(account, host string, r *http.Request) http.Handler {
	app, covered := s.options.Access.Covering(account, host, r.URL.Path)
	if !covered || bypassed(app) {
		return nil
	}
	if r.URL.Path == authorizedPath {
		return s.authorize(r.URL.Query())
	}
	if isPreflight(r) {
		return preflight{app.CORS}
	}
	token, claims, ok := s.admit(app, r)
	if !ok {
		return s.login(app, host)
	}
	r.Header.Set(assertionHeader, token)
	r.Header.Del("Cf-Access-Authenticated-User-Email")
	if claims.Email != "" {
		r.Header.Set("Cf-Access-Authenticated-User-Email", claims.Email)
	}
	removeCookie(r.Header, bindingCookie)
	return nil
}

// admit returns the token of a request that the application admits: that of its session, or
// a new one for a service token.
func (s *Server) admit(app access.Application, r *http.Request) (token string, claims tokenPayload, ok bool) {
	team := s.options.Access.TeamName(app.Account)
	if id := r.Header.Get("Cf-Access-Client-Id"); s.isServiceToken(id, r.Header.Get("Cf-Access-Client-Secret")) && admitsService(app, id) {
		token := Claims{Team: team, Audience: []string{app.AUD}, CommonName: id, nonce: newNonce(app)}.Sign()
		claims, err := verify(team, token)
		return token, claims, err == nil
	}
	tokens := r.Header.Values(sessionHeader)
	for _, cookie := range r.CookiesNamed(sessionCookie) {
		tokens = append(tokens, cookie.Value)
	}
	for _, token := range tokens {
		claims, err := verify(team, token)
		if err == nil && inSession(app, claims) && (!app.BindingCookie || isBound(team, token, r)) {
			return token, claims, true
		}
	}
	return "", tokenPayload{}, false
}

// login returns the redirect to the login page of the account's team. An application that
// admits only service tokens has none.
func (s *Server) login(app access.Application, host string) http.Handler {
	team := s.options.Access.TeamName(app.Account)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.ContainsFunc(app.Policies, func(p access.Policy) bool { return p.Decision == "allow" }) {
			forbidden(w, "That account does not have access.")
			return
		}
		w.Header().Set("Www-Authenticate", `Cloudflare-Access resource_metadata="https://`+host+`/.well-known/cloudflare-access-protected-resource/"`)
		query := url.Values{"redirect_url": {r.URL.RequestURI()}}
		// #nosec G710 -- the hostname comes from the zones
		http.Redirect(w, r, issuerOf(team)+"/cdn-cgi/access/login/"+host+"?"+query.Encode(), http.StatusFound)
	})
}

func forbidden(w http.ResponseWriter, text string) { http.Error(w, text, http.StatusForbidden) }

// bypassed reports whether a policy lets every request pass without a token. Policies with
// this decision precede all others.
func bypassed(app access.Application) bool {
	return slices.ContainsFunc(app.Policies, func(p access.Policy) bool {
		return p.Decision == "bypass" && includes(p, visitor{})
	})
}

// isPreflight reports whether the request asks whether a browser may send another one.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers preflight requests. Browsers send no cookies with them, so Access
// refuses them without CORS settings. (Source: Cloudflare's page about CORS in Access.)
type preflight struct{ cors *access.CORS }

// ServeHTTP implements [http.Handler].
func (p preflight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if p.cors == nil || !p.cors.AllowAllOrigins && !slices.Contains(p.cors.AllowedOrigins, origin) {
		forbidden(w, "Forbidden")
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	list := func(name string, all bool, values []string) {
		if all {
			values = []string{"*"}
		}
		if len(values) > 0 {
			header.Set(name, strings.Join(values, ", "))
		}
	}
	list("Access-Control-Allow-Methods", p.cors.AllowAllMethods, p.cors.AllowedMethods)
	list("Access-Control-Allow-Headers", p.cors.AllowAllHeaders, p.cors.AllowedHeaders)
	if p.cors.AllowCredentials {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
	if p.cors.MaxAge != nil {
		header.Set("Access-Control-Max-Age", strconv.Itoa(*p.cors.MaxAge))
	}
	w.WriteHeader(http.StatusOK)
}

// removeCookie removes a cookie from the requests' header.
func removeCookie(header http.Header, name string) {
	var kept []string
	for _, line := range header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			if key, _, _ := strings.Cut(strings.TrimSpace(pair), "="); key != name {
				kept = append(kept, strings.TrimSpace(pair))
			}
		}
	}
	header.Del("Cookie")
	if len(kept) > 0 {
		header.Set("Cookie", strings.Join(kept, "; "))
	}
}
