package state

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// loadOrphans determines which routes with a status entry from this controller have no
// parent that this controller manages. parents are the snapshot's Gateway and
// ListenerSets.
func (l Loader) loadOrphans(ctx context.Context, loaded *Loaded, parents []gateway.Owner) error {
	managed := make(map[gateway.Owner]bool, len(parents))
	for _, parent := range parents {
		managed[parent] = loaded.Managed
	}
	s := loaded.Snapshot
	s.Orphans = map[gateway.Owner]bool{}
	for _, route := range routes(s) {
		spec, status, _ := gateway.CommonRoute(route)
		if len(status.Parents) == 0 {
			continue
		}
		attached, err := l.isAttached(ctx, spec.ParentRefs, route.GetNamespace(), managed)
		if err != nil {
			return err
		}
		if !attached && len(RouteStatusParents(route, l.ControllerName)) > 0 {
			s.Orphans[routeOwner(route)] = true
		}
	}
	return nil
}

// isAttached reports whether one of the parentRefs names a Gateway or ListenerSet that
// this controller manages. It adds the parents that it reads to managed.
func (l Loader) isAttached(ctx context.Context, refs []gatewayv1.ParentReference, namespace string, managed map[gateway.Owner]bool) (bool, error) {
	for _, ref := range refs {
		parent, ok := gateway.OwnerOf(ref, namespace)
		if !ok {
			continue
		}
		if _, known := managed[parent]; !known {
			var err error
			if managed[parent], err = l.isManagedParent(ctx, parent); err != nil {
				return false, err
			}
		}
		if managed[parent] {
			return true, nil
		}
	}
	return false, nil
}

// isManagedParent reports whether the Gateway, or the ListenerSet's Gateway, exists and
// its GatewayClass names this controller.
func (l Loader) isManagedParent(ctx context.Context, parent gateway.Owner) (bool, error) {
	if parent.Kind == gateway.KindListenerSet {
		set, err := get(ctx, l.Reader, parent.NamespacedName, &gatewayv1.ListenerSet{})
		if err != nil || set == nil {
			return false, err
		}
		key, ok := ParentGateway(set)
		if !ok {
			return false, nil
		}
		parent = key
	}
	g, err := get(ctx, l.Reader, parent.NamespacedName, &gatewayv1.Gateway{})
	if err != nil || g == nil || !g.DeletionTimestamp.IsZero() {
		return false, err
	}
	class, err := get(ctx, l.Reader, types.NamespacedName{Name: string(g.Spec.GatewayClassName)}, &gatewayv1.GatewayClass{})
	return class != nil && class.Spec.ControllerName == l.ControllerName, err
}

func routeOwner(route client.Object) gateway.Owner {
	kind := gateway.KindHTTPRoute
	if _, ok := route.(*gatewayv1.GRPCRoute); ok {
		kind = gateway.KindGRPCRoute
	}
	return gateway.Owner{Kind: kind, NamespacedName: client.ObjectKeyFromObject(route)}
}
