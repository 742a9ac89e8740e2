package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

const testHost = "127.0.0.1:8088"

// newTestServer returns a server with an empty plan.
func newTestServer() *Server {
	feed := NewFeed()
	feed.Publish(&Snapshot{Plan: &plan.Plan{}, Time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)})
	return NewServer(Options{Feed: feed, Hosts: []string{testHost}, Input: "config/samples"})
}

// ask sends a GET request without a session, after the changes.
func ask(s *Server, target string, changes ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
	r.Host = testHost
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// visitor begins a session, and returns a change that makes a request belong to it.
func visitor(t *testing.T, s *Server) func(*http.Request) {
	t.Helper()
	w := ask(s, s.NewLink())
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || len(cookies) != 1 {
		t.Fatalf("a link is answered with %d, Location %q and %d cookies", w.Code, w.Header().Get("Location"), len(cookies))
	}
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func TestPageNamesItsInputAndTime(t *testing.T) {
	s := newTestServer()
	body := ask(s, "/", visitor(t, s)).Body.String()
	for _, want := range []string{"config/samples", `<time datetime="2026-05-04T03:02:01Z">2026-05-04 03:02:01 UTC</time>`, `<a href="/" aria-current="page">Overview</a>`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %s:\n%s", want, body)
		}
	}
}

func TestPageShowsTheProblemBesideTheLastSnapshot(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	before := s.Feed.State().Revision
	s.Feed.Fail("The API server does not answer.")
	body := ask(s, "/", as).Body.String()
	if !strings.Contains(body, `role="alert">The API server does not answer.</p>`) || !strings.Contains(body, "<h1>") {
		t.Errorf("the page does not show the problem and the snapshot:\n%s", body)
	}
	if s.Feed.State().Revision <= before {
		t.Error("a problem does not change the revision, so that pages do not show it")
	}
}

func TestPageWithoutSnapshotIsWhole(t *testing.T) {
	s := NewServer(Options{Feed: NewFeed(), Hosts: []string{testHost}})
	w := ask(s, "/", visitor(t, s))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "tunnel-gateway reads the objects.") {
		t.Errorf("got %d:\n%s", w.Code, w.Body)
	}
}

func TestHeadHasTheHeadersOfGet(t *testing.T) {
	server := httptest.NewServer(nil)
	defer server.Close()
	s := newTestServer()
	s.Hosts = []string{server.Listener.Addr().String()}
	server.Config.Handler = s
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, s.NewLink(), http.NoBody)
	r.Host = s.Hosts[0]
	s.ServeHTTP(w, r)
	for _, path := range []string{"/", "/events", "/assets/style.css", "/nothing"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.AddCookie(w.Result().Cookies()[0])
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		want := http.StatusOK
		if path == "/nothing" {
			want = http.StatusNotFound
		}
		if response.StatusCode != want {
			t.Errorf("HEAD %s: got %s, want %d", path, response.Status, want)
		}
	}
}

func TestAssetsAreOnlyFilesThatThePageUses(t *testing.T) {
	s := newTestServer()
	as := visitor(t, s)
	for path, want := range map[string]string{
		"/assets/style.css":          "text/css; charset=utf-8",
		"/assets/page.js":            "text/javascript; charset=utf-8",
		"/assets/vendor/htmx.min.js": "text/javascript; charset=utf-8",
		"/assets/favicon.svg":        "image/svg+xml",
	} {
		if w := ask(s, path, as); w.Code != http.StatusOK || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: got %d and type %q, want %q", path, w.Code, w.Header().Get("Content-Type"), want)
		}
	}
	for _, path := range []string{
		"/assets/", "/assets/vendor/", "/assets/vendor", "/assets/vendor/SHA256SUMS", "/assets/%2e%2e/templates/page.html",
		"/assets/..%2ftemplates%2fpage.html", "/assets//style.css/", "/assets/style.css%00", "/templates/page.html",
	} {
		if w := ask(s, path, as); w.Code == http.StatusOK {
			t.Errorf("%s is served:\n%s", path, w.Body)
		}
	}
}
