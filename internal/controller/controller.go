// Package controller owns the arrows between the other packages: a watch puts
// a key into the queue, its state is loaded, the decision built, the document
// pushed and the statuses written. It decides when, never what.
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
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Options configure the reconcilers.
type Options struct {
	ControllerName gatewayv1.GatewayController
	ClusterDomain  string
	// ClusterID begins the name of every tunnel of this cluster.
	ClusterID string
	// Account is where the tunnels are, unless the settings of a class say
	// otherwise.
	Account credentials.Default
	// Open returns the provider for an account and a token.
	Open func(account, token string) (provider.Provider, error)
	// Workers is how many Gateways are worked on at once.
	Workers int
	// DriftInterval is how long a document that was read is believed to be
	// unchanged.
	DriftInterval time.Duration
	// InventoryInterval is how often all tunnels are listed, to notice those
	// that are missing and tokens that were replaced.
	InventoryInterval time.Duration
	// Roles are the names of the controller's own Roles, in namespaces.
	Roles []string
	// Metrics are told of every pass over a Gateway.
	Metrics *metrics.Metrics
	// Tracer gets a span for every pass, and for its steps.
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
		Client: m.GetClient(), Live: m.GetAPIReader(), ControllerName: o.ControllerName, Now: time.Now, Tell: tell(recorder),
	}
	if err := setupClass(m, &classReconciler{
		client: m.GetClient(), live: m.GetAPIReader(), writer: writer, controllerName: o.ControllerName,
	}); err != nil {
		return err
	}
	ts := newTunnels(m, o, recorder)
	if err := setupKeepers(m, o.ControllerName, ts.accounts); err != nil {
		return err
	}
	if err := setupRoleKeeper(m, o.ControllerName, o.Roles); err != nil {
		return err
	}
	wakeups := make(chan event.TypedGenericEvent[state.Key])
	wake := func(key state.Key) {
		select {
		case wakeups <- event.TypedGenericEvent[state.Key]{Object: key}:
		case <-ctx.Done(): // nobody receives any more
		}
	}
	w := watches{reader: m.GetClient(), controllerName: o.ControllerName, holdsToken: ts.accounts.reads}
	r := newReconciler(m, o, writer, ts)
	notice := r.observer.changes.notice
	r.overlaps = &overlaps{all: w.fromOurs, wake: wake, hostnames: gateway.NewHostnames()}
	if err := m.Add(&inventory{tunnels: r.tunnels, interval: o.InventoryInterval, wake: wake}); err != nil {
		return err
	}
	controller := builder.TypedControllerManagedBy[state.Key](m).
		Named("gateway").
		WithOptions(ctrlcontroller.TypedOptions[state.Key]{MaxConcurrentReconciles: o.Workers, RateLimiter: rateLimiter()}).
		WithLogConstructor(logConstructor(m.GetLogger())).
		Watches(&gatewayv1.Gateway{}, enqueue(notice, w.fromGateway)).
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
		WatchesRawSource(source.TypedChannel(wakeups, handler.TypedFuncs[state.Key, state.Key]{GenericFunc: add}))
	for _, object := range ConnectorObjects() {
		controller = controller.Watches(object, enqueue(notice, w.fromOwned))
	}
	return controller.Complete(r)
}

// add puts the key of a wake-up into the queue.
func add(_ context.Context, e event.TypedGenericEvent[state.Key], queue workqueue.TypedRateLimitingInterface[state.Key]) {
	queue.Add(e.Object)
}

// rateLimiter spaces the passes that failed at the API server.
func rateLimiter() workqueue.TypedRateLimiter[state.Key] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[state.Key](100*time.Millisecond, lastRetry)
}

// tell makes an event of each step of an object's state.
func tell(recorder events.EventRecorder) func(client.Object, status.Change) {
	return func(object client.Object, change status.Change) {
		kind := corev1.EventTypeNormal
		if change.Bad {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(object, nil, kind, change.Reason, "Report", "%s", change.Message)
	}
}

func newReconciler(m manager.Manager, o Options, writer *status.Writer, ts *tunnels) *reconciler {
	return &reconciler{
		loader: state.Loader{
			Reader: m.GetClient(), ControllerName: o.ControllerName,
			Certificates: &state.RememberedCertificates{Metadata: m.GetClient(), Live: m.GetAPIReader()},
		},
		decisions: gateway.Options{ControllerName: o.ControllerName, ClusterDomain: o.ClusterDomain},
		writer:    writer,
		observer:  newObserver(o.Metrics, o.Tracer, time.Now),
		now:       time.Now,
		tunnels:   ts,
	}
}

func newTunnels(m manager.Manager, o Options, recorder events.EventRecorder) *tunnels {
	return &tunnels{
		client: m.GetClient(),
		live:   m.GetAPIReader(),
		accounts: &accounts{
			flags: o.Account, open: o.Open, metadata: m.GetClient(), live: m.GetAPIReader(), opened: map[credentials.Source]*opened{},
			secrets: map[types.NamespacedName]bool{},
		},
		connectors:     &connectors{client: m.GetClient(), live: m.GetAPIReader(), applied: map[state.Key]string{}},
		events:         recorder,
		controllerName: o.ControllerName,
		clusterID:      o.ClusterID,
		driftInterval:  o.DriftInterval,
		now:            time.Now,
		byGateway:      map[state.Key]*tunnel{},
		doubts:         map[state.Key]doubt{},
		letGone:        map[state.Key]provider.TunnelID{},
	}
}
