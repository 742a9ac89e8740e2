package simulator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// errConnectorLost ends a connector's requests after it has disconnected.
var errConnectorLost = errors.New("the connector has disconnected")

// podPool has the connections to an origin in the connectors' pods. Each connector
// connects to the origin in its own pod.
type podPool struct {
	origin originRequest
	dial   func(ctx context.Context, connector, network, address string) (net.Conn, error)

	mu         sync.Mutex
	transports map[*replica]*http.Transport
}

// RoundTrip sends the request through the connector that carries it.
func (p *podPool) RoundTrip(r *http.Request) (*http.Response, error) {
	connector, _ := r.Context().Value(carrierKey{}).(*replica)
	transport, err := p.transport(connector)
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(r)
}

// transport returns a connector's connections. The pool keeps them until the connector
// disconnects.
func (p *podPool) transport(connector *replica) (*http.Transport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if transport := p.transports[connector]; transport != nil {
		return transport, nil
	}
	transport, err := p.origin.transport(func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.dial(ctx, connector.host, network, address)
	})
	if err != nil {
		return nil, err
	}
	p.transports[connector] = transport
	context.AfterFunc(connector.connection, func() { p.remove(connector) })
	return transport, nil
}

func (p *podPool) remove(connector *replica) {
	p.mu.Lock()
	transport := p.transports[connector]
	delete(p.transports, connector)
	p.mu.Unlock()
	transport.CloseIdleConnections()
}

// CloseIdleConnections closes the idle connections of all connectors.
func (p *podPool) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, transport := range p.transports {
		transport.CloseIdleConnections()
	}
}

// carrierKey is the context key for the replica that carries a request.
type carrierKey struct{}

// carry returns the context for a request that the connector carries. The context ends
// when the connector disconnects.
func (r *replica) carry(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, carrierKey{}, r))
	stop := context.AfterFunc(r.connection, func() { cancel(errConnectorLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
