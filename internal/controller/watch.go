package controller

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// watches maps every object that can affect a Gateway to the Gateway's key. A
// change is mapped from the old and from the new object.
type watches struct {
	reader         client.Reader
	controllerName gatewayv1.GatewayController
}

// keysOf returns the keys that an object of the kind affects.
type keysOf[T client.Object] func(context.Context, T) ([]state.Key, error)

func enqueue[T client.Object](keys keysOf[T]) handler.TypedEventHandler[client.Object, state.Key] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []state.Key {
		found, err := keys(ctx, object.(T))
		if err != nil {
			// The cache is read, so this is a missing index: a fault of ours.
			log.FromContext(ctx).Error(err, "cannot tell which gateways a change affects", "object", client.ObjectKeyFromObject(object))
		}
		return found
	})
}

func (w watches) fromGateway(_ context.Context, g *gatewayv1.Gateway) ([]state.Key, error) {
	return []state.Key{state.GatewayKey(g.Namespace, g.Name)}, nil
}

func (w watches) fromClass(ctx context.Context, class *gatewayv1.GatewayClass) ([]state.Key, error) {
	var list gatewayv1.GatewayList
	err := w.reader.List(ctx, &list, client.MatchingFields{state.IndexClass: class.Name}, client.UnsafeDisableDeepCopy)
	keys := make([]state.Key, len(list.Items))
	for i := range list.Items {
		keys[i] = state.GatewayKey(list.Items[i].Namespace, list.Items[i].Name)
	}
	return keys, err
}

// fromListenerSet adds the set itself when it is gone: routes may still have
// an entry for it.
func (w watches) fromListenerSet(ctx context.Context, set *gatewayv1.ListenerSet) ([]state.Key, error) {
	self := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}
	keys, err := w.fromParent(ctx, self)
	if parent, ok := state.ParentGateway(set); ok {
		keys = append(keys, parent)
	}
	return keys, err
}

func (w watches) fromHTTPRoute(ctx context.Context, route *gatewayv1.HTTPRoute) ([]state.Key, error) {
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

// fromParent follows a ListenerSet to its Gateway.
func (w watches) fromParent(ctx context.Context, parent gateway.Owner) ([]state.Key, error) {
	if parent.Kind == gateway.KindGateway {
		return []state.Key{parent}, nil
	}
	var set gatewayv1.ListenerSet
	err := w.reader.Get(ctx, parent.NamespacedName, &set)
	if apierrors.IsNotFound(err) {
		return []state.Key{parent}, nil
	}
	if key, ok := state.ParentGateway(&set); err == nil && ok {
		return []state.Key{key}, nil
	}
	return nil, err
}

func (w watches) fromNamespace(ctx context.Context, namespace *corev1.Namespace) ([]state.Key, error) {
	var keys []state.Key
	var sets gatewayv1.ListenerSetList
	if err := w.reader.List(ctx, &sets, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range sets.Items {
		if key, ok := state.ParentGateway(&sets.Items[i]); ok {
			keys = append(keys, key)
		}
	}
	var routes gatewayv1.HTTPRouteList
	if err := w.reader.List(ctx, &routes, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return keys, err
	}
	return w.fromHTTPRoutes(ctx, keys, &routes)
}

func (w watches) fromService(ctx context.Context, service *corev1.Service) ([]state.Key, error) {
	var routes gatewayv1.HTTPRouteList
	name := client.ObjectKeyFromObject(service).String()
	if err := w.reader.List(ctx, &routes, client.MatchingFields{state.IndexBackend: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return w.fromHTTPRoutes(ctx, nil, &routes)
}

func (w watches) fromHTTPRoutes(ctx context.Context, keys []state.Key, routes *gatewayv1.HTTPRouteList) ([]state.Key, error) {
	for i := range routes.Items {
		found, err := w.fromHTTPRoute(ctx, &routes.Items[i])
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// labelsChanged: of a Namespace only its labels matter, and its existence.
var labelsChanged = predicate.LabelChangedPredicate{}

// serviceChanged: of a Service only its spec matters, and its existence.
var serviceChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Service), e.ObjectNew.(*corev1.Service)
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}}

// logConstructor gives every line of a pass the object that it works on.
func logConstructor(logger logr.Logger) func(*state.Key) logr.Logger {
	return func(key *state.Key) logr.Logger {
		if key == nil {
			return logger
		}
		return logger.WithValues("kind", key.Kind, "namespace", key.Namespace, "name", key.Name)
	}
}
