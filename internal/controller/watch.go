package controller

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// watches maps every object that can affect a Gateway to the Gateway's key. An update
// is mapped for both the old and the new object.
type watches struct {
	reader         client.Reader
	controllerName gatewayv1.GatewayController
	// namespace is the controller's own namespace.
	namespace string
	// podIPs are the addresses of the controller's pod.
	podIPs []netip.Addr
	// account is the default account, whose token can be in a Secret.
	account credentials.Default
	// policies says whether AccessPolicies are watched.
	policies *AccessPolicies
	// changes records every event. It may be nil.
	changes *state.Changes
	// own are the statuses that this process has written. It may be nil.
	own *ownWrites
}

// mapFunc is a function that returns the keys that an object affects.
type mapFunc[T client.Object] func(context.Context, T) ([]state.Key, error)

// enqueue returns an event handler that enqueues and records the keys that a change
// affects.
func enqueue[T client.Object](record func(state.Key), keys mapFunc[T]) handler.TypedEventHandler[client.Object, state.Key] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []state.Key {
		var found []state.Key
		// The informer does not recover from a panic.
		err := recovery.Call(ctx, func() (err error) {
			found, err = keys(ctx, object.(T))
			return err
		})
		if err != nil {
			// Reads from the cache fail only if an index is missing, which is a bug.
			log.FromContext(ctx).Error(err, "failed to find the Gateways that a change affects", "object", client.ObjectKeyFromObject(object))
		}
		for _, key := range found {
			record(key)
		}
		return found
	})
}

// watchAll registers the process and its watches for every kind that can affect a
// Gateway.
func watchAll(m manager.Manager, o Options, p *process, w watches, requeued chan event.TypedGenericEvent[state.Key]) error {
	controller := builder.TypedControllerManagedBy[state.Key](m).
		Named("gateway").
		WithOptions(ctrlcontroller.TypedOptions[state.Key]{MaxConcurrentReconciles: o.Workers, RateLimiter: rateLimiter[state.Key]()}).
		WithLogConstructor(logConstructor(m.GetLogger())).
		WatchesRawSource(source.TypedChannel(requeued, handler.TypedFuncs[state.Key, state.Key]{GenericFunc: addEvent[state.Key]}))
	return register(controller, w.all(p.observer.pending.add)).Complete(p)
}

// watch watches one kind. It adds the keys that a change affects to a controller's
// queue.
type watch[K comparable] struct {
	kind    kinds.Kind
	handler handler.TypedEventHandler[client.Object, K]
	// filter passes the changes that can affect a key. It is nil if all changes can.
	filter predicate.Predicate
}

// register adds the watches to a controller.
func register[K comparable](controller *builder.TypedBuilder[K], all []watch[K]) *builder.TypedBuilder[K] {
	for _, w := range all {
		var options []builder.WatchesOption
		if w.filter != nil {
			options = append(options, builder.WithPredicates(w.filter))
		}
		controller.Watches(w.kind.NewWatched(), w.handler, options...)
	}
	return controller
}

// all returns watches for every kind that can affect a Gateway. They record the keys.
func (w watches) all(record func(state.Key)) []watch[state.Key] {
	all := []watch[state.Key]{
		{kinds.Gateway, enqueue(record, w.fromGateway), nil},
		{kinds.Gateway, enqueue(record, w.fromUncountedGateway), reducesUsage},
		{kinds.GatewayClass, enqueue(record, w.fromClass), nil},
		{kinds.ListenerSet, enqueue(record, w.fromListenerSet), nil},
		{kinds.HTTPRoute, enqueue(record, w.fromRoute), ownWriteFilter{w.own, w.fromRoute, nil}.predicate()},
		{kinds.GRPCRoute, enqueue(record, w.fromRoute), ownWriteFilter{w.own, w.fromRoute, nil}.predicate()},
		{kinds.ReferenceGrant, enqueue(record, w.fromGrant), nil},
		{kinds.BackendTLSPolicy, enqueue(record, w.fromPolicy), nil},
		{kinds.ConfigMap, enqueue(record, w.fromConfigMap), nil},
		{kinds.Secret, enqueue(record, w.fromSecret), nil},
		{kinds.Namespace, enqueue(record, w.fromNamespace), namespaceChanged},
		{kinds.Service, enqueue(record, w.fromService), serviceChanged},
		{kinds.EndpointSlice, enqueue(record, w.fromEndpointSlice), w.endpointsChanged()},
		{kinds.Pod, enqueue(record, w.fromConnectorPod), addressesChanged},
		{kinds.TunnelConfiguration, enqueue(record, w.fromConfiguration), nil},
		{kinds.Tunnel, enqueue(record, w.fromTunnel), ownWriteFilter{w.own, w.fromTunnelObject, changesLifecycle}.predicate()},
	}
	if w.policies.isWatched() {
		all = append(all,
			watch[state.Key]{kinds.AccessPolicy, enqueue(record, w.fromAccessPolicy), nil},
			watch[state.Key]{kinds.CustomResourceDefinition, enqueue(record, w.fromAccessPolicyCRD), accessPolicyCRDChanged})
	}
	for _, kind := range connector.Kinds() {
		all = append(all, watch[state.Key]{kind.Kind, enqueue(record, w.fromConnectors), nil})
	}
	for i := range all {
		all[i].filter = recording(w.changes, all[i].filter)
	}
	return all
}

// fromGateway maps a Gateway to its key. If the Gateway is gone, fromGateway adds the
// Gateways over the namespace's limit, because the Gateway no longer counts.
func (w watches) fromGateway(ctx context.Context, g *gatewayv1.Gateway) ([]state.Key, error) {
	keys := []state.Key{state.GatewayKey(g.Namespace, g.Name)}
	err := w.reader.Get(ctx, client.ObjectKeyFromObject(g), &gatewayv1.Gateway{})
	if !apierrors.IsNotFound(err) {
		return keys, err
	}
	limited, err := w.gatewaysOverLimit(ctx, g.Namespace)
	return append(keys, limited...), err
}

func (w watches) fromClass(ctx context.Context, class *gatewayv1.GatewayClass) ([]state.Key, error) {
	return w.fromGateways(ctx, client.MatchingFields{state.IndexClass: class.Name})
}

// fromListenerSet maps a ListenerSet to its Gateway. If the set is gone, fromListenerSet
// adds the set itself, because routes may still have a status entry for it.
func (w watches) fromListenerSet(ctx context.Context, set *gatewayv1.ListenerSet) ([]state.Key, error) {
	self := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}
	keys, err := w.fromParent(ctx, self)
	if parent, ok := state.ParentGateway(set); ok {
		keys = append(keys, parent)
	}
	return keys, err
}

func (w watches) fromRoute(ctx context.Context, route client.Object) ([]state.Key, error) {
	var keys []state.Key
	for _, parent := range state.RouteParents(route, w.controllerName) {
		found, err := w.fromParent(ctx, parent)
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromParent maps a route's parent to its Gateway. A ListenerSet without a Gateway is
// its own key.
func (w watches) fromParent(ctx context.Context, parent gateway.Owner) ([]state.Key, error) {
	if parent.Kind == gateway.KindGateway {
		return []state.Key{parent}, nil
	}
	var set gatewayv1.ListenerSet
	err := w.reader.Get(ctx, parent.NamespacedName, &set, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if key, ok := state.ParentGateway(&set); err == nil && ok {
		return []state.Key{key}, nil
	}
	return []state.Key{parent}, nil
}

func (w watches) fromNamespace(ctx context.Context, namespace *corev1.Namespace) ([]state.Key, error) {
	var keys []state.Key
	for _, find := range []func(context.Context, client.ListOption) ([]state.Key, error){w.fromGateways, w.fromListenerSets, w.fromRoutes} {
		found, err := find(ctx, client.InNamespace(namespace.Name))
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromConfiguration maps a TunnelConfiguration to the Gateways that refer to it,
// directly or through their GatewayClass.
func (w watches) fromConfiguration(ctx context.Context, c *v1alpha1.TunnelConfiguration) ([]state.Key, error) {
	refer := client.MatchingFields{state.IndexParameters: client.ObjectKeyFromObject(c).String()}
	keys, err := w.fromGateways(ctx, refer)
	if err != nil {
		return nil, err
	}
	var classes gatewayv1.GatewayClassList
	if err := w.reader.List(ctx, &classes, refer, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range classes.Items {
		found, err := w.fromClass(ctx, &classes.Items[i])
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromGrant maps a ReferenceGrant to the Gateways whose objects are in the namespaces
// that it allows references from.
func (w watches) fromGrant(ctx context.Context, grant *gatewayv1beta1.ReferenceGrant) ([]state.Key, error) {
	var keys []state.Key
	for _, from := range grant.Spec.From {
		find := w.fromRoutes
		switch from.Kind {
		case gateway.KindGateway:
			find = w.fromGateways
		case gateway.KindListenerSet:
			find = w.fromListenerSets
		}
		found, err := find(ctx, client.InNamespace(from.Namespace))
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func (w watches) fromGateways(ctx context.Context, selection client.ListOption) ([]state.Key, error) {
	var list gatewayv1.GatewayList
	err := w.reader.List(ctx, &list, selection, client.UnsafeDisableDeepCopy)
	keys := make([]state.Key, len(list.Items))
	for i := range list.Items {
		keys[i] = state.GatewayKey(list.Items[i].Namespace, list.Items[i].Name)
	}
	return keys, err
}

func (w watches) fromListenerSets(ctx context.Context, selection client.ListOption) ([]state.Key, error) {
	var list gatewayv1.ListenerSetList
	err := w.reader.List(ctx, &list, selection, client.UnsafeDisableDeepCopy)
	var keys []state.Key
	for i := range list.Items {
		if key, ok := state.ParentGateway(&list.Items[i]); ok {
			keys = append(keys, key)
		}
	}
	return keys, err
}

func (w watches) fromRoutes(ctx context.Context, selection client.ListOption) ([]state.Key, error) {
	var keys []state.Key
	var errs []error
	err := state.ForEachRoute(ctx, w.reader, func(route client.Object) {
		found, err := w.fromRoute(ctx, route)
		keys, errs = append(keys, found...), append(errs, err)
	}, selection)
	return keys, errors.Join(append(errs, err)...)
}

// namespaceChanged passes Namespace updates only if the labels or the permitted
// hostnames change.
var namespaceChanged = predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, annotated := e.ObjectOld.GetAnnotations()[hostnames.Annotation]
	after, annotatedAfter := e.ObjectNew.GetAnnotations()[hostnames.Annotation]
	return before != after || annotated != annotatedAfter
}})

// logConstructor adds the reconciled key to every log line in a reconcile.
func logConstructor(logger logr.Logger) func(*state.Key) logr.Logger {
	return func(key *state.Key) logr.Logger {
		if key == nil {
			return logger
		}
		return logger.WithValues("kind", key.Kind, "namespace", key.Namespace, "name", key.Name)
	}
}

// addEvent adds a requeued key to the queue.
func addEvent[K comparable](_ context.Context, e event.TypedGenericEvent[K], queue workqueue.TypedRateLimitingInterface[K]) {
	queue.Add(e.Object)
}

// atStart returns a source that adds the key to the queue once, when the controller starts.
func atStart[K comparable](key K) source.TypedSource[K] {
	return source.TypedFunc[K](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
		queue.Add(key)
		return nil
	})
}

// maxRetryDelay limits the delay after an error from the API server.
const maxRetryDelay = time.Minute

// rateLimiter delays retries after reconciles that failed with an error from the API
// server.
func rateLimiter[K comparable]() workqueue.TypedRateLimiter[K] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[K](100*time.Millisecond, maxRetryDelay)
}
