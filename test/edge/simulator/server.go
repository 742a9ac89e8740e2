// Package simulator simulates Cloudflare: the tunnel and zone endpoints in the v4 API, the
// edge that connectors connect to, and each tunnel's data path. The data path serves requests
// by the stored configuration, as cloudflared does. The records in [Options.Zones] decide
// which tunnel serves a hostname.
//
// The edge protects the hostnames of the applications in [Options.Access]: without a session
// it redirects visitors to the login, which needs no password (see [Server.Login]). It adds
// the session's signed token to requests. A rule that requires Access checks this token, as
// cloudflared does; [Server.Tunnel] serves requests that come from behind the edge.
//
// The tests compare the product with this package, so it shares no code with the product:
// it must not import its rules, types or validation.
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

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// statusNoTunnel is what Cloudflare returns for a hostname whose tunnel does not exist or
// has no connection.
const statusNoTunnel = 530

// Options configures a [Server]. The zero value accepts any account and token.
type Options struct {
	// Dial connects to an origin. network is "tcp", and address is the "host:port" in the
	// rule's service. Nil selects a plain [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialConnector connects to an origin on a loopback address, which is in the
	// connector pod that carries the request. connector is the pod's host name, which the
	// connector sent to [Server.Edge]. For requests to all origins, the data path selects
	// in turn from the connectors that sent a host name, and returns 530 if none is
	// connected. Nil selects Dial, which needs no connectors.
	DialConnector func(ctx context.Context, connector, network, address string) (net.Conn, error)
	// Lag is called for each connector that connects to [Server.Edge], and returns how late
	// the data path notices that it has connected and unregistered. It must not call the
	// server. Nil means that the data path notices both at once.
	Lag func() Lag
	// AccountID is the only account that exists. If it is empty, every account
	// exists.
	AccountID string
	// Token is the API token that the API accepts. If it is empty, the API accepts
	// any bearer token.
	Token string
	// Zones are the zones in the API, and those in which [Server.Visitors] looks hostnames up.
	// Nil means no zones.
	Zones *zones.Database
	// Access is the applications of Cloudflare Access in the API. The edge
	// obeys them. Nil means none, in accounts that have the Zones, or every zone if Zones is nil.
	Access *access.Database
	// AcceptInvalid makes the API store configurations that the connector rejects.
	// The connector then keeps its previous configuration.
	AcceptInvalid bool
	// OnCreate is called with every new tunnel, before the API responds.
	OnCreate func(Tunnel)
	// ReconnectDelay is how long a connector from [Server.Connect] or
	// [Server.StartConnector] takes to reconnect after the API has disconnected it.
	// During that time the API does not list it. With 0 it reconnects immediately, and
	// only its start time changes.
	ReconnectDelay time.Duration
	// PendingReconnect is how long the API lists a connector that disconnected
	// without unregistering, with is_pending_reconnect. 0 selects three minutes.
	PendingReconnect time.Duration
}

// Lag is how late the data path notices that a connector that carries requests has
// changed. The API lists the connector without a lag.
type Lag struct {
	// Connected is the time for which it sends no requests to a connector that has
	// connected.
	Connected time.Duration
	// Unregistered is how long the data path keeps sending requests to a connector that
	// has unregistered. They fail once the connector's connection has ended.
	Unregistered time.Duration
}

// defaultPendingReconnect is three minutes: the API documentation states "several
// minutes".
const defaultPendingReconnect = 3 * time.Minute

// Server simulates accounts, tunnels and their connectors. Its methods are safe
// for concurrent use. A method that takes a tunnel ID panics if that tunnel never
// existed, because the test is wrong.
type Server struct {
	options Options
	api     http.Handler
	serving sync.WaitGroup
	ctx     context.Context // canceled when the server is closed
	cancel  context.CancelFunc
	// authority signs the edge's certificates.
	authority func() edgeAuthority

	mu        sync.Mutex
	token     string
	grants    map[string][]Grant // by token; see Restrict
	tunnels   []*tunnel          // in creation order, including deleted tunnels
	faults    []*Fault
	requests  []*Request
	listeners []*http.Server
	closed    bool

	visitorFaults []*VisitorFault
	serviceTokens map[string]string  // secrets by ID
	codes         map[string]Session // logins that have not reached the application's hostname
}

// New returns a server without tunnels. The caller closes it if it serves
// listeners or connectors.
func New(o Options) *Server {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Lag == nil {
		o.Lag = func() Lag { return Lag{} }
	}
	if o.Access == nil {
		o.Access = newAccess(o.Zones)
	}
	if o.Zones == nil {
		o.Zones = zones.New(zones.Options{})
	}
	if o.PendingReconnect == 0 {
		o.PendingReconnect = defaultPendingReconnect
	}
	s := &Server{options: o, token: o.Token, authority: sync.OnceValue(newEdgeAuthority)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.api = s.routes()
	return s
}

// newAccess returns a database without applications.
func newAccess(z *zones.Database) *access.Database {
	var o access.Options
	if z != nil {
		o.HasZone = z.HasActive
	}
	return access.New(o)
}

// API returns a handler that serves the v4 API below /client/v4/.
func (s *Server) API() http.Handler { return s.api }

// Tunnel returns a handler that serves a tunnel's data path. It returns 530 if the tunnel
// does not exist or was deleted. It sends the Host header, the path and the query to the
// origin as they are, appends to X-Forwarded-For, and forwards upgrades and trailers. A
// response may end before its request.
func (s *Server) Tunnel(id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		t := s.find(id)
		if t == nil || t.deleted() {
			s.mu.Unlock()
			errNoTunnel.ServeHTTP(w, r)
			return
		}
		path := t.dataPath
		s.mu.Unlock()
		path.serve(w, r, func() *replica {
			s.mu.Lock()
			defer s.mu.Unlock()
			return t.carrier()
		})
	})
}

func (s *Server) dialer() dialer { return dialer{s.options.Dial, s.options.DialConnector} }

// Listen serves a tunnel's data path on l, over HTTP/1.1 and HTTP/2, until the server is
// closed. It does not block. Clients without TLS select HTTP/2 by prior knowledge, as
// gRPC clients do. If l is a crypto/tls listener, clients can use HTTP/2 if its
// configuration offers the protocol "h2".
func (s *Server) Listen(id string, l net.Listener) {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s.Tunnel(id), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	s.listeners = append(s.listeners, server)
	s.mu.Unlock()
	s.serving.Go(func() { _ = server.Serve(l) }) // ends when the server is closed
}

// Close stops the listeners passed to [Server.Listen], closes idle connections to the
// origins, and disconnects all connectors, which cannot reconnect. It discards the
// requests that a fault still delays (see [DropThenWrite]).
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for _, server := range s.listeners {
		_ = server.Close()
	}
	for _, t := range s.tunnels {
		t.dataPath.closeIdleConnections()
		t.removeReplicas(func(r *replica) bool { return r.closeConnection != nil })
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// TunnelID returns the ID of the tunnel with that name, and whether it exists. It ignores
// deleted tunnels.
func (s *Server) TunnelID(name string) (string, bool) {
	for _, t := range s.Tunnels() {
		if t.Name == name && !t.Deleted {
			return t.ID, true
		}
	}
	return "", false
}

// Tunnels returns all tunnels in the order in which they were created, including deleted
// tunnels.
func (s *Server) Tunnels() []Tunnel {
	s.mu.Lock()
	defer s.mu.Unlock()
	tunnels := make([]Tunnel, 0, len(s.tunnels))
	for _, t := range s.tunnels {
		tunnels = append(tunnels, t.summary())
	}
	return tunnels
}

// StoredConfiguration returns the stored configuration, with the fields that the
// API added, and its version. It returns nil and 0 for a tunnel that was never
// configured.
func (s *Server) StoredConfiguration(id string) (configuration json.RawMessage, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mustFind(id)
	return bytes.Clone(t.configuration), t.version
}

// SetConfiguration makes an external change: it stores a configuration without
// recording a request and without validation. It raises the version by one. The
// configuration must be a JSON object.
func (s *Server) SetConfiguration(id string, configuration json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := addDefaults(configuration)
	if err != nil {
		panic(fmt.Sprintf("simulator: configuration of tunnel %q: %v", id, err))
	}
	s.mustFind(id).configure(stored, s.dialer())
}

// SetToken replaces the API token that the API accepts. An empty token makes the
// API accept any.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// RotateToken replaces the tunnel's secret, as an administrator does in the
// dashboard. From then on the API returns a different token. Running connectors
// stay connected until the API disconnects them. The edge refuses the old secret
// when they reconnect.
func (s *Server) RotateToken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).secret = newSecret()
}

// SetRoutes adds private network routes to a tunnel, or removes them. The API
// does not delete a tunnel that has routes.
func (s *Server) SetRoutes(id string, routes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).hasRoutes = routes
}

// SetLocal makes a tunnel locally managed, or remotely managed if local is false. The
// connectors of a locally managed tunnel ignore the stored configuration. After a change
// to remotely managed they use the next configuration that is stored.
func (s *Server) SetLocal(id string, local bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).setLocal(local)
}

// Connect sets how many simulated connectors a tunnel has, without counting connectors
// that are connected to [Server.Edge]. While the API lists a connector of either kind,
// the tunnel cannot be deleted. A simulated connector that the API disconnects reconnects
// automatically, see [Options.ReconnectDelay]. The data path does not need connectors,
// except for [Options.DialConnector].
func (s *Server) Connect(id string, replicas int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).connect(replicas)
}

// StartConnector adds one simulated connector, like those from [Server.Connect], to the
// token's tunnel. It returns the connector's ID, or an error if [Server.Edge] would
// refuse the token.
func (s *Server) StartConnector(token string) (connector string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, refused := s.authenticate(token)
	if t == nil {
		return "", fmt.Errorf("refused with %d: %s", refused.status, refused.text)
	}
	return t.addReplica(uuid.NewString(), "", nil).id, nil
}

// StopConnector stops a connector gracefully.
func (s *Server) StopConnector(id, connector string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustFind(id).removeReplicas(func(r *replica) bool { return r.id == connector })
}

// Disconnect gracefully stops all connectors that [Server.Connect] or
// [Server.StartConnector] added.
func (s *Server) Disconnect(id string) { s.Connect(id, 0) }

// Crash stops a tunnel's connectors without unregistering them. If no connector is given,
// it stops all of them. The API keeps listing them with is_pending_reconnect until
// [Options.PendingReconnect] has passed or their connections are deleted. Until then, the
// tunnel cannot be deleted. A process that was connected to [Server.Edge] is disconnected
// and can reconnect.
func (s *Server) Crash(id string, connectors ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, replica := range s.mustFind(id).replicas {
		if len(connectors) == 0 || slices.Contains(connectors, replica.id) {
			replica.markLost()
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
		panic(fmt.Sprintf("simulator: tunnel %q not found", id))
	}
	return t
}
