// Package simulator stands in for Cloudflare: the part of the v4 API that
// concerns tunnels, the edge that connectors connect to, and the data path of
// every tunnel, which serves requests by the stored document as the real
// connector would.
//
// It is a witness for the rest of the repository and therefore shares no code
// with it: no rule, no type and no validation of its own product may be
// imported here. What a tunnel should serve is decided elsewhere.
package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// statusNoTunnel is Cloudflare's own status for a name without a tunnel.
const statusNoTunnel = 530

// Options configure a [Server]. The zero value accepts any account and token.
type Options struct {
	// Dial reaches the origins; network is "tcp" and address the "host:port" of
	// the rule's service. Nil is a plain [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AccountID is the only account that exists; any account when empty.
	AccountID string
	// Token is the API token that is accepted; any bearer token when empty.
	Token string
	// AcceptInvalid makes the API store documents that the connector rejects.
	// The connector then keeps the document that it had.
	AcceptInvalid bool
	// OnCreate is called with every new tunnel, before the API answers.
	OnCreate func(Tunnel)
}

// Server is one Cloudflare: accounts, tunnels and their connectors. Its methods
// may be called from several goroutines. Those that take the id of a tunnel
// panic when there never was one, since that is a mistake in the test.
type Server struct {
	options Options
	api     http.Handler
	serving sync.WaitGroup

	mu        sync.Mutex
	token     string
	tunnels   []*tunnel // in creation order, the deleted ones too
	faults    []*Fault
	requests  []*Request
	listeners []*http.Server
	closed    bool
}

// New returns a server without tunnels. Close it when it served listeners or
// connectors.
func New(o Options) *Server {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	s := &Server{options: o, token: o.Token}
	s.api = s.routes()
	return s
}

// API serves the v4 API below /client/v4/.
func (s *Server) API() http.Handler { return s.api }

// Tunnel serves the data path of one tunnel. A tunnel that does not exist, or
// no longer, answers 530.
func (s *Server) Tunnel(id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		t := s.find(id)
		if t == nil || t.deleted() {
			s.mu.Unlock()
			http.Error(w, "error code: 1033", statusNoTunnel)
			return
		}
		running := t.running
		s.mu.Unlock()
		running.ServeHTTP(w, r)
	})
}

// Listen serves the data path of one tunnel on l, over HTTP/1.1 and HTTP/2
// without TLS, until the server is closed. It returns at once.
func (s *Server) Listen(id string, l net.Listener) {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s.Tunnel(id), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	s.listeners = append(s.listeners, server)
	s.mu.Unlock()
	s.serving.Go(func() { _ = server.Serve(l) }) // ends when the server is closed
}

// Close ends what Listen started, the connections to the origins and those of
// connectors, none of which can come back.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, server := range s.listeners {
		_ = server.Close()
	}
	for _, t := range s.tunnels {
		t.running.retire()
		t.drop(func(r *replica) bool { return r.cut != nil })
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// TunnelID returns the id of the live tunnel of that name, and whether there
// is one.
func (s *Server) TunnelID(name string) (string, bool) {
	for _, t := range s.Tunnels() {
		if t.Name == name && !t.Deleted {
			return t.ID, true
		}
	}
	return "", false
}

// Tunnels returns all tunnels in the order of their creation, also the deleted
// ones.
func (s *Server) Tunnels() []Tunnel {
	s.mu.Lock()
	defer s.mu.Unlock()
	tunnels := make([]Tunnel, 0, len(s.tunnels))
	for _, t := range s.tunnels {
		tunnels = append(tunnels, t.summary())
	}
	return tunnels
}

// Document returns the stored document, with the fields that the API added,
// and its version. A tunnel that was never configured has nil and 0.
func (s *Server) Document(id string) (document json.RawMessage, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mustFind(id)
	return bytes.Clone(t.document), t.version
}

// SetDocument stores a document as somebody else would: past the request log
// and past validation. It raises the version by one. The document must be a
// JSON object.
func (s *Server) SetDocument(id string, document json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := complete(document)
	if err != nil {
		panic(fmt.Sprintf("simulator: document of tunnel %q: %v", id, err))
	}
	s.mustFind(id).configure(stored, s.options.Dial)
}

// SetToken replaces the API token that is accepted; any when empty.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// RotateToken replaces the tunnel's secret, as its owner does in the dashboard:
// the token that the API answers is another one from then on. Connectors that
// run stay connected until their connections are cleaned up: the secret that
// they have is refused when they come back.
func (s *Server) RotateToken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).secret = newSecret()
}

// SetLocal makes a tunnel locally managed, so that its connectors have no remote
// document, or migrates it: they take the document that is stored next.
func (s *Server) SetLocal(id string, local bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).setLocal(local)
}

// Connect sets the number of running connectors of a tunnel, beside those that
// are connected to [Server.Edge]. While there are any of either, the tunnel
// cannot be deleted: cleaning up its connections does not help, since a running
// connector comes back, here at once and without a gap. The data path does not
// need them.
func (s *Server) Connect(id string, replicas int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).connect(replicas)
}

// Disconnect stops, in good order, all connectors that Connect made.
func (s *Server) Disconnect(id string) { s.Connect(id, 0) }

// Crash ends all connectors of a tunnel without a farewell: their connections
// stay listed, and stand in the way of deletion, until they are cleaned up. A
// process that was connected to [Server.Edge] is cut off, and can come back.
func (s *Server) Crash(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, replica := range s.mustFind(id).replicas {
		replica.stale = true
		replica.end()
	}
}

func (s *Server) find(id string) *tunnel {
	for _, t := range s.tunnels {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (s *Server) mustFind(id string) *tunnel {
	t := s.find(id)
	if t == nil {
		panic(fmt.Sprintf("simulator: there is no tunnel %q", id))
	}
	return t
}
