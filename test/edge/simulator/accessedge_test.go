package simulator_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// site is a zone whose hostnames lead to a backend that answers with the header it gets.
// Its rules demand no token.
type site struct {
	*simulator.Server
	access  *access.Database
	reached *http.Header // of the last request, or nil
}

func newAccessSite(t *testing.T) *site {
	t.Helper()
	origin := httptest.NewServer(nil)
	t.Cleanup(origin.Close)
	database := zones.New(zones.Options{})
	database.Add(zones.Zone{ID: "example", Name: "example.com", Account: account})
	b := &site{access: access.New(access.Options{TeamName: "acme"})}
	origin.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { b.reached = &r.Header })
	s, c := newAPI(t, simulator.Options{
		Zones: database, Access: b.access, Dial: origins{"web:80": origin.Listener.Addr().String()}.dial,
	})
	b.Server = s
	id := c.create(t, "one").ID
	s.SetConfiguration(id, []byte(`{"ingress":[{"service":"http://web:80"}]}`))
	for _, name := range []string{"example.com", "*", "a.deep"} {
		createRecord(t, c, "example", `{"name":"`+name+`","type":"CNAME","content":"`+id+`.cfargotunnel.com","proxied":true}`)
	}
	return b
}

// protect creates an application. others are further fields, as in JSON.
func (b *site) protect(t *testing.T, domain, policies, others string) access.Application {
	t.Helper()
	app, err := b.access.Create(account, fmt.Appendf(nil, `{"type":"self_hosted","name":"x","domain":%q,"policies":[%s]%s}`, domain, policies, others))
	if err != nil {
		t.Fatal(err)
	}
	return app
}

const (
	staff  = `{"decision":"allow","include":[{"email_domain":{"domain":"example.com"}}],"exclude":[{"email":{"email":"bob@example.com"}}]}`
	bypass = `{"decision":"bypass","include":[{"everyone":{}}]}`
)

// login logs a member of the staff in.
func (b *site) login(t *testing.T, host string) simulator.Session {
	t.Helper()
	session, err := b.Login(account, host, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// visit sends a request with the header's lines. It returns the answer, and the header that
// the backend got, or nil.
func (b *site) visit(t *testing.T, method, rawURL string, lines ...string) (*httptest.ResponseRecorder, *http.Header) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, rawURL, nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	b.reached = nil
	answer := httptest.NewRecorder()
	b.Visitors().ServeHTTP(answer, request)
	return answer, b.reached
}

// wantStatus checks the status, and that the backend gets a request only with 200.
func (b *site) wantStatus(t *testing.T, rawURL string, status int, lines ...string) {
	t.Helper()
	answer, reached := b.visit(t, http.MethodGet, rawURL, lines...)
	if answer.Code != status || (reached != nil) != (status == http.StatusOK) {
		t.Errorf("%s %q: %d, backend reached: %t, want %d", rawURL, lines, answer.Code, reached != nil, status)
	}
}

func TestAccessAsksVisitorsToLogIn(t *testing.T) {
	b := newAccessSite(t)
	b.wantStatus(t, "http://www.example.com/", 200)
	app := b.protect(t, "www.example.com", staff, "")
	for _, form := range []string{"www.example.com", "WWW.example.com", "www.example.com.", "www.example.com:443"} {
		answer, reached := b.visit(t, http.MethodGet, "http://"+form+"/a?b=c", "Cf-Access-Jwt-Assertion: "+tokenFor("acme", app.AUD))
		wantAnswer(t, answer, http.StatusFound, "")
		location, err := url.Parse(answer.Header().Get("Location"))
		if err != nil || location.Host != "acme.cloudflareaccess.com" || !strings.HasPrefix(location.Path, "/cdn-cgi/access/login/") ||
			location.Query().Get("redirect_url") != "/a?b=c" {
			t.Errorf("%s: Location %s", form, location)
		}
		if reached != nil || !strings.HasPrefix(answer.Header().Get("Www-Authenticate"), "Cloudflare-Access ") {
			t.Errorf("%s: header %v, backend reached: %t", form, answer.Header(), reached != nil)
		}
	}
	b.wantStatus(t, "http://other.example.com/", 200)
	if err := b.access.Delete(account, app.ID); err != nil {
		t.Fatal(err)
	}
	b.wantStatus(t, "http://www.example.com/", 200)
}

// browse follows redirects as a browser does, with its cookies for the hostname.
func (b *site) browse(t *testing.T, rawURL string) (*httptest.ResponseRecorder, []*http.Cookie) {
	t.Helper()
	var cookies []*http.Cookie
	for range 10 {
		var lines []string
		if !strings.Contains(rawURL, "cloudflareaccess.com") {
			for _, c := range cookies {
				lines = append(lines, "Cookie: "+c.Name+"="+c.Value)
			}
		} else if strings.Contains(rawURL, "/login/") {
			rawURL += "&email=ada@example.com"
		}
		answer, _ := b.visit(t, http.MethodGet, rawURL, lines...)
		cookies = append(cookies, answer.Result().Cookies()...)
		if answer.Code != http.StatusFound {
			return answer, cookies
		}
		location, err := url.Parse(rawURL)
		if err == nil {
			location, err = location.Parse(answer.Header().Get("Location"))
		}
		if err != nil {
			t.Fatal(err)
		}
		rawURL = location.String()
	}
	t.Fatalf("too many redirects, the last to %s", rawURL)
	return nil, nil
}

func TestLoginLeadsBackWithTheSessionsCookies(t *testing.T) {
	b := newAccessSite(t)
	app := b.protect(t, "*.example.com", staff, `,"enable_binding_cookie":true`)
	answer, cookies := b.browse(t, "https://www.example.com/page?x=1")
	if answer.Code != http.StatusOK || len(cookies) != 2 || cookies[0].Name != "CF_Authorization" || cookies[1].Name != "CF_Binding" {
		t.Fatalf("%d with cookies %v, want 200 and both cookies", answer.Code, cookies)
	}
	_, header := b.visit(t, http.MethodGet, "http://www.example.com/", "Cookie: a=b; CF_Binding="+cookies[1].Value+"; CF_Authorization="+cookies[0].Value,
		"Cf-Access-Jwt-Assertion: forged", "Cf-Access-Authenticated-User-Email: root@example.com")
	if header == nil {
		t.Fatal("the session does not pass")
	}
	for name, want := range map[string]string{
		"Cookie": "a=b; CF_Authorization=" + cookies[0].Value, "Cf-Access-Jwt-Assertion": cookies[0].Value,
		"Cf-Access-Authenticated-User-Email": "ada@example.com",
	} {
		if got := strings.Join(header.Values(name), ", "); got != want {
			t.Errorf("the backend gets %s: %s, want %s", name, got, want)
		}
	}
	if _, err := b.Login(account, "www.example.com", "bob@example.com"); err == nil {
		t.Error("bob is excluded, but logs in")
	}
	answer, _ = b.visit(t, http.MethodGet, "https://acme.cloudflareaccess.com/cdn-cgi/access/login/www.example.com?email=eve@example.org")
	wantAnswer(t, answer, http.StatusForbidden, "")
	answer, _ = b.visit(t, http.MethodGet, "https://another.cloudflareaccess.com/cdn-cgi/access/login/www.example.com?email=ada@example.com")
	wantAnswer(t, answer, http.StatusNotFound, "")
	b.wantStatus(t, "http://www.example.com/cdn-cgi/access/authorized?code=x", 403)
	answer, _ = b.visit(t, http.MethodGet, "https://acme.cloudflareaccess.com/cdn-cgi/access/certs")
	wantAnswer(t, answer, http.StatusOK, `"kty":"RSA"`)
	if app.AUD == "" {
		t.Error("the application has no AUD tag")
	}
}

// Backends see a visitor's token, but not the binding cookie. The token therefore opens no
// other hostname of the application.
func TestTokenThatABackendHasSeenOpensNoOtherHostname(t *testing.T) {
	b := newAccessSite(t)
	b.protect(t, "*.example.com", staff, `,"enable_binding_cookie":true`)
	exact := b.protect(t, "exact.example.com", staff, "")
	session := b.login(t, "a.example.com")
	b.wantStatus(t, "http://a.example.com/", 200, "Cookie: "+session.Cookie())
	seen := simulator.Session{Token: session.Token}
	for _, line := range []string{"Cookie: " + seen.Cookie(), "Cf-Access-Token: " + seen.Token, "Cf-Access-Jwt-Assertion: " + seen.Token,
		"Cookie: " + simulator.Session{Token: session.Token, Binding: strings.Repeat("0", len(session.Binding))}.Cookie()} {
		b.wantStatus(t, "http://b.example.com/", 302, line)
		b.wantStatus(t, "http://a.example.com/", 302, line)
		b.wantStatus(t, "http://exact.example.com/", 302, line)
		b.wantStatus(t, "http://a.deep.example.com/", 200, line) // a wildcard covers one level
	}
	b.wantStatus(t, "http://exact.example.com/", 302, "Cookie: "+session.Cookie())
	own := b.login(t, "exact.example.com")
	b.wantStatus(t, "http://exact.example.com/", 200, "Cookie: "+own.Cookie())
	b.wantStatus(t, "http://exact.example.com/", 200, "Cf-Access-Token: "+own.Token)
	b.wantStatus(t, "http://exact.example.com/", 302, "Cookie: "+simulator.Session{Token: tokenFor("acme", exact.AUD)}.Cookie())
	b.wantStatus(t, "http://a.example.com/", 302, "Cookie: "+own.Cookie())
}

func TestSessionsEnd(t *testing.T) {
	b := newAccessSite(t)
	app := b.protect(t, "www.example.com", staff, `,"session_duration":"1s"`)
	ask := func(status int, session simulator.Session) {
		t.Helper()
		b.wantStatus(t, "http://www.example.com/", status, "Cookie: "+session.Cookie())
	}
	short := b.login(t, "www.example.com")
	app = b.access.Edit(account, app.ID, func(fields map[string]any) { fields["session_duration"] = "1h" })
	long := b.login(t, "www.example.com")
	ask(200, long)
	time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // a session lasts a second at least
	ask(302, short)
	ask(200, long)
	b.access.Edit(account, app.ID, func(fields map[string]any) {
		fields["policies"] = []any{map[string]any{"decision": "allow", "include": []any{map[string]any{"email": map[string]any{"email": "eve@example.com"}}}}}
	})
	ask(200, long) // policies decide only at the login
	if err := b.access.Revoke(account, app.ID); err != nil {
		t.Fatal(err)
	}
	ask(302, long)
	if _, err := b.Login(account, "www.example.com", "ada@example.com"); err == nil {
		t.Error("a user whom the policies no longer admit logs in")
	}
}

func TestBypassAndServiceTokensPassAccess(t *testing.T) {
	b := newAccessSite(t)
	b.AddServiceToken("ci.access", "secret")
	b.protect(t, "*.example.com", staff+`,{"decision":"non_identity","include":[{"service_token":{"token_id":"ci.access"}}]}`, `,"enable_binding_cookie":true`)
	b.protect(t, "public.example.com", bypass, "")
	b.protect(t, "machines.example.com", `{"decision":"non_identity","include":[{"any_valid_service_token":{}}]}`, "")
	b.wantStatus(t, "http://public.example.com/", 200)
	b.wantStatus(t, "http://machines.example.com/", 403)
	for _, host := range []string{"a.example.com", "machines.example.com"} {
		b.wantStatus(t, "http://"+host+"/", 200, "CF-Access-Client-Id: ci.access", "CF-Access-Client-Secret: secret")
		if b.reached != nil && b.reached.Get("Cf-Access-Jwt-Assertion") == "" {
			t.Errorf("%s: the backend gets no token", host)
		}
	}
	b.wantStatus(t, "http://a.example.com/", 302, "CF-Access-Client-Id: ci.access", "CF-Access-Client-Secret: wrong")
	b.wantStatus(t, "http://machines.example.com/", 403, "CF-Access-Client-Id: ", "CF-Access-Client-Secret: ")
}

func TestEdgeAnswersPreflightRequestsAsTheApplicationSays(t *testing.T) {
	b := newAccessSite(t)
	b.protect(t, "plain.example.com", staff, "")
	b.protect(t, "api.example.com", staff, `,"cors_headers":{"allowed_origins":["https://app.example.com"],"allowed_methods":["GET","PUT"],`+
		`"allowed_headers":["authorization"],"allow_credentials":true,"max_age":600}`)
	ask := func(host, origin string) (*httptest.ResponseRecorder, *http.Header) {
		return b.visit(t, http.MethodOptions, "http://"+host+"/", "Origin: "+origin, "Access-Control-Request-Method: PUT")
	}
	for _, test := range []struct {
		host, origin string
		status       int
	}{
		{"plain.example.com", "https://app.example.com", 403},
		{"api.example.com", "https://app.example.com", 200},
		{"api.example.com", "https://evil.example.com", 403},
		{"api.example.com", "http://app.example.com", 403},
	} {
		answer, reached := ask(test.host, test.origin)
		if answer.Code != test.status || reached != nil {
			t.Errorf("%s from %s: %d, backend reached: %t, want %d by the edge", test.host, test.origin, answer.Code, reached != nil, test.status)
		}
		if allowed := answer.Header().Get("Access-Control-Allow-Origin"); (allowed == test.origin) != (test.status == 200) {
			t.Errorf("%s allows %q", test.host, allowed)
		}
	}
	answer, _ := ask("api.example.com", "https://app.example.com")
	for name, want := range map[string]string{
		"Access-Control-Allow-Methods": "GET, PUT", "Access-Control-Allow-Headers": "authorization",
		"Access-Control-Allow-Credentials": "true", "Access-Control-Max-Age": "600", "Vary": "Origin",
	} {
		if got := answer.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// OPTIONS alone is no preflight request, and needs a login.
	plain, reached := b.visit(t, http.MethodOptions, "http://api.example.com/")
	if plain.Code != http.StatusFound || reached != nil {
		t.Errorf("%d, backend reached: %t, want the login", plain.Code, reached != nil)
	}
}
