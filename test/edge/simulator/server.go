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
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
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
	// ReconnectDelay is how long a connector of [Server.Connect] or
	// [Server.StartConnector] is away after the API has disconnected it. It is not
	// listed meanwhile. With 0 it is back at once; only the time since which it is
	// connected shows that it was away.
	ReconnectDelay time.Duration
	// PendingReconnect is how long the API lists a connector that disappeared
	// without a farewell, with is_pending_reconnect. 0 is three minutes.
	PendingReconnect time.Duration
}

// defaultPendingReconnect is "several minutes" in the documentation of the API.
const defaultPendingReconnect = 3 * time.Minute

// Server is one Cloudflare: accounts, tunnels and their connectors. Its methods
// may be called from several goroutines. Those that take the id of a tunnel
// panic when there never was one, since that is a mistake in the test.
type Server struct {
	options Options
	api     http.Handler
	serving sync.WaitGroup
	life    context.Context // until the server is closed
	end     context.CancelFunc

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
	if o.PendingReconnect == 0 {
		o.PendingReconnect = defaultPendingReconnect
	}
	s := &Server{options: o, token: o.Token}
	s.life, s.end = context.WithCancel(context.Background())
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
// connectors, none of which can come back, and forgets requests that would have
// arrived late.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.end()
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

// StoredConfiguration returns the stored document, with the fields that the API added,
// and its version. A tunnel that was never configured has nil and 0.
func (s *Server) StoredConfiguration(id string) (document json.RawMessage, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mustFind(id)
	return bytes.Clone(t.document), t.version
}

// SetConfiguration stores a document as somebody else would: past the request log
// and past validation. It raises the version by one. The document must be a
// JSON object.
func (s *Server) SetConfiguration(id string, document json.RawMessage) {
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
// run stay connected until the API disconnects them. The edge refuses the old
// secret when they come back.
func (s *Server) RotateToken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).secret = newSecret()
}

// SetRoutes adds private network routes to a tunnel, or removes them. With
// routes, it cannot be deleted.
func (s *Server) SetRoutes(id string, routes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).routed = routes
}

// SetLocal makes a tunnel locally managed, so that its connectors have no remote
// document, or migrates it: they take the document that is stored next.
func (s *Server) SetLocal(id string, local bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).setLocal(local)
}

// Connect sets the number of running connectors of a tunnel, beside those that
// are connected to [Server.Edge]. While the API lists any of either, the tunnel
// cannot be deleted. A running connector that the API disconnects comes back by
// itself, see [Options.ReconnectDelay]. The data path does not need connectors.
func (s *Server) Connect(id string, replicas int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).connect(replicas)
}

// StartConnector adds one running connector, as [Server.Connect] makes them, to
// the tunnel of the token. It returns the connector's ID, or an error when
// [Server.Edge] would refuse the token.
func (s *Server) StartConnector(token string) (connector string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, refused := s.admit(token)
	if t == nil {
		return "", fmt.Errorf("refused with %d: %s", refused.status, refused.text)
	}
	return t.attach(uuid.NewString(), nil).id, nil
}

// StopConnector stops a connector in good order.
func (s *Server) StopConnector(id, connector string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).drop(func(r *replica) bool { return r.id == connector })
}

// Disconnect stops, in good order, all connectors that Connect or StartConnector
// made.
func (s *Server) Disconnect(id string) { s.Connect(id, 0) }

// Crash ends connectors of a tunnel without a farewell, all of them when none is
// named. The API goes on to list them, with is_pending_reconnect, for the time of
// [Options.PendingReconnect] or until their connections are deleted; so long they
// stand in the way of the tunnel's deletion. A process that was connected to
// [Server.Edge] is cut off, and can come back.
func (s *Server) Crash(id string, connectors ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, replica := range s.mustFind(id).replicas {
		if len(connectors) == 0 || slices.Contains(connectors, replica.id) {
			replica.lose()
		}
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
