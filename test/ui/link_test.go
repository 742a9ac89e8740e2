package ui

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// breakableLink forwards TCP connections to an address until it is cut.
type breakableLink struct {
	t       *testing.T
	target  string
	address string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

// newBreakableLink forwards to a server, whose address can begin with https.
func newBreakableLink(t *testing.T, server string) *breakableLink {
	t.Helper()
	l := &breakableLink{t: t, target: strings.TrimPrefix(server, "https://"), address: "127.0.0.1:0"}
	l.restore()
	l.address = l.listener.Addr().String()
	t.Cleanup(l.cut)
	return l
}

// restore listens again on the same port.
func (l *breakableLink) restore() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	listener, err := (&net.ListenConfig{}).Listen(l.t.Context(), "tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.listener = listener
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(connection)
		}
	}()
}

func (l *breakableLink) forward(from net.Conn) {
	to, err := (&net.Dialer{}).DialContext(l.t.Context(), "tcp", l.target)
	if err != nil {
		_ = from.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, from, to)
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
	_ = from.Close()
}

// cut closes all connections and accepts no other ones.
func (l *breakableLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// kubeconfigThrough writes the demo's kubeconfig with another address, and returns its file.
func (d *demo) kubeconfigThrough(t *testing.T, address string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
