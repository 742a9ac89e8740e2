package controller

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// setupEnvoys adds the authority, the xDS server and the controller of endpoints to the
// manager. The connectors of the lifecycle get their certificates from the authority.
func setupEnvoys(m manager.Manager, o Options, l *lifecycle, requeue func(state.Key)) (*envoys, error) {
	issuer := authority.New(authority.Options{
		Client: m.GetClient(), Metadata: m.GetCache(), Live: liveReader{m.GetAPIReader()},
		Namespace: o.Namespace, Name: o.XDSService + "-ca", ClusterID: o.ClusterID, Now: time.Now, FieldOwner: fieldOwner,
		Due: func(t *v1alpha1.Tunnel) { go requeue(gatewayOf(t)) },
	})
	l.connectors.identities = issuer
	l.connectors.xdsHost = fmt.Sprintf("%s.%s.svc.%s.", o.XDSService, o.Namespace, o.ClusterDomain)
	server := xds.NewServer(xds.Options{
		Address: o.XDSAddress, TLS: issuer.ServerConfig(), Identify: authority.PeerIdentity,
		IsCurrent: func(id authority.Identity) bool {
			return id.ClusterID == o.ClusterID && l.objects.isCurrent(id.Gateway, id.Tunnel)
		},
		Changed: func(gateway types.NamespacedName) { requeue(state.GatewayKey(gateway.Namespace, gateway.Name)) },
		Metrics: o.Metrics, Logger: m.GetLogger().WithName("xds"), Memory: memoryLimit(),
	})
	e := newEnvoys(server, m.GetClient(), o.Namespace, l.clock.uptime)
	l.envoys = e
	for _, runnable := range []manager.Runnable{issuer, server, manager.RunnableFunc(recordExpiry(issuer, o.Metrics))} {
		if err := m.Add(runnable); err != nil {
			return nil, err
		}
	}
	return e, setupEndpoints(m, e)
}

// memoryLimit returns the memory limit of the process (GOMEMLIMIT), or 0 if there is none.
func memoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// expiryInterval is the interval at which the metrics of certificates are updated.
const expiryInterval = time.Minute

// recordExpiry returns a function that records when the certificates of the authority expire.
func recordExpiry(issuer *authority.Authority, m *metrics.Metrics) func(context.Context) error {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(expiryInterval)
		defer ticker.Stop()
		for {
			expiry := issuer.Expiry()
			m.SetCertificateExpiry(expiry.Client, expiry.Authority)
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}
}
