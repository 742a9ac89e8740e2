package cloudflare

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	// name is the tunnel name in most tests.
	name    = "edge"
	account = "023e105f4ecef8ad9ca31a8372d0c353"
	baseURL = "http://api.test/client/v4"
)

// API paths as patterns for the simulator.
const (
	tunnelsPath       = "/accounts/*/cfd_tunnel"
	configurationPath = "/accounts/*/cfd_tunnel/*/configurations"
)

// edge is a simulator and a provider that calls it over HTTP on in-memory connections,
// which work with the fake clock from testing/synctest.
type edge struct {
	*simulator.Server
	*Provider
	client    Client
	token     string
	transport http.RoundTripper
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	const token = "token"
	server := simulator.New(simulator.Options{AccountID: account, Token: token})
	transport := serve(t, server.API())
	e := &edge{Server: server, token: token, transport: transport}
	e.Provider = e.newProvider(t, token)
	return e
}

func (e *edge) newProvider(t *testing.T, token string) *Provider {
	t.Helper()
	return open(t, &e.client, Options{AccountID: account, APIToken: token, BaseURL: baseURL, Transport: e.transport})
}

// newTunnel creates a tunnel and resets the recorded requests.
func (e *edge) newTunnel(t *testing.T) provider.TunnelID {
	t.Helper()
	tunnel, err := e.CreateTunnel(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	e.ResetRequests()
	return tunnel.ID
}

// newProvider returns a provider with its own budget.
func newProvider(t *testing.T, o Options) *Provider {
	t.Helper()
	return open(t, &Client{}, o)
}

func open(t *testing.T, c *Client, o Options) *Provider {
	t.Helper()
	p, err := c.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve runs an HTTP server on in-memory connections, and returns a transport that
// connects to it for every host.
func serve(t *testing.T, handler http.Handler) http.RoundTripper {
	t.Helper()
	listener := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // returns when the server is closed
	transport := &http.Transport{DialContext: listener.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	return transport
}

type memoryListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func configuration(host string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{
		{Hostname: host, Service: "http://web:80"}, {Service: "http_status:404"},
	}}
}
