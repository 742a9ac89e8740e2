package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLinkWorksOnce(t *testing.T) {
	s := newTestServer()
	link := s.NewLink()
	if w := ask(s, link); w.Code != http.StatusSeeOther {
		t.Fatalf("first use: got %d", w.Code)
	}
	if w := ask(s, link); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
		t.Errorf("second use: got %d and the cookies %v", w.Code, w.Result().Cookies())
	}
}

func TestNewLinkEndsTheUnusedOne(t *testing.T) {
	s := newTestServer()
	first, second := s.NewLink(), s.NewLink()
	if w := ask(s, first); w.Code != http.StatusForbidden {
		t.Errorf("the earlier link: got %d", w.Code)
	}
	if w := ask(s, second); w.Code != http.StatusSeeOther {
		t.Errorf("the newest link: got %d", w.Code)
	}
}

func TestOnlyTheTokenBeginsASession(t *testing.T) {
	s := newTestServer()
	for _, link := range []string{"/", "/?token=", "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", "/?token=&token=x", "/?Token=x"} {
		if w := ask(s, link); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s without a link: got %d and the cookies %v", link, w.Code, w.Result().Cookies())
		}
	}
	link := s.NewLink()
	for _, guess := range []string{"/?token=", link + "A", link[:len(link)-1], strings.ToLower(link), "/?token=x&" + link[2:], "/hostnames" + link[1:], "/%2f" + link[1:]} {
		if w := ask(s, guess); w.Code == http.StatusSeeOther || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: got %d and the cookies %v", guess, w.Code, w.Result().Cookies())
		}
	}
	if w := ask(s, link); w.Code != http.StatusSeeOther {
		t.Errorf("the link after wrong guesses: got %d", w.Code)
	}
}

func TestPreparingAVisitDoesNotUseUpTheLink(t *testing.T) {
	s := newTestServer()
	link := s.NewLink()
	for name, change := range map[string]func(*http.Request){
		"HEAD":         method(http.MethodHead),
		"prefetch":     header("Sec-Purpose", "prefetch"),
		"prerender":    header("Sec-Purpose", "prefetch;prerender"),
		"another site": header("Sec-Fetch-Site", "cross-site"),
		"another host": host("evil.example:8088"),
		"POST":         method(http.MethodPost),
	} {
		if w := ask(s, link, change); w.Code < 400 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: got %d and the cookies %v", name, w.Code, w.Result().Cookies())
		}
	}
	if w := ask(s, link); w.Code != http.StatusSeeOther {
		t.Errorf("the visit after that: got %d", w.Code)
	}
}

func TestReloadingAnOldLinkKeepsTheSession(t *testing.T) {
	s := newTestServer()
	link := s.NewLink()
	cookie := ask(s, link).Result().Cookies()[0]
	w := ask(s, link, func(r *http.Request) { r.AddCookie(cookie) })
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) > 0 {
		t.Errorf("got %d and the cookies %v", w.Code, w.Result().Cookies())
	}
}

func TestCookieBelongsToOneServerAndIsNotForScripts(t *testing.T) {
	s := newTestServer()
	c := ask(s, s.NewLink()).Result().Cookies()[0]
	if c.Name != "tunnel-gateway-ui-8088" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("got the cookie %s", c)
	}
	for _, value := range []string{"", "x", c.Value + "x", strings.ToLower(c.Value)} {
		other := *c // #nosec G124 -- sent by the test
		other.Value = value
		if w := ask(s, "/", func(r *http.Request) { r.AddCookie(&other) }); w.Code != http.StatusForbidden {
			t.Errorf("cookie %q: got %d", value, w.Code)
		}
	}
	other := newTestServer()
	if w := ask(other, "/", func(r *http.Request) { r.AddCookie(c) }); w.Code != http.StatusForbidden {
		t.Errorf("the cookie of an earlier process: got %d", w.Code)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newTestServer()
	first := visitor(t, s)
	for range maxSessions - 1 {
		visitor(t, s)
	}
	if w := ask(s, "/", first); w.Code != http.StatusOK {
		t.Fatalf("the oldest of %d sessions: got %d", maxSessions, w.Code)
	}
	last := visitor(t, s)
	if w := ask(s, "/", first); w.Code != http.StatusForbidden {
		t.Errorf("the oldest session after one more: got %d", w.Code)
	}
	if w := ask(s, "/", last); w.Code != http.StatusOK {
		t.Errorf("the newest session: got %d", w.Code)
	}
}

func TestOtherHostsAreRefused(t *testing.T) {
	s := newTestServer()
	s.Hosts = append(s.Hosts, "[::1]:8088", "localhost:8088")
	for _, name := range s.Hosts {
		if w := ask(s, s.NewLink(), host(name)); w.Code != http.StatusSeeOther {
			t.Errorf("Host %q: got %d", name, w.Code)
		}
	}
	as := visitor(t, s)
	for _, name := range []string{
		"", "evil.example", "evil.example:8088", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8088.", "127.0.0.1.:8088", "127.0.0.1.evil.example:8088",
		"LOCALHOST:8088", "localhost.:8088", "::1:8088", "[::1]", "[::1%25lo]:8088", "127.1:8088", "0.0.0.0:8088", "user@127.0.0.1:8088", "127.0.0.1:8088,evil.example",
	} {
		for _, target := range []string{"/", "/events", "/assets/page.js", "/nothing"} {
			if w := ask(s, target, as, host(name)); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("Host %q, %s: got %d", name, target, w.Code)
			}
		}
	}
}

func TestRequestForAnotherHostOnTheWireIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	address := server.Listener.Addr().String()
	s := newTestServer()
	s.Hosts = []string{address}
	server.Config.Handler = s
	server.Start()
	defer server.Close()
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": "400",
		"GET / HTTP/1.0\r\n\r\n": "421",
		"GET / HTTP/1.1\r\nHost: " + address + "\r\nHost: evil.example\r\n\r\n":              "400",
		"GET http://evil.example/ HTTP/1.1\r\nHost: " + address + "\r\n\r\n":                 "421",
		"GET //evil.example/ HTTP/1.1\r\nHost: " + address + "\r\n\r\n":                      "403",
		"GET " + s.NewLink() + " HTTP/1.1\r\nHost: evil.example\r\n\r\n":                     "421",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: " + address + "\r\n\r\n":                 "421",
		"GET /" + strings.Repeat("a", maxURL) + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n": "414",
	} {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(connection).ReadString('\n')
		if err != nil || !strings.Contains(line, " "+want+" ") {
			t.Errorf("%.100q: got %q and %v, want %s", request, line, err, want)
		}
		_ = connection.Close()
	}
}

func TestOnlyGetAndHeadAreAnswered(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	for _, name := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "get"} {
		for _, target := range []string{"/", "/events", "/assets/page.js", "/nothing"} {
			if w := ask(s, target, as, method(name)); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: got %d and Allow %q", name, target, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	for site, want := range map[string]int{
		"same-origin": http.StatusOK, "none": http.StatusOK,
		"cross-site": http.StatusForbidden, "same-site": http.StatusForbidden, "unknown": http.StatusForbidden,
	} {
		if w := ask(s, "/", as, header("Sec-Fetch-Site", site)); w.Code != want {
			t.Errorf("Sec-Fetch-Site %s: got %d, want %d", site, w.Code, want)
		}
	}
}

func TestRedirectsStayOnTheServer(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	for _, target := range []string{"//evil.example", "//evil.example/..", "/\\evil.example", "/%2f%2fevil.example", "///evil.example/%2e%2e", "/assets/..//evil.example"} {
		w := ask(s, "/", as, func(r *http.Request) {
			r.RequestURI, r.URL.Path, r.URL.RawPath = target, strings.ReplaceAll(target, "%2f", "/"), ""
		})
		if to := w.Header().Get("Location"); strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") || strings.Contains(to, "://") {
			t.Errorf("%s is redirected to %s", target, to)
		}
	}
}

func TestEachAnswerHasTheHeaders(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	long := "/?q=" + strings.Repeat("a", maxURL)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"page": ask(s, "/", as), "asset": ask(s, "/assets/page.js", as), "no page": ask(s, "/nothing", as), "no asset": ask(s, "/assets/nothing.js", as),
		"no session": ask(s, "/"), "link": ask(s, s.NewLink()), "host": ask(s, "/", host("evil.example")), "method": ask(s, "/", as, method("POST")),
		"too long": ask(s, long, as), "other site": ask(s, "/", as, header("Sec-Fetch-Site", "cross-site")), "path": ask(s, "/assets//page.js", as),
	} {
		for key, value := range headers {
			if got := w.Header().Values(key); len(got) != 1 || got[0] != value {
				t.Errorf("%s (%d): got %s %q", name, w.Code, key, got)
			}
		}
		for key := range w.Header() {
			if strings.HasPrefix(key, "Access-Control-") {
				t.Errorf("%s: got %s", name, key)
			}
		}
	}
	for _, word := range []string{"unsafe", "*", "http:", "data:", "blob:"} {
		if strings.Contains(contentPolicy, word) {
			t.Errorf("the Content-Security-Policy contains %q", word)
		}
	}
}

func TestURLsAreBounded(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	if w := ask(s, "/?q="+strings.Repeat("a", maxURL-len("/?q=")), as); w.Code != http.StatusOK {
		t.Errorf("a URL of %d bytes: got %d", maxURL, w.Code)
	}
	if w := ask(s, "/?q="+strings.Repeat("a", maxURL), as); w.Code != http.StatusRequestURITooLong {
		t.Errorf("a longer URL: got %d", w.Code)
	}
}
