package xds

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

// Options configure a [Server].
type Options struct {
	// Address is the host and port on which the server listens.
	Address string
	// TLS requires and verifies client certificates.
	TLS *tls.Config
	// Identify returns the identity in a verified client certificate.
	Identify func(tls.ConnectionState) (authority.Identity, error)
	// IsCurrent reports whether the identity belongs to an existing Tunnel. It must not
	// block.
	IsCurrent func(authority.Identity) bool
	// Changed is called after a Gateway's [State] has changed. The server holds no lock
	// during the call.
	Changed func(gateway types.NamespacedName)
	// Subscribed is called after [Server.Subscriptions] have changed. Its caller finds the
	// endpoints, and calls [Server.PublishByName]. The server holds no lock during the call.
	Subscribed func(gateway types.NamespacedName)
	// Metrics is optional.
	Metrics Metrics
	// Logger is optional.
	Logger logr.Logger
	// Memory is the memory limit of the process in bytes, or 0 if there is none. It
	// determines how much the server keeps for each Gateway's Envoys.
	Memory int64
}

// Metrics records what the server does. [metrics.Metrics] implements it. The methods must
// not call the server.
type Metrics interface {
	SetConnectedEnvoys(gateway types.NamespacedName, count int)
	DeleteConnectedEnvoys(gateway types.NamespacedName)
	RecordXDSPush(gateway types.NamespacedName, resources metrics.XDSResources)
	RecordXDSRejection(gateway types.NamespacedName, resources metrics.XDSResources)
	ObserveAcknowledgement(resources metrics.XDSResources, duration time.Duration)
}

// Server serves the published resources. Its methods are safe for concurrent use, even
// before and after Start.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	options  Options
	limits   memoryLimits
	arrivals *arrivals

	mu       sync.Mutex
	gateways map[types.NamespacedName]*gateway
	// connections counts the connections whose clients have identified themselves.
	connections int
	// isKnown reports whether the server has listened long enough for all Envoys to
	// connect.
	isKnown bool
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Changed == nil {
		o.Changed = func(types.NamespacedName) {}
	}
	if o.Subscribed == nil {
		o.Subscribed = func(types.NamespacedName) {}
	}
	return &Server{
		options: o, limits: newMemoryLimits(o.Memory), arrivals: newArrivals(),
		gateways: map[types.NamespacedName]*gateway{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader listens.
func (s *Server) NeedLeaderElection() bool { return true }

// Connection limits.
const (
	// maxConnections limits the clients that have identified themselves.
	maxConnections = 5000
	// maxConnectionsPerGateway is four times the maximum number of connectors.
	maxConnectionsPerGateway = 100
	// maxStreamsPerConnection is all that an Envoy needs. connection.unread depends on
	// it.
	maxStreamsPerConnection = 1
	// maxRequestSize is enough for an Envoy's first request, which lists the versions
	// of 50,000 clusters and their endpoints.
	maxRequestSize = 64 << 20
	// maxArrivals and maxArrivalsPerHost limit the clients that have not identified
	// themselves, in total and per address. They do not count as connections.
	maxArrivals        = 256
	maxArrivalsPerHost = 16
	// handshakeTimeout is how long a client may take to identify itself and to begin
	// HTTP/2.
	handshakeTimeout = 2 * time.Second
	// idleTimeout is how long a client may be connected without a stream on which it
	// has sent a request. Envoy sends one as soon as it is connected.
	idleTimeout = 30 * time.Second
	// sendTimeout is how long a client may take to read a response.
	sendTimeout = time.Minute
	// sweepInterval is how often the server looks for connections to end, and for
	// Envoys that are late.
	sweepInterval = 5 * time.Second
)

// memoryLimits limit what a Gateway's Envoys can make the server keep.
type memoryLimits struct {
	// unread limits the bytes in incomplete requests.
	unread int64
	// names limits the names that the server remembers for the streams.
	names int
}

// newMemoryLimits returns the limits for a process with the memory limit. At most, they
// are enough for 25 Envoys with 50,000 clusters each.
func newMemoryLimits(memory int64) memoryLimits {
	const (
		bytesPerName            = 256
		mostUnread, leastUnread = 512 << 20, maxRequestSize + maxRequestSize/2
		mostNames, leastNames   = 2_000_000, 500_000
	)
	if memory <= 0 {
		return memoryLimits{mostUnread, mostNames}
	}
	return memoryLimits{
		unread: min(max(memory/8, leastUnread), mostUnread),
		names:  int(min(max(memory/4/bytesPerName, leastNames), mostNames)),
	}
}

// Start listens and serves until the context is done.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listen for Envoys: %w", err)
	}
	return s.serve(ctx, listener)
}

// serve serves until the context is done.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(
		grpc.Creds(newCredentials(s)),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(maxRequestSize),
		grpc.MaxConcurrentStreams(maxStreamsPerConnection),
		grpc.MaxHeaderListSize(16<<10),
		grpc.WaitForHandlers(true),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	watching.Go(func() {
		defer server.Stop()
		for watched.Err() == nil { // the manager does not recover from a panic
			_ = recovery.Call(watched, func() error {
				s.watch(watched)
				return nil
			})
		}
	})
	if err := server.Serve(counted{listener, s.arrivals}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve Envoys: %w", err)
	}
	return nil
}

// watch ends connections that are no longer allowed, until the context is done.
func (s *Server) watch(ctx context.Context) {
	known, sweep := time.NewTimer(knownAfter), time.NewTicker(sweepInterval)
	defer known.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-known.C:
			s.becomeKnown()
		case <-sweep.C:
			s.sweep(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// becomeKnown records that all Envoys have had time to connect.
func (s *Server) becomeKnown() {
	s.changeAll(func() { s.isKnown = true }, func(*gateway) {})
}

// changeAll changes all Gateways, and reports those whose state has changed.
func (s *Server) changeAll(first func(), change func(*gateway)) {
	var reports []func()
	s.locked(func() {
		first()
		for _, g := range s.gateways {
			change(g)
			reports = append(reports, s.settle(g))
		}
	})
	for _, report := range reports {
		report()
	}
}

// locked calls f with the lock, which it releases even if f panics: the other Gateways must
// not wait for it forever.
func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// change changes a Gateway, and reports if its state has changed.
func (s *Server) change(g *gateway, f func()) {
	var report func()
	s.locked(func() {
		f()
		report = s.settle(g)
	})
	report()
}

// sweep ends the connections that are idle, whose certificate has expired or whose
// Tunnel is gone, and finds Envoys that are late.
func (s *Server) sweep(now time.Time) {
	var all, idle []*connection
	var subscribed []types.NamespacedName
	s.changeAll(func() {}, func(g *gateway) {
		for c := range g.connections {
			if c.isIdle(now) {
				idle = append(idle, c)
			} else {
				all = append(all, c)
			}
		}
		g.findLate()
		if g.byName.takeReport(true) {
			subscribed = append(subscribed, g.name)
		}
	})
	for _, gateway := range subscribed {
		s.options.Subscribed(gateway)
	}
	for _, c := range all {
		if !s.isAllowed(c, now) {
			c.end()
		}
	}
	for _, c := range idle {
		c.end()
	}
}

// isAllowed reports whether the client may get the configuration of its Gateway.
func (s *Server) isAllowed(c *connection, now time.Time) bool {
	return now.Before(c.expiry) && s.options.IsCurrent(c.identity)
}

// ensureGateway returns the named Gateway, and adds it if necessary.
func (s *Server) ensureGateway(name types.NamespacedName) *gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[name]
	if g == nil {
		g = newGateway(name)
		s.gateways[name] = g
	}
	return g
}

// recordConnected records how many Envoys are connected. The caller holds the lock.
func (s *Server) recordConnected(g *gateway) {
	if s.gateways[g.name] == g {
		s.options.Metrics.SetConnectedEnvoys(g.name, len(g.streams))
	}
}

type noMetrics struct{}

func (noMetrics) SetConnectedEnvoys(types.NamespacedName, int)                  {}
func (noMetrics) DeleteConnectedEnvoys(types.NamespacedName)                    {}
func (noMetrics) RecordXDSPush(types.NamespacedName, metrics.XDSResources)      {}
func (noMetrics) RecordXDSRejection(types.NamespacedName, metrics.XDSResources) {}
func (noMetrics) ObserveAcknowledgement(metrics.XDSResources, time.Duration)    {}
