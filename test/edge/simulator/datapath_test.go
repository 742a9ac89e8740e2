package simulator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// origins maps a service's host and port to its origin's address.
type origins map[string]string

func (o origins) dial(ctx context.Context, network, address string) (net.Conn, error) {
	actual, ok := o[address]
	if !ok {
		return nil, errors.New("no origin at " + address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, actual)
}

// echo returns the request's protocol, host, path and X-Forwarded-Host.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s %s %s fwd=%s", r.Proto, r.Host, r.RequestURI, r.Header.Get("X-Forwarded-Host"))
})

// newTunnel returns a server with one remotely configured tunnel and the address of its
// data path.
func newTunnel(t *testing.T, o simulator.Options) (s *simulator.Server, id, address string) {
	t.Helper()
	s = simulator.New(o)
	t.Cleanup(s.Close)
	api := httptest.NewServer(s.API())
	t.Cleanup(api.Close)
	client := newClient(api.URL)
	id = client.create(t, "tunnel").ID
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listen(id, l)
	return s, id, l.Addr().String()
}

// get sends a request for host and target to the data path.
func get(t *testing.T, address, host, target string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func TestDataPathServesTheStoredConfiguration(t *testing.T) {
	origin := httptest.NewServer(echo)
	defer origin.Close()
	resolver := origins{"app.team.svc:8080": origin.Listener.Addr().String()}
	s, id, address := newTunnel(t, simulator.Options{Dial: resolver.dial})

	if status, _ := get(t, address, "a.test", "/"); status != http.StatusServiceUnavailable {
		t.Errorf("before any configuration: status %d, want 503", status)
	}
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[]}`))
	if status, _ := get(t, address, "a.test", "/"); status != http.StatusServiceUnavailable {
		t.Errorf("without rules: status %d, want 503", status)
	}
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[
		{"hostname":"a.test","path":"^/a b$","service":"http_status:418"},
		{"hostname":"a.test","service":"http://app.team.svc:8080"},
		{"hostname":"host.test","service":"http://app.team.svc:8080","originRequest":{"httpHostHeader":"inner"}},
		{"hostname":"down.test","service":"http://nowhere:80"},
		{"hostname":"ssh.test","service":"ssh://app.team.svc:8080"},
		{"hostname":"access.test","service":"http://app.team.svc:8080","originRequest":{"access":{"required":true,"teamName":"x"}}},
		{"service":"http_status:404"}]}`))
	for _, test := range []struct {
		host, target string
		status       int
		body         string
	}{
		{"a.test", "/x%2Fy?q=1;2&q=%zz", 200, "HTTP/1.1 a.test /x%2Fy?q=1;2&q=%zz fwd="},
		{"a.test:8080", "//x/../y", 200, "HTTP/1.1 a.test:8080 //x/../y fwd="},
		{"a.test", "/a%20b", 418, ""},
		{"host.test", "/", 200, "HTTP/1.1 inner / fwd=host.test"},
		{"down.test", "/", 502, "unable to reach the origin: no origin at nowhere:80\n"},
		{"ssh.test", "/", 502, "the simulator does not support the service ssh://app.team.svc:8080\n"},
		{"access.test", "/", 403, ""},
		{"other.test", "/", 404, ""},
	} {
		status, body := get(t, address, test.host, test.target)
		if status != test.status || body != test.body {
			t.Errorf("%s%s: %d %q, want %d %q", test.host, test.target, status, body, test.status, test.body)
		}
	}
	if status, _ := get(t, address, "a.test", "/"); status != 200 {
		t.Fatal("the tunnel does not serve")
	}
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"hostname":"a.test","service":"http://app.team.svc:8080/"}]}`))
	if status, _ := get(t, address, "a.test", "/"); status != 200 {
		t.Errorf("after an invalid configuration: status %d, want 200 from the previous one", status)
	}
}

func TestUnknownTunnelAnswers530(t *testing.T) {
	s := simulator.New(simulator.Options{})
	w := httptest.NewRecorder()
	s.Tunnel("unknown").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 530 {
		t.Errorf("status %d, want 530", w.Code)
	}
}

func TestUpgradeIsForwarded(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
			r.Header.Get("Upgrade"))
		line, _ := buffered.ReadString('\n')
		_, _ = fmt.Fprintf(conn, "echo %s", line)
		_ = conn.Close()
	}))
	defer origin.Close()
	resolver := origins{"ws:80": origin.Listener.Addr().String()}
	s, id, address := newTunnel(t, simulator.Options{Dial: resolver.dial})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"http://ws:80"}]}`))

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // a 101 response has no body; the upgraded connection follows
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d, want 101", response.StatusCode)
	}
	_, _ = fmt.Fprint(conn, "hello\n")
	if line, _ := reader.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("read %q through the upgraded connection", line)
	}
}

func TestTLSOriginIsVerifiedAsConfigured(t *testing.T) {
	origin := httptest.NewUnstartedServer(echo) // its certificate is for example.com
	origin.EnableHTTP2 = true
	origin.Config.ErrorLog = discard
	origin.StartTLS()
	defer origin.Close()
	pool := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}
	if err := os.WriteFile(pool, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	resolver := origins{"app:443": origin.Listener.Addr().String()}
	s, id, address := newTunnel(t, simulator.Options{Dial: resolver.dial})
	for name, test := range map[string]struct {
		global, rule string
		status       int
		proto        string
	}{
		"unknown authority":         {`{}`, `{}`, 502, ""},
		"not verified":              {`{}`, `{"noTLSVerify":true}`, 200, "HTTP/1.1"},
		"HTTP/2":                    {`{}`, `{"noTLSVerify":true,"http2Origin":true}`, 200, "HTTP/2.0"},
		"inherited by the rule":     {`{"noTLSVerify":true,"http2Origin":true}`, `{}`, 200, "HTTP/2.0"},
		"overridden by the rule":    {`{"noTLSVerify":true}`, `{"noTLSVerify":false}`, 502, ""},
		"wrong name":                {`{"caPool":"` + pool + `"}`, `{}`, 502, ""},
		"server name":               {`{"caPool":"` + pool + `"}`, `{"originServerName":"example.com"}`, 200, "HTTP/1.1"},
		"SNI from the host":         {`{"caPool":"` + pool + `"}`, `{"matchSNItoHost":true}`, 200, "HTTP/1.1"},
		"SNI from the host, HTTP/2": {`{"caPool":"` + pool + `"}`, `{"matchSNItoHost":true,"http2Origin":true}`, 200, "HTTP/1.1"},
		"negative connect timeout":  {`{"noTLSVerify":true}`, `{"connectTimeout":-1}`, 502, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.SetConfiguration(id, json.RawMessage(fmt.Sprintf(
				`{"originRequest":%s,"ingress":[{"service":"https://app","originRequest":%s}]}`, test.global, test.rule)))
			status, body := get(t, address, "example.com", "/")
			if status != test.status || !strings.HasPrefix(body, test.proto) {
				t.Errorf("%d %q, want %d %q", status, body, test.status, test.proto)
			}
		})
	}
}

func TestUnreadableCAPoolKeepsThePreviousConfiguration(t *testing.T) {
	s, id, address := newTunnel(t, simulator.Options{})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"http_status:201"}]}`))
	s.SetConfiguration(id, json.RawMessage(
		`{"ingress":[{"path":"/x","service":"https://a","originRequest":{"caPool":"/does/not/exist"}},{"service":"http_status:202"}]}`))
	if status, _ := get(t, address, "a", "/"); status != 201 {
		t.Errorf("status %d, want 201", status)
	}
}

func TestNewConfigurationClosesIdleConnections(t *testing.T) {
	origin := httptest.NewServer(echo)
	defer origin.Close()
	var dialled []string
	s, id, address := newTunnel(t, simulator.Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return (&net.Dialer{}).DialContext(ctx, network, origin.Listener.Addr().String())
		},
	})
	configuration := json.RawMessage(`{"ingress":[{"service":"http://app"}]}`)
	for range 2 {
		s.SetConfiguration(id, configuration)
		get(t, address, "a", "/")
		get(t, address, "a", "/")
	}
	if diff := cmp.Diff([]string{"app:80", "app:80"}, dialled); diff != "" {
		t.Errorf("connections to the origin (-want +got):\n%s", diff)
	}
}

func TestNamedOriginsAnswerWithTheirName(t *testing.T) {
	s, id, address := newTunnel(t, simulator.Options{Dial: simulator.NamedOrigins(strings.ToUpper)})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"hostname":"a","service":"http://one"},{"service":"http://other:81"}]}`))
	for range 2 { // the second time on the same connections
		for host, want := range map[string]string{"a": "ONE:80", "b": "OTHER:81"} {
			if status, body := get(t, address, host, "/"); status != http.StatusOK || body != want {
				t.Errorf("%s: %d %q, want %q", host, status, body, want)
			}
		}
	}
}
