package load_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

func TestLoadOnAServerWithoutFaults(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(load.Backend())
	defer server.Close()
	expectNoFault(t, load.Options{Address: server.Listener.Addr().String(), Host: "a.example.com", Connections: 2})
}

func TestLoadWithTLSOnAServerWithoutFaults(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(load.Backend())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	expectNoFault(t, load.Options{
		Address: "edge:443", Host: "example.com", Connections: 2, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
}

// expectNoFault runs a load with two WebSockets and streams on a server without faults.
func expectNoFault(t *testing.T, o load.Options) {
	t.Helper()
	l := load.Start(o)
	waitForConnections(t, l, 4)
	NewWithT(t).Eventually(l.Sent, timeout).Should(BeNumerically(">=", 20))
	r := l.Stop()
	if len(r.Failures) > 0 {
		t.Errorf("%s: %q", r, r.Failures)
	}
	if r.Requests < 20 || r.Messages < 4 {
		t.Errorf("%s, want at least 20 requests and 4 messages", r)
	}
}

const timeout = 10 * time.Second

// waitForConnections waits until this many WebSockets and streams are open.
func waitForConnections(t *testing.T, l *load.Load, want int) {
	t.Helper()
	NewWithT(t).Eventually(func() int {
		_, open := l.InFlight()
		return open
	}, timeout).Should(Equal(want))
}

// faults are the ways in which a request fails, each with a server that causes it.
var faults = map[string]http.HandlerFunc{
	"an error":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	"a missing route":     http.NotFound,
	"another backend":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("another")) },
	"a reset":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"a truncated content": truncate,
}

func truncate(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte(r.URL.Path + " ")) // #nosec G705 -- plain text
}

func TestLoadCountsFailedRequests(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(fault)
			defer server.Close()
			l := load.Start(load.Options{Address: server.Listener.Addr().String(), Host: "a.example.com", Connections: 1})
			NewWithT(t).Eventually(l.Sent, timeout).Should(BeNumerically(">=", 10))
			r := l.Stop()
			text := strings.Join(r.Failures, "\n")
			if r.Requests == 0 || r.Failed != r.Requests || r.Messages > 0 || !strings.Contains(text, "WebSocket") || !strings.Contains(text, "stream:") {
				t.Errorf("%s: %q", r, r.Failures)
			}
		})
	}
}

func TestLoadCountsBrokenConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var connections []net.Conn
	server := httptest.NewUnstartedServer(load.Backend())
	server.Config.ConnState = func(c net.Conn, _ http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		connections = append(connections, c)
	}
	server.Start()
	l := load.Start(load.Options{Address: server.Listener.Addr().String(), Host: "a.example.com", Connections: 1})
	waitForConnections(t, l, 2)
	_ = server.Listener.Close() // so that the client cannot open them again
	mu.Lock()
	for _, c := range connections {
		_ = c.Close()
	}
	mu.Unlock()
	waitForConnections(t, l, 0)
	if r := l.Stop(); r.Broken != 2 {
		t.Errorf("%s: %q", r, r.Failures)
	}
}
