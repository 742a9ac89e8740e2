package envoy

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// arrival is a request as it arrived at a backend, which returns it in its response.
type arrival struct {
	Backend string
	// Start and Lines are the start line and the header lines. With HTTP/2, the lines are sorted.
	Start    string
	Lines    []string
	Body     string   `json:",omitempty"`
	Trailers []string `json:",omitempty"`
	// ServerName is the name in the TLS handshake.
	ServerName string `json:",omitempty"`
}

// backend is the Service with that name. Its behavior depends on the name and on the appProtocol.
type backend struct {
	name string
	tls  *tls.Config

	mu       sync.Mutex
	wait     func(n int) // before the answer to the n-th arrival since the last takeAll
	arrivals []arrival
	arrived  chan struct{} // receives an item for each arrival
}

// backends are the backends of all Services.
type backends struct {
	byName map[string]*backend
	// addresses are the addresses on which the backends listen, by their addresses in the manifests.
	addresses map[string]string
	listeners []net.Listener
	caFile    string
}

// startBackends starts a backend for every Service or EndpointSlice address.
func startBackends(objects []client.Object, dir string) (*backends, error) {
	all := &backends{byName: map[string]*backend{}, addresses: map[string]string{}}
	authorities, err := newAuthorities(dir)
	if err != nil {
		return nil, err
	}
	all.caFile = authorities.file
	for _, object := range objects {
		service, ok := object.(*corev1.Service)
		if !ok {
			continue
		}
		b := &backend{name: service.Name, arrived: make(chan struct{}, 10_000)}
		b.tls = authorities.configOf(service)
		all.byName[b.name] = b
		if service.Spec.ClusterIP != corev1.ClusterIPNone {
			address := net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port))
			if err := all.listen(b, address); err != nil {
				return nil, err
			}
		}
	}
	for _, object := range objects {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		for _, e := range slice.Endpoints {
			address := net.JoinHostPort(e.Addresses[0], fmt.Sprint(*slice.Ports[0].Port))
			if err := all.listen(all.byName[slice.Labels[discoveryv1.LabelServiceName]], address); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// configOf returns the TLS settings for a Service's backend, or nil without TLS.
func (a *authorities) configOf(service *corev1.Service) *tls.Config {
	protocol := ptr.Deref(service.Spec.Ports[0].AppProtocol, "")
	if service.Name == "plaintext" || protocol != "https" && protocol != "kubernetes.io/wss" {
		return nil
	}
	return a.serverConfig(service.Name, protocol == "https")
}

// listen makes the backend serve an address in the manifests.
func (all *backends) listen(b *backend, address string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	all.addresses[address] = l.Addr().String()
	if b.name == "refuses" || strings.HasPrefix(address, "10.244.9.2:") {
		return l.Close()
	}
	if strings.HasPrefix(address, "10.244.9.3:") {
		b = all.byName["fails"]
	}
	all.listeners = append(all.listeners, l)
	if strings.HasPrefix(b.name, "grpc") {
		go serveGRPC(b, l)
		return nil
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.serveConn(conn)
		}
	}()
	return nil
}

func (all *backends) close() {
	for _, l := range all.listeners {
		_ = l.Close()
	}
}

// record keeps an arrival for the test. It returns the number of arrivals since the last
// takeAll.
func (b *backend) record(a arrival) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrivals = append(b.arrivals, a)
	b.arrived <- struct{}{}
	return len(b.arrivals)
}

// waitBeforeAnswer makes the backend call a function before the answer to the n-th arrival since
// the last takeAll.
func (b *backend) waitBeforeAnswer(wait func(n int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wait = wait
}

// callWait calls that function, if there is one.
func (b *backend) callWait(n int) {
	b.mu.Lock()
	wait := b.wait
	b.mu.Unlock()
	if wait != nil {
		wait(n)
	}
}

// count returns the number of arrivals since the last takeAll.
func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrivals)
}

// await waits for an arrival, and returns all arrivals since the last call.
func (b *backend) await(t *testing.T) []arrival {
	t.Helper()
	select {
	case <-b.arrived:
	case <-time.After(10 * time.Second):
		t.Fatalf("no request arrived at the backend %s", b.name)
	}
	return b.takeAll()
}

// takeAll returns the arrivals since the last call.
func (b *backend) takeAll() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.arrived) > 0 {
		<-b.arrived
	}
	all := b.arrivals
	b.arrivals = nil
	return all
}

// serveConn serves the requests on a connection.
func (b *backend) serveConn(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	serverName := ""
	protocol := ""
	if b.name == "silent" {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if b.name == "plaintext" {
		_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		return
	}
	if b.tls != nil {
		secure := tls.Server(conn, b.tls)
		if err := secure.Handshake(); err != nil {
			return
		}
		conn, serverName, protocol = secure, secure.ConnectionState().ServerName, secure.ConnectionState().NegotiatedProtocol
	}
	if strings.HasPrefix(b.name, "h2c") || protocol == "h2" {
		(&http2.Server{}).ServeConn(conn, &http2.ServeConnOpts{Handler: b.handler(serverName)})
		return
	}
	r := bufio.NewReader(conn)
	for b.serveRequest(conn, r, serverName) {
	}
}

// serveRequest serves an HTTP/1.1 request. It returns false when no other request
// follows.
func (b *backend) serveRequest(conn net.Conn, r *bufio.Reader, serverName string) bool {
	h, _, err := readHead(r)
	if err != nil {
		return false
	}
	if i := slices.IndexFunc(h.lines, func(line string) bool { return nameOf(line) == "upgrade" }); i >= 0 {
		return b.echoBytes(conn, r, arrival{Backend: b.name, Start: h.start, Lines: h.lines, ServerName: serverName})
	}
	body, trailer, err := readBody(h, r)
	if err != nil {
		return false
	}
	a := arrival{Backend: b.name, Start: h.start, Lines: h.lines, Body: body, Trailers: trailerLines(trailer), ServerName: serverName}
	n := b.record(a)
	switch {
	case b.name == "slow", b.name == "wakes" && n == 1:
		_, _ = r.ReadByte() // until Envoy closes the connection
		return false
	case b.name == "resets":
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	case b.name == "fails", b.name == "overloaded", b.name == "recovers" && n <= 2:
		h.lines = append(h.lines, "Respond-Status: 503 Service Unavailable")
	}
	b.callWait(n)
	_, err = io.WriteString(conn, b.response(h, a))
	return err == nil
}

// response returns the answer to a request: the status in the header Respond-Status, the
// headers in the lines Respond and Respond-Many, the trailers in the lines Respond-Trailer,
// and the arrival as body.
func (b *backend) response(h head, a arrival) string {
	status, lines := "200 OK", []string{}
	var trailers []string
	for _, line := range h.lines {
		_, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch nameOf(line) {
		case "respond-status":
			status = value
		case "respond":
			lines = append(lines, value)
		case "respond-trailer":
			trailers = append(trailers, value)
		case "respond-many": // for example "10 headers of 20 bytes"
			var n, size int
			_, _ = fmt.Sscanf(value, "%d headers of %d bytes", &n, &size)
			for i := range n {
				lines = append(lines, fmt.Sprintf("X-%d: %s", i, strings.Repeat("x", size)))
			}
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		return "HTTP/1.1 599 " + err.Error() + "\r\n\r\n"
	}
	text := string(body)
	if len(trailers) > 0 {
		lines, text = append(lines, "Transfer-Encoding: chunked"), chunked(text, trailers...)
	} else {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(text)))
	}
	if strings.HasPrefix(h.start, http.MethodHead) {
		text = ""
	}
	return fmt.Sprintf("HTTP/1.1 %s\r\n%s\r\n\r\n%s", status, strings.Join(lines, "\r\n"), text)
}

// echoBytes accepts a WebSocket and returns its bytes.
func (b *backend) echoBytes(conn net.Conn, r io.Reader, a arrival) bool {
	b.record(a)
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err == nil {
		_, _ = io.Copy(conn, r)
	}
	return false
}

// handler serves HTTP/2 requests.
func (b *backend) handler(serverName string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		lines := append(trailerLines(r.Header), "Host: "+r.Host)
		slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(nameOf(a), nameOf(b)) })
		a := arrival{
			Backend: b.name, Start: fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, r.Proto), Lines: lines,
			Body: string(body), Trailers: trailerLines(r.Trailer), ServerName: serverName,
		}
		b.record(a)
		answer, err := json.Marshal(a)
		w.Header().Set("X-Backend-Protocol", r.Proto)
		if _, writeErr := w.Write(answer); errors.Join(err, writeErr) != nil {
			panic(http.ErrAbortHandler)
		}
	})
}
