package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// backends are HTTP servers that replace the pods in the samples. Each Service has one
// server, which starts with the first connection to the Service.
type backends struct {
	mu      sync.Mutex
	servers map[string]*httptest.Server
}

func newBackends() *backends { return &backends{servers: map[string]*httptest.Server{}} }

// dial connects to a Service's backend. address contains the Service's DNS name in the
// cluster.
func (b *backends) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	service, ok := strings.CutSuffix(host, ".svc.cluster.local")
	if !ok {
		return nil, fmt.Errorf("%s is not a Service of the cluster", host)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, b.server(service).Listener.Addr().String())
}

func (b *backends) server(service string) *httptest.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	server := b.servers[service]
	if server == nil {
		server = httptest.NewServer(answer(service))
		b.servers[service] = server
	}
	return server
}

// listen starts a Service's backend on the Service's own address.
func (b *backends) listen(service, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for Service %s: %w", service, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	server := httptest.NewUnstartedServer(answer(service))
	server.Listener.Close() //nolint:errcheck,gosec // it has accepted nothing
	server.Listener = listener
	server.Start()
	b.servers[service] = server
	return nil
}

// answer returns a handler that responds with the Service name.
func answer(service string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "%s answers %s %s%s\n", service, r.Method, r.Host, r.URL.Path) // #nosec G705 -- plain text
	})
}

func (b *backends) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, server := range b.servers {
		server.Close()
	}
}
