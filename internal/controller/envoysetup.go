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

// xdsHost returns the name at which Envoys find the controller.
func (o Options) xdsHost() string {
	return fmt.Sprintf("%s.%s.svc.%s.", o.XDSService, o.Namespace, o.ClusterDomain)
}

// connectEnvoys adds the authority and the xDS server to the manager and to the
// dependencies. subscribe is called with a Gateway whose Envoys subscribe to clusters by
// their names.
func (d *dependencies) connectEnvoys(m manager.Manager, o Options, subscribe func(followed)) error {
	issuer := authority.New(authority.Options{
		Client: d.client, Metadata: d.metadata, Live: d.live,
		Namespace: o.Namespace, Name: o.XDSService + "-ca", ClusterID: o.ClusterID, Now: time.Now, FieldOwner: fieldOwner,
		Due: func(t *v1alpha1.Tunnel) { go d.requeue(gatewayOf(t)) },
	})
	objects := tunnelObjects{client: d.client, live: d.live, namespace: o.Namespace}
	server := xds.NewServer(xds.Options{
		Address: o.XDSAddress, TLS: issuer.ServerConfig(), Identify: authority.PeerIdentity,
		IsCurrent: func(id authority.Identity) bool {
			return id.ClusterID == o.ClusterID && objects.isCurrent(id.Gateway, id.Tunnel)
		},
		Changed:    func(gateway types.NamespacedName) { d.requeue(state.GatewayKey(gateway.Namespace, gateway.Name)) },
		Subscribed: func(gateway types.NamespacedName) { subscribe(followed{gateway: gateway}) },
		Metrics:    o.Metrics, Logger: m.GetLogger().WithName("xds"), Memory: memoryLimit(),
	})
	d.identities, d.xds = issuer, server
	for _, runnable := range []manager.Runnable{issuer, server, manager.RunnableFunc(recordExpiry(issuer, o.Metrics))} {
		if err := m.Add(runnable); err != nil {
			return err
		}
	}
	return nil
}

// memoryLimit returns the memory limit of the process (GOMEMLIMIT), or 0 if there is
// none.
func memoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// expiryInterval is how often certificate metrics are updated.
const expiryInterval = time.Minute

// recordExpiry returns a function that records when the authority's certificates
// expire.
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
