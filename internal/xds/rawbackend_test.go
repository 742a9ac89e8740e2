package xds_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// rawBackend records the bytes of each request's header.
type rawBackend struct {
	routing.Backend
	// response is what the backend answers.
	response string

	mu       sync.Mutex
	requests []string
}

const plainResponse = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nblue"

func newRawBackend(t *testing.T) *rawBackend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address, _ := listener.Addr().(*net.TCPAddr)
	b := &rawBackend{response: plainResponse, Backend: routing.Backend{
		Service: types.NamespacedName{Namespace: "shop", Name: "web"}, Protocol: routing.ProtocolHTTP,
		Port: int32(address.Port), ServicePort: int32(address.Port), ClusterIP: "127.0.0.1", Addressing: routing.AddressClusterIP, //nolint:gosec // a port
	}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *rawBackend) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the response was sent
	var head strings.Builder
	reader := bufio.NewReader(conn)
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		head.WriteString(line)
	}
	b.mu.Lock()
	b.requests = append(b.requests, head.String())
	b.mu.Unlock()
	_, _ = io.WriteString(conn, b.response)
}

// traceLines returns the lines of the last request that belong to a trace, as they are.
func (b *rawBackend) traceLines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(strings.Split(b.requests[len(b.requests)-1], "\r\n"), func(line string) bool { return !isTraceLine(line) })
}

func isTraceLine(line string) bool {
	name, _, _ := strings.Cut(strings.ToLower(line), ":")
	return name == "traceparent" || name == "tracestate" || name == "baggage"
}

// send sends a request with header lines as they are, and returns the status.
func (s *sidecar) send(t *testing.T, target string, lines ...string) int {
	t.Helper()
	conn, err := net.Dial("tcp", s.open)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the response was read
	head := append([]string{"GET " + target + " HTTP/1.1", "Host: " + hostname, "Connection: close"}, lines...)
	if _, err := io.WriteString(conn, strings.Join(head, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// traceparent returns the parts of the header that the backend got last.
func (b *rawBackend) traceparent(t *testing.T) (trace, span, flags string) {
	t.Helper()
	for _, line := range b.traceLines() {
		name, value, _ := strings.Cut(line, ": ")
		if parts := strings.Split(value, "-"); strings.EqualFold(name, "traceparent") && len(parts) == 4 {
			return parts[1], parts[2], parts[3]
		}
	}
	t.Fatalf("the backend got no traceparent: %q", b.traceLines())
	return "", "", ""
}
