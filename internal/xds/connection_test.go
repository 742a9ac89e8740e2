package xds

import (
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// endless is a connection on which bytes arrive all the time.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Incomplete requests of all connections of a Gateway together have a maximum size.
func TestIncompleteRequestsAreLimited(t *testing.T) {
	g := newGateway(types.NamespacedName{Namespace: "infra", Name: "shared"})
	server := NewServer(Options{})
	one, other := &connection{Conn: endless{}, gateway: g, server: server}, &connection{Conn: endless{}, gateway: g, server: server}
	p := make([]byte, 1<<20)
	read := func(c *connection, size int64) error {
		for range size >> 20 {
			if _, err := c.Read(p); err != nil {
				return err
			}
		}
		return nil
	}
	for range 10 {
		if err := read(one, server.limits.unread/2); err != nil {
			t.Fatalf("complete requests: %v", err)
		}
		one.resetUnread()
	}
	if err := read(one, server.limits.unread/2); err != nil {
		t.Fatalf("half of the maximum: %v", err)
	}
	if err := read(other, server.limits.unread/2); err != nil {
		t.Fatalf("the maximum: %v", err)
	}
	if err := read(other, 1<<20); err == nil {
		t.Error("the connection received more than the maximum")
	}
	other.resetUnread()
	if err := read(one, 1<<20); err != nil {
		t.Errorf("after the other connection was closed: %v", err)
	}
}

// A client that identifies itself counts until its connection is closed, and not beyond
// the maximum.
func TestIdentifiedConnectionsAreCounted(t *testing.T) {
	server := NewServer(Options{})
	arrive := func() *connection {
		_, raw := (&arriving{arrivals: server.arrivals}).connect("10.0.0.1")
		return &connection{raw: raw, server: server, gateway: server.ensureGateway(types.NamespacedName{Name: "shared"})}
	}
	server.connections = maxConnections - 1
	last := arrive()
	if err := server.count(last); err != nil || server.connections != maxConnections || server.arrivals.count != 0 {
		t.Fatalf("%d connections and %d arrivals (%v)", server.connections, server.arrivals.count, err)
	}
	if server.count(arrive()) == nil {
		t.Error("one more connection than the maximum")
	}
	last.end()
	if err := server.count(arrive()); err != nil {
		t.Errorf("after the end of a connection: %v", err)
	}
}
