package simulator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// NamedOrigins returns an [Options.Dial] that finds an HTTP server in memory at every
// address. It answers every request with the name that it has by its address,
// "host:port".
func NamedOrigins(name func(address string) string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		server := http.Server{
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name(address)) }),
			ReadHeaderTimeout: time.Minute,
		}
		_ = server.Serve(&oneConnection{far}) // it returns when that is accepted
		return near, nil
	}
}

// oneConnection is a listener that accepts one connection, and then is closed.
// Who has accepted it goes on to serve it.
type oneConnection struct{ connection net.Conn }

func (l *oneConnection) Accept() (net.Conn, error) {
	connection := l.connection
	if l.connection = nil; connection == nil {
		return nil, net.ErrClosed
	}
	return connection, nil
}

func (*oneConnection) Close() error   { return nil }
func (*oneConnection) Addr() net.Addr { return &net.UnixAddr{} }
