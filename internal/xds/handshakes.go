package xds

import (
	"fmt"
	"net"
	"sync"
)

// handshakes are the clients that have not finished the TLS handshake. Nothing is known about
// them but their address. Without a limit, one of them could take all connections of the
// server.
type handshakes struct {
	mu     sync.Mutex
	byHost map[string]int
}

// begin counts a client until end is called, or returns an error if there are too many of its
// address.
func (h *handshakes) begin(address net.Addr) (end func(), err error) {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		host = address.String() // the connection of a test
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byHost[host] >= maxHandshakes {
		return nil, fmt.Errorf("there are %d unfinished TLS handshakes of %s", maxHandshakes, host)
	}
	h.byHost[host]++
	return func() { h.end(host) }, nil
}

func (h *handshakes) end(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byHost[host]--; h.byHost[host] == 0 {
		delete(h.byHost, host)
	}
}
