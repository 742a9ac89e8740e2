package xds

import (
	"net"
	"sync"
)

// arrivals are connections whose clients have not identified themselves. Every pod in
// the cluster can open such a connection, so they have their own quota and end after
// handshakeTimeout.
//
// A new connection above the quota ends an older one: the oldest from its own address,
// or from the address with the most connections. An Envoy needs one connection for a
// few milliseconds, so it keeps that connection while another address has several.
type arrivals struct {
	mu sync.Mutex
	// byHost lists the connections from each address, the oldest first.
	byHost map[string][]*arrival
	count  int
	// arrived counts all connections that have ever arrived.
	arrived uint64
}

// arrival is a TCP connection that the server has accepted.
type arrival struct {
	net.Conn
	host   string
	number uint64
	once   sync.Once
	// leave stops counting the connection. [arrivals].mu guards it.
	leave func()
	all   *arrivals
}

// Close implements [net.Conn].
func (a *arrival) Close() error {
	a.once.Do(func() {
		a.all.mu.Lock()
		leave := a.leave
		a.leave = nil
		a.all.mu.Unlock()
		if leave != nil {
			leave()
		}
	})
	return a.Conn.Close() //nolint:wrapcheck // the error of the connection
}

func newArrivals() *arrivals { return &arrivals{byHost: map[string][]*arrival{}} }

// add counts a connection, and closes another one if there are too many.
func (a *arrivals) add(conn net.Conn) *arrival {
	added, displaced := a.insert(conn)
	if displaced != nil {
		_ = displaced.Close()
	}
	return added
}

func (a *arrivals) insert(conn net.Conn) (added, displaced *arrival) {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String() // a test connection
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.arrived++
	added = &arrival{Conn: conn, host: host, number: a.arrived, all: a}
	added.leave = func() { a.remove(added) }
	a.byHost[host] = append(a.byHost[host], added)
	a.count++
	switch {
	case len(a.byHost[host]) > maxArrivalsPerHost:
		displaced = a.byHost[host][0]
	case a.count > maxArrivals:
		displaced = a.oldestOfBusiest()
	}
	return added, displaced
}

// oldestOfBusiest returns the oldest connection from the address with the most
// connections. The caller holds the lock.
func (a *arrivals) oldestOfBusiest() *arrival {
	var found *arrival
	most := 0
	for _, ofHost := range a.byHost {
		if n := len(ofHost); n > most || n == most && ofHost[0].number < found.number {
			found, most = ofHost[0], n
		}
	}
	return found
}

func (a *arrivals) remove(c *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeLocked(c)
}

func (a *arrivals) removeLocked(c *arrival) {
	all := a.byHost[c.host]
	for i := range all {
		if all[i] != c {
			continue
		}
		a.count--
		if a.byHost[c.host] = append(all[:i], all[i+1:]...); len(all) == 1 {
			delete(a.byHost, c.host)
		}
		return
	}
}

// identified records that the client has identified itself, and that leave is to be
// called when the connection is closed. It returns false if the connection was closed
// meanwhile.
func (a *arrivals) identified(c *arrival, leave func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.leave == nil {
		return false
	}
	c.leave = leave
	a.removeLocked(c)
	return true
}

// counted is a listener whose connections are arrivals.
type counted struct {
	net.Listener
	*arrivals
}

// Accept implements [net.Listener].
func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // gRPC examines it
	}
	return l.add(conn), nil
}
