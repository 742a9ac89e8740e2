package simulator_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// newSite returns a server with the zone example.com, whose name www leads to a tunnel that
// answers 201.
func newSite(t *testing.T) (*simulator.Server, *zones.Database) {
	t.Helper()
	s, database, c := newZoneAPI(t, zones.Zone{ID: "example", Name: "example.com", Account: account})
	id := newTunnelWithStatus(t, s, c, "one", "201")
	createRecord(t, c, "example", `{"name":"www","type":"CNAME","content":"`+id+`.cfargotunnel.com","proxied":true}`)
	return s, database
}

// ask sends a visitor's request to www.example.com with the header's lines.
func ask(t *testing.T, s *simulator.Server, lines ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://www.example.com/a?b", nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	s.Visitors().ServeHTTP(answer, request)
	return answer
}

// wantAnswer checks the status, that the edge has answered, and that the text contains a part.
func wantAnswer(t *testing.T, got *httptest.ResponseRecorder, status int, part string) {
	t.Helper()
	if body := got.Body.String(); got.Code != status || !strings.Contains(body, part) {
		t.Errorf("%d %q, want %d with %q", got.Code, body, status, part)
	}
	if got.Header().Get("Server") != "cloudflare" || !strings.HasSuffix(got.Header().Get("Cf-Ray"), "-SIM") {
		t.Errorf("header %v, want the edge's", got.Header())
	}
}

func TestEdgeAnswersInTheFormatThatTheClientAsksFor(t *testing.T) {
	s, _ := newSite(t)
	wantAnswer(t, ask(t, s), 201, "")
	for _, test := range []struct {
		code, status int
		accept, want string
	}{
		{1033, 530, "*/*", "error code: 1033"},
		{1016, 530, "text/html", `<span class="cf-error-code">1016</span>`},
		{522, 522, "text/html", `<span class="code-label">Error code 522</span>`},
		{1020, 403, "text/html", "<title>Attention Required! | Cloudflare</title>"},
		{502, 502, "application/json", `"error_code":502`},
		{1015, 429, "text/markdown", "error_code: 1015\n"},
		{1099, 500, "", "error code: 1099"},
	} {
		s.InjectVisitor(simulator.VisitorFault{Host: "www.example.com", Times: 1, Answer: simulator.EdgeError(test.code)})
		wantAnswer(t, ask(t, s, "Accept: "+test.accept), test.status, test.want)
	}
	wantAnswer(t, ask(t, s), 201, "")
}

func TestFaultsForVisitors(t *testing.T) {
	s, _ := newSite(t)
	s.InjectVisitor(simulator.VisitorFault{Host: "other.example.com", Answer: simulator.EdgeError(1033)})
	wantAnswer(t, ask(t, s), 201, "")
	s.InjectVisitor(simulator.VisitorFault{Answer: simulator.Challenge()})
	for range 2 {
		got := ask(t, s)
		wantAnswer(t, got, 403, "Just a moment")
		if got.Header().Get("Cf-Mitigated") != "challenge" {
			t.Errorf("header %v", got.Header())
		}
	}
	s.ClearVisitorFaults()
	s.InjectVisitor(simulator.VisitorFault{Answer: simulator.Cached()})
	if got := ask(t, s); got.Code != 200 || got.Header().Get("Cf-Cache-Status") != "HIT" {
		t.Errorf("%d %v, want the cache", got.Code, got.Header())
	}
}

func TestEdgeObeysTheSettingsOfAZone(t *testing.T) {
	s, database := newSite(t)
	set := func(name, value string) {
		database.Update("example", func(z *zones.Zone) { z.Settings = map[string]string{name: value} })
	}
	wantLocation := func(want string, lines ...string) {
		t.Helper()
		got := ask(t, s, lines...)
		wantAnswer(t, got, 301, "<center>cloudflare</center>")
		if location := got.Header().Get("Location"); location != want {
			t.Errorf("Location %s, want %s", location, want)
		}
	}
	set("always_use_https", "on")
	wantLocation("https://www.example.com/a?b")
	wantAnswer(t, ask(t, s, "Cf-Visitor-Scheme: https"), 201, "")
	set("ssl", "off")
	wantLocation("http://www.example.com/a?b", "Cf-Visitor-Scheme: https")
	wantAnswer(t, ask(t, s), 201, "")
	database.Update("example", func(z *zones.Zone) { z.NoGRPC = true })
	wantAnswer(t, ask(t, s, "Content-Type: application/grpc"), 403, "")
	wantAnswer(t, ask(t, s), 201, "")
}

func TestEdgePresentsTheCertificatesOfTheZone(t *testing.T) {
	s, database := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ListenVisitors(l)
	t.Cleanup(s.Close)
	connect := func(name string) (*tls.Conn, error) {
		dialer := &tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: s.VisitorCAs(), NextProtos: []string{"h2"}}}
		c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.(*tls.Conn), nil
	}
	for name, covered := range map[string]bool{"example.com": true, "www.example.com": true, "a.www.example.com": false, "example.net": false} {
		c, err := connect(name)
		if (err == nil) != covered || covered && c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Errorf("%s: error %v, want a certificate: %t", name, err, covered)
		}
	}
	database.Update("example", func(z *zones.Zone) { z.CertificatePacks[0].Expires = time.Now().Add(-time.Hour) })
	if _, err := connect("www.example.com"); err == nil {
		t.Error("an expired certificate is valid")
	}
}

func TestResolverAnswersAsThePublicDNS(t *testing.T) {
	s, database := newSite(t)
	create := func(name, kind, content string, proxied bool) {
		t.Helper()
		f := zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: &proxied, TTL: new(1)}
		if _, err := database.Create("example", f); err != nil {
			t.Fatal(err)
		}
	}
	create("gray", "CNAME", "00000000-0000-0000-0000-000000000000.cfargotunnel.com", false)
	create("chain", "CNAME", "www.example.com", false)
	create("address", "A", "192.0.2.1", false)
	create("outside", "CNAME", "example.org", false)
	for name, want := range map[string]struct{ address, canonical string }{
		"www.example.com":     {"104.16.0.1", "www.example.com."},
		"chain.example.com":   {"104.16.0.1", "www.example.com."},
		"gray.example.com":    {"fd10:aec2:5dae::", "00000000-0000-0000-0000-000000000000.cfargotunnel.com."},
		"address.example.com": {"192.0.2.1", "address.example.com."},
		"outside.example.com": {},
		"none.example.com":    {},
	} {
		addresses, err := s.Resolver().LookupNetIP(context.Background(), "ip", name)
		canonical, _ := s.Resolver().LookupCNAME(context.Background(), name)
		if (err == nil) != (want.address != "") || err == nil && addresses[0].String() != want.address || canonical != want.canonical {
			t.Errorf("%s: %v %q and error %v, want %+v", name, addresses, canonical, err, want)
		}
	}
}

// Cloudflare replaces the page of an origin that returns 502 or 504.
func TestEdgeReplacesPagesOfOrigins(t *testing.T) {
	status, kind := http.StatusBadGateway, "text/plain"
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Server", "origin")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the origin's text")
	}))
	defer origin.Close()
	database := zones.New(zones.Options{})
	database.Add(zones.Zone{ID: "example", Name: "example.com", Account: account})
	s, c := newAPI(t, simulator.Options{Zones: database, Dial: origins{"web:80": origin.Listener.Addr().String()}.dial})
	id := c.create(t, "one").ID
	s.SetConfiguration(id, []byte(`{"ingress":[{"service":"http://web:80"}]}`))
	createRecord(t, c, "example", `{"name":"www","type":"CNAME","content":"`+id+`.cfargotunnel.com","proxied":true}`)
	wantAnswer(t, ask(t, s), 502, "error code: 502")
	status = http.StatusGatewayTimeout
	wantAnswer(t, ask(t, s), 504, "error code: 504")
	kind = "application/grpc"
	wantAnswer(t, ask(t, s), 504, "the origin's text")
	status, kind = http.StatusInternalServerError, "text/plain"
	wantAnswer(t, ask(t, s), 500, "the origin's text")
}
