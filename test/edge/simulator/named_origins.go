package simulator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// NamedOrigins returns a function for [Options.Dial]. It connects every address to an
// HTTP server in memory, which returns name(address) for every request. address is the
// origin's "host:port".
func NamedOrigins(name func(address string) string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		client, origin := net.Pipe()
		server := http.Server{
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name(address)) }),
			ReadHeaderTimeout: time.Minute,
		}
		_ = server.Serve(&oneConnection{origin}) // returns after it has accepted the connection
		return client, nil
	}
}

// oneConnection is a listener that accepts one connection and then reports that
// it is closed. [http.Server] keeps serving the accepted connection.
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
