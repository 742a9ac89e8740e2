package envoy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestProtocols(t *testing.T) {
	run(t, []row{
		{
			"GET x.example.com/protocols/h2c\nX-Version: 2",
			"200 h2c GET /protocols/h2c HTTP/2.0\n< x-backend-protocol: HTTP/2.0",
		},
		{"GET x.example.com/protocols/secure", "200 secure GET /protocols/secure\nTLS secure.default.svc.cluster.local"},
		{"GET x.example.com/protocols/untrusted", "503"},
		{"GET x.example.com/protocols/othername", "503"},
		{"GET x.example.com/protocols/ws", "200 ws GET /protocols/ws"},
		{"GET x.example.com/protocols/wss", "200 wss GET /protocols/wss\nTLS wss.default.svc.cluster.local"},
		{"GET x.example.com/protocols/headless", "200 headless GET /protocols/headless"},
	})
}

func TestOriginRequestSettings(t *testing.T) {
	run(t, []row{
		{"GET name.origin.example.com/protocols/othername", "200 othername GET /protocols/othername\nTLS backend.example.com"},
		{"GET name.origin.example.com/protocols/secure", "503"},
		{"GET unverified.origin.example.com/protocols/untrusted", "200 untrusted GET /protocols/untrusted\nTLS untrusted.default.svc.cluster.local"},
		{"GET unverified.origin.example.com/protocols/othername", "200 othername GET /protocols/othername\nTLS othername.default.svc.cluster.local"},
		{
			"GET header.origin.example.com/plain",
			"200 one GET /plain\n> Host: internal.example.org\n> x-forwarded-host: header.origin.example.com",
		},
		{
			"GET header.origin.example.com/rewrite",
			"200 one GET /rewrite\n> Host: rewritten.example.org\n> x-forwarded-host: header.origin.example.com",
		},
		{
			"GET http2.origin.example.com/secure",
			"200 secure-http2 GET /secure HTTP/2.0\nTLS secure-http2.default.svc.cluster.local\n< x-backend-protocol: HTTP/2.0",
		},
		{"GET http2.origin.example.com/plain", "200 one GET /plain"},
		// The TCP connection succeeds, the TLS handshake does not end. The default is 40 seconds.
		{"GET timeout.origin.example.com/silent", "503"},
	})
}

func TestWebSockets(t *testing.T) {
	b := start(t)
	for _, test := range []struct{ path, backend string }{
		{"/protocols/plain", "one"}, {"/protocols/ws", "ws"}, {"/protocols/wss", "wss"}, {"/protocols/secure", "secure"},
	} {
		t.Run(test.backend, func(t *testing.T) {
			conn, r := b.upgrade(t, test.path)
			o, err := readOutcome(r, "GET")
			if err != nil || o.status != 101 {
				t.Fatalf("status %d, error %v, want 101", o.status, err)
			}
			a := b.backends.byName[test.backend].await(t)
			if arrived := strings.ToLower(strings.Join(a[0].Lines, "\n")); !strings.Contains(arrived, "upgrade: websocket") || !strings.Contains(arrived, "connection: upgrade") {
				t.Errorf("these headers arrived:\n%s", arrived)
			}
			for _, message := range []string{"a message", "\x00\xff"} {
				if _, err := io.WriteString(conn, message); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(message))
				if _, err := io.ReadFull(r, got); err != nil || string(got) != message {
					t.Errorf("received %q, error %v, want %q", got, err, message)
				}
			}
		})
	}
	t.Run("a backend with HTTP/2", func(t *testing.T) {
		_, r := b.upgrade(t, "/protocols/h2c")
		if o, err := readOutcome(r, "GET"); err != nil || o.status != 502 {
			t.Errorf("status %d, error %v, want 502", o.status, err)
		}
	})
}

// upgrade asks for a WebSocket.
func (b *bed) upgrade(t *testing.T, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	for _, backend := range b.backends.byName {
		backend.takeAll()
	}
	conn, err := net.Dial("tcp", b.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		t.Fatal(err)
	}
	request := "GET %s HTTP/1.1\r\nHost: x.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	if _, err := fmt.Fprintf(conn, request, path); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}
