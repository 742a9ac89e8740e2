package xds

import (
	"fmt"
	"net"
	"slices"
	"testing"
)

type anonymous struct {
	net.Conn
	address  string
	isClosed bool
}

func (p *anonymous) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(p.address), Port: 1}
}

func (p *anonymous) Close() error {
	p.isClosed = true
	return nil
}

type arriving struct {
	*arrivals
	all []*anonymous
}

func (a *arriving) connect(address string) (*anonymous, *arrival) {
	p := &anonymous{address: address}
	a.all = append(a.all, p)
	return p, a.add(p)
}

// open counts the open connections from the address, or from all addresses if it is
// empty.
func (a *arriving) open(address string) int {
	n := 0
	for _, p := range a.all {
		if !p.isClosed && (address == "" || p.address == address) {
			n++
		}
	}
	return n
}

// A client that has not identified itself is not displaced by addresses with more
// connections, and a client that has identified itself is displaced by none.
func TestArrivalsOfBusyAddressesAreDisplacedFirst(t *testing.T) {
	a := &arriving{arrivals: newArrivals()}
	known, identified := a.connect("10.1.0.1")
	closed := 0
	if !a.identified(identified, func() { closed++ }) {
		t.Fatal("the connection was closed")
	}
	single, _ := a.connect("10.1.0.2")
	for n := range 50 {
		for pod := range 100 {
			a.connect(fmt.Sprint("10.0.0.", pod))
			if n > 5 && a.open("") != maxArrivals+1 {
				t.Fatalf("%d connections are open, want the maximum and one that has identified itself", a.open(""))
			}
		}
	}
	if known.isClosed || single.isClosed {
		t.Errorf("displaced: the client that has identified itself %t, the address with one connection %t", known.isClosed, single.isClosed)
	}
	if err := identified.Close(); err != nil || closed != 1 {
		t.Errorf("the end of the connection was recorded %d times", closed)
	}
}

// When an address exceeds its quota, it displaces only its own oldest connections.
func TestArrivalsOfOneAddressDisplaceEachOther(t *testing.T) {
	a := &arriving{arrivals: newArrivals()}
	other, _ := a.connect("10.1.0.2")
	for range 1000 {
		a.connect("10.0.0.1")
	}
	if n := a.open("10.0.0.1"); n != maxArrivalsPerHost || other.isClosed {
		t.Errorf("%d connections are open, and the other address was displaced: %t", n, other.isClosed)
	}
	newest := a.all[len(a.all)-maxArrivalsPerHost:]
	if slices.ContainsFunc(newest, func(p *anonymous) bool { return p.isClosed }) {
		t.Error("a new connection was displaced before an old one")
	}
}

// A connection that is closed for any reason no longer counts.
func TestArrivalsAreForgotten(t *testing.T) {
	a := &arriving{arrivals: newArrivals()}
	var all []*arrival
	for pod := range 300 {
		_, c := a.connect(fmt.Sprint("10.0.", pod/200, ".", pod%200))
		all = append(all, c)
	}
	for i, c := range all {
		if i%2 == 0 && a.identified(c, func() {}) == a.all[i].isClosed {
			t.Errorf("a closed connection can be identified, or an open one cannot: closed %t", a.all[i].isClosed)
		}
		_, _ = c.Close(), c.Close()
	}
	if a.count != 0 || len(a.byHost) != 0 {
		t.Errorf("%d connections of %d addresses are counted", a.count, len(a.byHost))
	}
}
