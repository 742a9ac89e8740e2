package xds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
)

// connection is the connection of a client whose certificate identifies a current
// Tunnel.
type connection struct {
	net.Conn
	// raw is the TCP connection that carries TLS.
	raw      *arrival
	identity authority.Identity
	expiry   time.Time
	gateway  *gateway
	server   *Server
	// idleSince is when the client last had a stream on which it has sent a request, or
	// when it connected. It is zero while it has one. Server.mu guards it.
	idleSince time.Time
	// unread counts the bytes that have arrived since the last complete request. gRPC
	// keeps them in memory until the request is complete, and a connection has only one
	// stream.
	unread   atomic.Int64
	isClosed atomic.Bool
}

// Read implements [net.Conn]. It fails when the incomplete requests on all the
// Gateway's connections together are too large.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.unread.Add(int64(n))
	total := c.gateway.unread.Add(int64(n))
	if c.isClosed.Load() {
		c.resetUnread() // Close has already done so
	}
	if most := c.server.limits.unread; total > most {
		return 0, fmt.Errorf("incomplete requests of Gateway %s exceed %d bytes", c.gateway.name, most)
	}
	return n, err
}

// resetUnread records that a request is complete or the connection has ended.
func (c *connection) resetUnread() { c.gateway.unread.Add(-c.unread.Swap(0)) }

// end ends the connection with all its streams, even a stream that waits for a slow
// client. Unlike a TLS shutdown, it does not wait for the client.
func (c *connection) end() { _ = c.raw.Close() }

// isIdle reports whether the client has had no stream with a request for too long. The
// caller holds Server.mu.
func (c *connection) isIdle(now time.Time) bool {
	return !c.idleSince.IsZero() && now.Sub(c.idleSince) >= idleTimeout
}

// forget stops counting the connection, which is closed.
func (c *connection) forget() {
	c.isClosed.Store(true)
	c.resetUnread()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.gateway.connections, c)
	c.server.connections--
}

// peerInfo describes a client to gRPC.
type peerInfo struct {
	credentials.TLSInfo
	*connection
}

// AuthType implements [credentials.AuthInfo].
func (peerInfo) AuthType() string { return "tls" }

// serverCredentials reject a client whose certificate does not identify a current Tunnel,
// before the server sends it any data after the handshake.
type serverCredentials struct {
	credentials.TransportCredentials
	server *Server
}

func newCredentials(s *Server) credentials.TransportCredentials {
	return &serverCredentials{credentials.NewTLS(s.options.TLS), s}
}

// ServerHandshake implements [credentials.TransportCredentials]. If it fails, gRPC
// closes the connection.
func (c *serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	arrived, ok := raw.(*arrival)
	if !ok {
		return nil, nil, errors.New("the connection does not come from the server's listener")
	}
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // gRPC examines it
	}
	state, ok := info.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.New("the connection has no TLS")
	}
	admitted, err := c.server.admit(conn, arrived, state)
	if err != nil {
		return nil, nil, err
	}
	return admitted, peerInfo{state, admitted}, nil
}

// Clone implements [credentials.TransportCredentials].
func (c *serverCredentials) Clone() credentials.TransportCredentials {
	return &serverCredentials{c.TransportCredentials.Clone(), c.server}
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c *serverCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for a server")
}

// admit returns the connection if its client is allowed to connect.
func (s *Server) admit(conn net.Conn, raw *arrival, info credentials.TLSInfo) (*connection, error) {
	identity, err := s.options.Identify(info.State)
	if err != nil {
		return nil, fmt.Errorf("identify the client: %w", err)
	}
	if len(info.State.PeerCertificates) == 0 {
		return nil, errors.New("identify the client: no certificate")
	}
	now := time.Now()
	c := &connection{Conn: conn, raw: raw, identity: identity, expiry: info.State.PeerCertificates[0].NotAfter, server: s, idleSince: now}
	if !s.isAllowed(c, now) {
		s.options.Logger.Info("refused a client whose Tunnel does not exist or whose certificate has expired", "gateway", identity.Gateway, "tunnel", identity.Tunnel)
		return nil, errors.New("the certificate's Tunnel does not exist, or the certificate has expired")
	}
	c.gateway = s.ensureGateway(identity.Gateway)
	return c, s.count(c)
}

// count counts a connection until it is closed, unless there are too many.
func (s *Server) count(c *connection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(c.gateway.connections) >= maxConnectionsPerGateway:
		return fmt.Errorf("gateway %s has %d connections, which is the maximum", c.gateway.name, maxConnectionsPerGateway)
	case s.connections >= maxConnections:
		return fmt.Errorf("there are %d connections, which is the maximum", maxConnections)
	case !s.arrivals.identified(c.raw, c.forget):
		return errors.New("the connection was closed during the handshake")
	}
	c.gateway.connections[c] = struct{}{}
	s.connections++
	return nil
}
