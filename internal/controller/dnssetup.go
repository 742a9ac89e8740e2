package controller

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

// zoneWorkers is how many zones are processed at the same time. A zone whose requests take
// long must not delay the others.
const zoneWorkers = 16

func newDNSBook(d dependencies, o Options) *dnsBook {
	return &dnsBook{
		listManaged: watches{reader: d.client, controllerName: o.ControllerName, namespace: o.Namespace}.managedGateways,
		zones: &zones{
			reader: d.client, controllerName: o.ControllerName, namespace: o.Namespace, account: o.Account,
			classes: map[string]zoneClass{}, byKey: map[zoneKey]*zone{},
		},
		enqueue: d.enqueueZone, requeue: d.requeue, entries: map[types.NamespacedName]*dnsEntry{},
	}
}

func newZoneReconciler(p *process, d dependencies, o Options) *zoneReconciler {
	return &zoneReconciler{
		book: p.dns, zones: p.dns.zones,
		tokens:  &dnsTokens{open: o.OpenDNS, metadata: d.metadata, live: d.live, namespace: o.Namespace, read: map[credentials.Source]readToken{}},
		key:     &signingKey{client: d.client, metadata: d.metadata, live: d.live, name: types.NamespacedName{Namespace: o.Namespace, Name: o.SigningKeySecret}},
		objects: p.objects, options: p.options.Tunnel, metrics: o.Metrics, clock: d.clock,
	}
}

// setupZones adds the controller that processes zones.
func setupZones(m manager.Manager, r *zoneReconciler, enqueued chan event.TypedGenericEvent[zoneKey]) error {
	controller := builder.TypedControllerManagedBy[zoneKey](m).
		Named("zone").
		WithOptions(ctrlcontroller.TypedOptions[zoneKey]{MaxConcurrentReconciles: zoneWorkers, RateLimiter: rateLimiter[zoneKey]()}).
		WithLogConstructor(zoneLogger(m.GetLogger())).
		WatchesRawSource(source.TypedChannel(enqueued, handler.TypedFuncs[zoneKey, zoneKey]{GenericFunc: addZone}))
	return register(controller, r.watches()).Complete(r)
}

// addZone adds a zone to the queue after [zoneDelay]. Further changes until then cause no
// other reconcile.
func addZone(_ context.Context, e event.TypedGenericEvent[zoneKey], queue workqueue.TypedRateLimitingInterface[zoneKey]) {
	queue.AddAfter(e.Object, zoneDelay)
}

// zoneLogger adds the zone to every log line in a reconcile.
func zoneLogger(logger logr.Logger) func(*zoneKey) logr.Logger {
	return func(key *zoneKey) logr.Logger {
		if key == nil {
			return logger
		}
		return logger.WithValues("zone", key.name, "account", key.account)
	}
}

// watches returns watches for the kinds that affect a zone, apart from the kinds that affect
// Gateways.
func (r *zoneReconciler) watches() []watch[zoneKey] {
	return []watch[zoneKey]{
		{kinds.GatewayClass, enqueueZones(r.fromClass), nil},
		{kinds.TunnelConfiguration, enqueueZones(r.fromClass), nil},
		{kinds.Secret, enqueueZones(r.fromSecret), nil},
		{kinds.Tunnel, enqueueZones(r.fromTunnel), predicate.AnnotationChangedPredicate{}},
	}
}

// enqueueZones returns an event handler that enqueues the zones that a change affects.
func enqueueZones[T client.Object](find func(context.Context, T) ([]zoneKey, error)) handler.TypedEventHandler[client.Object, zoneKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []zoneKey {
		var found []zoneKey
		// The informer does not recover from a panic.
		err := recovery.Call(ctx, func() (err error) {
			found, err = find(ctx, object.(T))
			return err
		})
		if err != nil {
			// Reads from the cache fail only if an index is missing, which is a bug.
			log.FromContext(ctx).Error(err, "failed to find the zones that a change affects", "object", client.ObjectKeyFromObject(object))
		}
		return found
	})
}

// fromClass maps a GatewayClass or a TunnelConfiguration to the zones whose settings have
// changed.
func (r *zoneReconciler) fromClass(ctx context.Context, _ client.Object) ([]zoneKey, error) {
	return r.zones.refresh(ctx)
}

// fromSecret maps a Secret's metadata to the zones that use its token or its key.
func (r *zoneReconciler) fromSecret(_ context.Context, secret *metav1.PartialObjectMetadata) ([]zoneKey, error) {
	name := client.ObjectKeyFromObject(secret)
	return r.zones.using(func(c zoneClass) bool {
		own, _ := r.tokens.source(c)
		return name == r.key.name || name == c.source.Secret || name == own.Secret
	}), nil
}

// fromTunnel maps a Tunnel to the zones of the records that it requests to adopt.
func (r *zoneReconciler) fromTunnel(_ context.Context, t *v1alpha1.Tunnel) ([]zoneKey, error) {
	requests, _ := t.RequestedAdoptions() // the Gateway's reconcile reports an error
	var keys []zoneKey
	for _, request := range requests {
		keys = append(keys, zoneKey{t.Spec.AccountID, request.Zone})
	}
	return slices.Compact(keys), nil
}
