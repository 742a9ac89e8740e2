package simulator

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// Session is a visitor's login to an application.
type Session struct {
	// Token is what the cookie CF_Authorization contains. Backends see it.
	Token string
	// Binding is what the cookie CF_Binding contains. Only applications with the binding
	// cookie demand it.
	Binding string
}

// Cookie returns the header Cookie with which a browser sends the session.
func (c Session) Cookie() string {
	if c.Binding == "" {
		return sessionCookie + "=" + c.Token
	}
	return sessionCookie + "=" + c.Token + "; " + bindingCookie + "=" + c.Binding
}

// Login logs a user in to the application that protects the root path of the account's
// hostname. It returns an error if there is none, or if the policies do not admit the user.
func (s *Server) Login(account, host, email string) (Session, error) {
	app, covered := s.options.Access.Covering(account, host, "/")
	if !covered {
		return Session{}, fmt.Errorf("no application protects %s", host)
	}
	if !admitsUser(app, email) {
		return Session{}, fmt.Errorf("the policies of the application for %s do not admit %s", host, email)
	}
	team := s.options.Access.TeamName(account)
	claims := Claims{Team: team, Audience: []string{app.AUD}, Email: email, nonce: newNonce(app)}
	session := Session{Token: claims.lasting(app.SessionDuration).Sign()}
	if app.BindingCookie {
		session.Binding = bindingOf(team, session.Token)
	}
	return session, nil
}

// AddServiceToken creates a service token. Programs send the ID in the header
// CF-Access-Client-Id and the secret in CF-Access-Client-Secret.
func (s *Server) AddServiceToken(id, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serviceTokens == nil {
		s.serviceTokens = map[string]string{}
	}
	s.serviceTokens[id] = secret
}

func (s *Server) isServiceToken(id, secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, ok := s.serviceTokens[id]
	return ok && stored == secret
}

// newNonce returns the nonce of a new session. It names how often the application's tokens
// have been revoked, so that a revocation ends the session.
func newNonce(app access.Application) string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return strconv.Itoa(app.Revocations) + "-" + hex.EncodeToString(random)
}

// inSession reports whether the application's edge accepts a token with the claims: it is
// for this application, a login has issued it, and it has not been revoked since. The edge
// asks the policies only at the login.
func inSession(app access.Application, claims tokenPayload) bool {
	return slices.Contains(claims.Audience, app.AUD) && strings.HasPrefix(claims.Nonce, strconv.Itoa(app.Revocations)+"-")
}

// bindingOf returns the binding cookie of a token.
func bindingOf(team, token string) string {
	mac := hmac.New(sha256.New, keyOf(team).D.Bytes())
	mac.Write([]byte(token))
	return hex.EncodeToString(mac.Sum(nil))
}

func isBound(team, token string, r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(bindingCookie), func(c *http.Cookie) bool { return c.Value == bindingOf(team, token) })
}

// team returns the handler for the address of a team: its public keys, and the login. The
// login asks for no password: it takes the user's address from the parameter email.
func (s *Server) team(name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cdn-cgi/access/certs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(keySet(name)) // fails only if the client has disconnected
	})
	mux.HandleFunc("/cdn-cgi/access/login/{host}", func(w http.ResponseWriter, r *http.Request) {
		host, email := r.PathValue("host"), r.FormValue("email")
		steps := s.options.Zones.Lookup(host).Steps
		if len(steps) == 0 || s.options.Access.TeamName(steps[0].Zone.Account) != name {
			http.Error(w, "Unable to find your Access application!", http.StatusNotFound)
			return
		}
		if email == "" {
			_, _ = w.Write([]byte("Log in: add the parameter email to the URL.\n"))
			return
		}
		session, err := s.Login(steps[0].Zone.Account, host, email)
		if err != nil {
			forbidden(w, "That account does not have access.")
			return
		}
		query := url.Values{"code": {s.newCode(session)}, "redirect_url": {r.FormValue("redirect_url")}}
		http.Redirect(w, r, "https://"+host+authorizedPath+"?"+query.Encode(), http.StatusFound) // #nosec G710 -- the hostname has an application
	})
	return mux
}

// newCode returns a code with which the application's hostname sets the session's cookies,
// once.
func (s *Server) newCode(session Session) string {
	code := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.codes == nil {
		s.codes = map[string]Session{}
	}
	s.codes[code] = session
	return code
}

// authorize sets the cookies of the session with the code.
func (s *Server) authorize(query url.Values) http.Handler {
	code, target := query.Get("code"), query.Get("redirect_url")
	s.mu.Lock()
	session, ok := s.codes[code]
	delete(s.codes, code)
	s.mu.Unlock()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ok {
			forbidden(w, "Invalid login session.")
			return
		}
		setCookie(w, sessionCookie, session.Token)
		if session.Binding != "" {
			setCookie(w, bindingCookie, session.Binding)
		}
		if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
			target = "/"
		}
		http.Redirect(w, r, target, http.StatusFound) // #nosec G710 -- the target is a path
	})
}

func setCookie(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: true}) // #nosec G124 -- SameSite is not simulated
}
