package xds

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// Options are the settings of a [Server].
type Options struct {
	// Address is the host and port on which the server listens.
	Address string
	// TLS requires and verifies client certificates.
	TLS *tls.Config
	// Identify returns the identity in a verified client certificate.
	Identify func(tls.ConnectionState) (authority.Identity, error)
	// IsCurrent reports whether the identity is that of an existing Tunnel. It must not block.
	IsCurrent func(authority.Identity) bool
	// Changed is called after the [State] of a Gateway has changed without a call of Publish.
	// It must not block.
	Changed func(gateway types.NamespacedName)
	// Metrics is optional.
	Metrics Metrics
	Logger  logr.Logger
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

// Server serves the published resources. Its methods are safe for concurrent use, before
// and after Start as well.
type Server struct {
	options Options
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server { return &Server{options: o} }

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader listens.
func (s *Server) NeedLeaderElection() bool { return true }

// Start listens and serves until the context is done.
func (s *Server) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
