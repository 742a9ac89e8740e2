// Package controller reconciles Gateways. A watch adds a key to the queue. For each
// key, the process loads the state, publishes the routes for Envoy, runs the steps in
// the tunnel's lifecycle and writes the statuses. internal/decision and internal/tunnel
// make the decisions; this package executes them.
//
// The files follow a change through the controller:
//
//   - watch.go, watchtunnel.go and servicewatch.go map a changed object to the keys of the Gateways
//     that it affects. serviceimports.go watches ServiceImports while the cluster has their CRD, and
//     accesspolicies.go says whether AccessPolicies are known.
//   - process.go contains what all Gateways share, and memory.go what the process remembers about
//     one Gateway, and where it forgets it.
//   - reconcile.go reconciles a key.
//   - publish.go and envoys.go publish the routes for Envoy, and envoyendpoints.go the endpoints.
//     envoybyname.go publishes endpoints while there are no routes.
//   - manage.go and run.go contain the loop of decisions about the tunnel. execute.go executes a step,
//     with the objects in tunnelobjects.go, tokensecret.go and connectorobjects.go.
//   - dns.go contains what the decisions say about hostnames in DNS, and dnszone.go the loop of decisions
//     about the records in one zone.
//   - access.go contains what the decisions demand of Cloudflare Access, and accessaccount.go the loop of
//     decisions about the applications in one account. executor.go is what both loops share.
//   - observer.go records metrics and traces, and notifier.go emits events.
package controller

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Options configure the reconcilers.
type Options struct {
	ControllerName gatewayv1.GatewayController
	ClusterDomain  string
	// ClusterUID is the UID of the kube-system namespace.
	ClusterUID string
	// ClusterID is the prefix for tunnel names in this installation.
	ClusterID string
	// Namespace is the controller's own namespace, which contains the Tunnels and
	// the connector objects.
	Namespace string
	// InScope reports whether the controller is configured to work in a namespace.
	// The namespace may not exist.
	InScope func(namespace string) bool
	// AccessPolicies says whether AccessPolicies are known.
	AccessPolicies *AccessPolicies
	// ReadsCertificates reports whether the controller validates certificates in a
	// namespace.
	ReadsCertificates func(namespace string) bool
	// Account is the Cloudflare account for tunnels whose GatewayClass does not
	// configure another account.
	Account credentials.Default
	// Open returns a provider for an account and an API token.
	Open func(account, token string) (provider.Provider, error)
	// OpenDNS returns the DNS interface for the zones of an account. apiToken is the
	// account's API token, and dnsToken the API token for DNS; empty for the account's.
	OpenDNS func(account, apiToken, dnsToken string) (provider.DNS, error)
	// OpenAccess returns the interface for the applications of an account. apiToken is the
	// account's API token, and accessToken the API token for Access; empty for the account's.
	OpenAccess func(account, apiToken, accessToken string) (provider.Access, error)
	// SigningKeySecret names the Secret with the key that signs the comments of DNS records
	// and the tags of applications, in the controller's namespace.
	SigningKeySecret string
	// Workers is how many Gateways are reconciled concurrently.
	Workers int
	// RetirementDelay is how long a Gateway must be gone before its Tunnel retires.
	RetirementDelay time.Duration
	// DriftInterval is how often a tunnel's configuration is read to find external
	// changes.
	DriftInterval time.Duration
	// InventoryInterval is how often the accounts' tunnels are listed.
	InventoryInterval time.Duration
	// XDSAddress is the address on which the leader serves Envoy configurations.
	XDSAddress string
	// XDSService names the Service at which Envoys find the leader. It is in the
	// controller's own namespace.
	XDSService string
	// PodIP is the address of the controller's pod, or the zero value outside a
	// cluster. Connector pods have addresses with the same IP version.
	PodIP netip.Addr
	// PodIPs are all addresses of the controller's pod, including those with the other IP
	// version. No backend may have one of them.
	PodIPs []netip.Addr
	// Metrics records every reconcile.
	Metrics *metrics.Metrics
	// Tracer creates a span for every reconcile and its phases.
	Tracer trace.Tracer
}

// Setup adds the indexes, the watches, the reconcilers and the inventory to the manager.
func Setup(ctx context.Context, m manager.Manager, o Options) error {
	if err := setupIndexes(ctx, m, o); err != nil {
		return err
	}
	requeued, requeue := requeueing[state.Key](ctx)
	subscribed, subscribe := requeueing[followed](ctx)
	changedZones, enqueueZone := requeueing[zoneKey](ctx)
	changedAccounts, enqueueAccount := requeueing[accountKey](ctx)
	own, changes := newOwnWrites(), &state.Changes{}
	cached, ok := m.GetCache().(*scopedCache)
	if !ok {
		return errors.New("the manager's cache is not from NewCache")
	}
	cached.confirmer.record = changes.Record
	d := dependencies{
		client: own.client(m.GetClient()), own: own, metadata: m.GetCache(), live: liveReader{m.GetAPIReader()},
		changes: changes, notify: notifier{events: m.GetEventRecorder("tunnel-gateway")}, requeue: requeue, enqueueZone: enqueueZone, enqueueAccount: enqueueAccount, clock: systemClock(),
	}
	if err := d.connectEnvoys(m, o, subscribe); err != nil {
		return err
	}
	w := watches{
		reader: m.GetClient(), controllerName: o.ControllerName, namespace: o.Namespace, podIPs: o.PodIPs, account: o.Account, policies: o.AccessPolicies,
		changes: d.changes, own: own,
	}
	imports := &serviceImports{cache: m.GetCache(), live: d.live, watches: w, requeue: requeue}
	d.imports, d.policies = imports, o.AccessPolicies
	p := newProcess(d, o)
	imports.record = p.observer.pending.add
	if err := setupImports(m, imports); err != nil {
		return err
	}
	for _, runnable := range []manager.Runnable{p.writer, newInventory(p, o, requeue), &connections{book: p.dns, accounts: p.accounts, clock: p.clock}} {
		if err := m.Add(runnable); err != nil {
			return err
		}
	}
	classes := &classReconciler{client: m.GetClient(), writer: p.writer, controllerName: o.ControllerName, namespace: o.Namespace}
	if err := setupClass(m, classes); err != nil {
		return err
	}
	if err := setupEndpoints(m, p.envoys, subscribed); err != nil {
		return err
	}
	key := newSigningKey(d, o)
	if err := setupExecutor(m, "zone", newZoneReconciler(p, d, o, key), changedZones); err != nil {
		return err
	}
	if err := setupExecutor(m, "account", newAccountReconciler(p, d, o, key), changedAccounts); err != nil {
		return err
	}
	return watchAll(m, o, p, w, requeued)
}

// setupIndexes adds the indexes of the kinds that are watched.
func setupIndexes(ctx context.Context, m manager.Manager, o Options) error {
	for _, index := range state.Indexes(o.ControllerName) {
		if _, ok := index.Object.(*v1alpha1.AccessPolicy); ok && !o.AccessPolicies.isWatched() {
			continue
		}
		if err := m.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Extract); err != nil {
			return err
		}
	}
	return nil
}

// requeueing returns a channel for a controller, and a function that waits until the
// controller has received a key.
func requeueing[K comparable](ctx context.Context) (chan event.TypedGenericEvent[K], func(K)) {
	requeued := make(chan event.TypedGenericEvent[K])
	return requeued, func(key K) {
		select {
		case requeued <- event.TypedGenericEvent[K]{Object: key}:
		case <-ctx.Done(): // the manager no longer receives
		}
	}
}

// unwrittenStatuses returns a function that records how many statuses cannot be
// written.
func unwrittenStatuses(m *metrics.Metrics) func(gateway.Owner, int) {
	return func(owner gateway.Owner, count int) {
		if owner.Kind == gateway.KindGateway {
			m.SetUnwrittenStatuses(owner.NamespacedName, count)
		}
	}
}
