// Package controller connects the other packages: a watch puts a key into the
// queue, the state is loaded, the decision is built, the steps of the tunnel's
// life are executed, and the statuses are written. The package decides when
// something happens; internal/gateway and internal/tunnel decide what.
package controller

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Options configure the reconcilers.
type Options struct {
	ControllerName gatewayv1.GatewayController
	ClusterDomain  string
	// ClusterUID is the UID of the namespace kube-system.
	ClusterUID string
	// ClusterID begins the names of the tunnels of this installation.
	ClusterID string
	// Namespace is the controller's own namespace: that of the Tunnels and of all
	// that runs connectors.
	Namespace string
	// InScope reports whether the settings include a namespace. The namespace may
	// not exist.
	InScope func(namespace string) bool
	// ReadsCertificates reports whether the certificates in a namespace are checked.
	ReadsCertificates func(namespace string) bool
	// Account is the Cloudflare account of tunnels, unless the settings of a class
	// name another one.
	Account credentials.Default
	// Open returns the provider for an account and an API token.
	Open func(account, token string) (provider.Provider, error)
	// Workers is how many Gateways are reconciled at once.
	Workers int
	// RetirementDelay is how long a Gateway has to be gone until its tunnel
	// retires.
	RetirementDelay time.Duration
	// DriftInterval is how long a configuration that was read is believed to be
	// unchanged.
	DriftInterval time.Duration
	// InventoryInterval is how often the tunnels of the accounts are listed.
	InventoryInterval time.Duration
	// Metrics record every reconcile.
	Metrics *metrics.Metrics
	// Tracer gets a span for every reconcile, and for its parts.
	Tracer trace.Tracer
}

// Setup adds the indexes, the watches and both reconcilers to the manager.
func Setup(ctx context.Context, m manager.Manager, o Options) error {
	for _, index := range state.Indexes(o.ControllerName) {
		if err := m.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Extract); err != nil {
			return err
		}
	}
	recorder := m.GetEventRecorder("tunnel-gateway")
	writer := &status.Writer{
		Client: m.GetClient(), Live: m.GetAPIReader(), ControllerName: o.ControllerName, Now: time.Now, Notify: conditionEvents(recorder),
	}
	classes := &classReconciler{client: m.GetClient(), writer: writer, controllerName: o.ControllerName, namespace: o.Namespace}
	if err := setupClass(m, classes); err != nil {
		return err
	}
	wakeups := make(chan event.TypedGenericEvent[state.Key])
	wake := func(key state.Key) {
		select {
		case wakeups <- event.TypedGenericEvent[state.Key]{Object: key}:
		case <-ctx.Done(): // nobody receives any more
		}
	}
	l := newLifecycle(m, o, writer, recorder)
	w := watches{reader: m.GetClient(), controllerName: o.ControllerName, namespace: o.Namespace, isTokenSecret: l.accounts.readsSecret}
	r := newReconciler(m, o, writer, l)
	r.hostnames = &sharedHostnames{listManaged: w.managedGateways, requeue: wake, hostnames: gateway.NewHostnames()}
	inventory := &inventory{
		lifecycle: l, interval: o.InventoryInterval, requeue: wake, metrics: o.Metrics, orphanCandidates: map[string]map[provider.TunnelID]bool{},
	}
	if err := m.Add(inventory); err != nil {
		return err
	}
	return watchAll(m, o, r, w, wakeups)
}

// watchAll watches every kind that can affect a Gateway.
func watchAll(m manager.Manager, o Options, r *reconciler, w watches, wakeups chan event.TypedGenericEvent[state.Key]) error {
	notice := r.observer.pending.add
	controller := builder.TypedControllerManagedBy[state.Key](m).
		Named("gateway").
		WithOptions(ctrlcontroller.TypedOptions[state.Key]{MaxConcurrentReconciles: o.Workers, RateLimiter: rateLimiter()}).
		WithLogConstructor(logConstructor(m.GetLogger())).
		Watches(&gatewayv1.Gateway{}, enqueue(notice, w.fromGateway)).
		Watches(&gatewayv1.Gateway{}, enqueue(notice, w.fromUncountedGateway), builder.WithPredicates(reducesUsage)).
		Watches(&gatewayv1.GatewayClass{}, enqueue(notice, w.fromClass)).
		Watches(&gatewayv1.ListenerSet{}, enqueue(notice, w.fromListenerSet)).
		Watches(&gatewayv1.HTTPRoute{}, enqueue(notice, w.fromRoute)).
		Watches(&gatewayv1.GRPCRoute{}, enqueue(notice, w.fromRoute)).
		Watches(&gatewayv1beta1.ReferenceGrant{}, enqueue(notice, w.fromGrant)).
		WatchesMetadata(&corev1.Secret{}, enqueue(notice, w.fromSecret)).
		Watches(&corev1.Namespace{}, enqueue(notice, w.fromNamespace), builder.WithPredicates(labelsChanged)).
		Watches(&corev1.Service{}, enqueue(notice, w.fromService), builder.WithPredicates(serviceChanged)).
		Watches(&discoveryv1.EndpointSlice{}, enqueue(notice, w.fromEndpointSlice), builder.WithPredicates(portsChanged)).
		Watches(&v1alpha1.TunnelConfiguration{}, enqueue(notice, w.fromConfiguration)).
		Watches(&v1alpha1.Tunnel{}, enqueue(notice, w.fromTunnel)).
		WatchesRawSource(source.TypedChannel(wakeups, handler.TypedFuncs[state.Key, state.Key]{GenericFunc: add}))
	for _, kind := range connector.Kinds() {
		controller = controller.Watches(kind.New(), enqueue(notice, w.fromConnectors))
	}
	return controller.Complete(r)
}

// add puts the key of a wake-up into the queue.
func add(_ context.Context, e event.TypedGenericEvent[state.Key], queue workqueue.TypedRateLimitingInterface[state.Key]) {
	queue.Add(e.Object)
}

// maxRetryDelay is the longest time between two attempts after an error of the API
// server.
const maxRetryDelay = time.Minute

// rateLimiter spaces the reconciles that failed at the API server.
func rateLimiter() workqueue.TypedRateLimiter[state.Key] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[state.Key](100*time.Millisecond, maxRetryDelay)
}

// conditionEvents returns what emits an event for each change of an object's conditions.
func conditionEvents(recorder events.EventRecorder) func(client.Object, status.Change) {
	return func(object client.Object, change status.Change) {
		kind := corev1.EventTypeNormal
		if change.Warning {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(object, nil, kind, change.Reason, "Report", "%s", change.Message)
	}
}

func newReconciler(m manager.Manager, o Options, writer *status.Writer, l *lifecycle) *reconciler {
	return &reconciler{
		loader: state.Loader{
			Reader: m.GetClient(), ControllerName: o.ControllerName, ControllerNamespace: o.Namespace,
			Certificates: &state.CachedCertificates{Metadata: m.GetClient(), Live: m.GetAPIReader(), Reads: o.ReadsCertificates},
		},
		buildOptions: gateway.Options{ControllerName: o.ControllerName, ClusterDomain: o.ClusterDomain, ControllerNamespace: o.Namespace},
		writer:       writer,
		observer:     newObserver(o.Metrics, o.Tracer, time.Now),
		now:          time.Now,
		lifecycle:    l,
	}
}

func newLifecycle(m manager.Manager, o Options, writer *status.Writer, recorder events.EventRecorder) *lifecycle {
	c, live := m.GetClient(), m.GetAPIReader()
	return &lifecycle{
		objects:    tunnelObjects{client: c, live: live, namespace: o.Namespace},
		gateways:   gatewayReader{live: live, controllerName: o.ControllerName, inScope: o.InScope},
		tokens:     tokenSecrets{client: c, live: live},
		connectors: &connectors{client: c, live: live, applied: map[string]applied{}},
		accounts: &accounts{
			defaults: o.Account, connect: o.Open, metadata: c, live: live, bySource: map[credentials.Source]*openAccount{},
			secretsRead: map[types.NamespacedName]bool{},
		},
		reservations: &reservations{byTunnel: map[string]state.Key{}},
		statuses:     writer,
		notify:       notifier{events: recorder},
		options: tunnel.Options{
			ControllerName: string(o.ControllerName), ClusterUID: o.ClusterUID, ClusterID: o.ClusterID,
			RetirementDelay: o.RetirementDelay, DriftInterval: o.DriftInterval,
		},
		clock:    systemClock(),
		tunnels:  map[state.Key]*managedTunnel{},
		findings: map[state.Key]inventoryFinding{},
	}
}
