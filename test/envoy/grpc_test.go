package envoy

import "net"

func serveGRPC(_ *backend, _ net.Listener) {}
