package state

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func (u *update) applyHTTPRoute(ctx context.Context, o changedObject) (bool, error) {
	return applyRoute[gatewayv1.HTTPRoute](ctx, u, o, &u.s.HTTPRoutes, &u.copied.http)
}

func (u *update) applyGRPCRoute(ctx context.Context, o changedObject) (bool, error) {
	return applyRoute[gatewayv1.GRPCRoute](ctx, u, o, &u.s.GRPCRoutes, &u.copied.grpc)
}

// applyRoute replaces a route, and reads what it refers to. An event of a Service that the
// route has named only now can have been applied before, so that its Services are always read.
func applyRoute[T any, P interface {
	*T
	client.Object
}](ctx context.Context, u *update, o changedObject, all *[]P, isCopied *bool) (bool, error) {
	now, err := read[T, P](ctx, u, o)
	if err != nil {
		return false, err
	}
	isWanted := now != nil && u.last.hasParent(RouteParents(now, u.ControllerName))
	i, exists := find(*all, o)
	if !exists && !isWanted {
		return true, nil
	}
	if exists && isWanted && isSameVersion((*all)[i], now) {
		now = (*all)[i]
	}
	var before, after []routeRef
	if exists {
		before = u.last.refsOf((*all)[i])
	}
	delete(u.last.detached, o.owner())
	if isWanted {
		var ok bool
		if after, ok, err = u.attach(ctx, now, o.owner()); !ok || err != nil {
			return false, err
		}
	}
	place(all, isCopied, i, exists, isWanted, now)
	u.changed[o.owner()] = true
	return u.replaceRefs(ctx, before, after)
}

// attach prepares the snapshot for the route, and returns what it refers to. It returns false if
// everything must be loaded.
func (u *update) attach(ctx context.Context, route client.Object, owner gateway.Owner) ([]routeRef, bool, error) {
	if len(BackendImports(route)) > 0 {
		return nil, false, nil
	}
	if err := u.readNamespace(ctx, route.GetNamespace()); err != nil {
		return nil, false, err
	}
	u.last.detach(route, owner)
	return u.last.refsOf(route), true, nil
}

// replaceRefs reads what is referred to after a route has changed, and removes what no route
// refers to any longer.
func (u *update) replaceRefs(ctx context.Context, before, after []routeRef) (bool, error) {
	for _, ref := range after {
		count := ref.add(&u.last.uses, 1)
		switch {
		case ref.grants != "" && count == 1:
			if err := u.readGrants(ctx, ref.grants); err != nil {
				return false, err
			}
		case ref.service.Name != "":
			if ok, err := u.readService(ctx, ref.service, count == 1); !ok || err != nil {
				return false, err
			}
		}
	}
	return u.removeRefs(before), nil
}

// removeRefs removes what no route refers to any longer. It returns false if everything must be
// loaded.
func (u *update) removeRefs(before []routeRef) bool {
	for _, ref := range before {
		if ref.add(&u.last.uses, -1) > 0 {
			continue
		}
		switch {
		case ref.namespace != "":
			copyOnce(&u.s.Namespaces, &u.copied.namespaces)
			delete(u.s.Namespaces, ref.namespace)
		case ref.grants != "":
			u.s.Grants = slices.DeleteFunc(slices.Clone(u.s.Grants), func(g *gatewayv1beta1.ReferenceGrant) bool { return g.Namespace == ref.grants })
		case len(u.s.BackendTLSPolicies) > 0:
			return false // one of them may be there only for this Service
		default:
			u.s.Services.Delete(ref.service)
			u.s.EndpointSlices.Delete(ref.service)
		}
	}
	return true
}

// readNamespace reads the namespace, unless the snapshot contains it.
func (u *update) readNamespace(ctx context.Context, name string) error {
	if _, ok := u.s.Namespaces[name]; ok {
		return nil
	}
	found, err := read[corev1.Namespace](ctx, u, changedObject{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil {
		return err
	}
	copyOnce(&u.s.Namespaces, &u.copied.namespaces)
	u.s.Namespaces[name] = found
	u.last.admits = admitsRoute(u.s)
	return nil
}

// readGrants adds the ReferenceGrants in the namespace.
func (u *update) readGrants(ctx context.Context, namespace string) error {
	var list gatewayv1beta1.ReferenceGrantList
	if err := u.Reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	u.s.Grants = slices.Clone(u.s.Grants)
	for i := range list.Items {
		u.s.Grants = append(u.s.Grants, &list.Items[i])
	}
	return nil
}

// readService reads a Service, its EndpointSlices and, if it is new, its policies. It returns
// false if there are any.
func (u *update) readService(ctx context.Context, name types.NamespacedName, isNew bool) (bool, error) {
	if isNew {
		policies, err := u.listPolicies(ctx, client.MatchingFields{IndexTarget: name.String()})
		if len(policies) > 0 || err != nil {
			return false, err
		}
	}
	now, err := read[corev1.Service](ctx, u, changedObject{NamespacedName: name})
	if err != nil {
		return false, err
	}
	before, exists := u.s.Services.Get(name)
	if !exists || now == nil || before == nil || !isSameVersion(before, now) {
		if !isNew && len(u.s.BackendTLSPolicies) > 0 {
			return false, nil // which ConfigMaps are read depends on the Service's ports
		}
		u.s.Services.Set(name, now)
	}
	return true, u.readSlices(ctx, name)
}

// readSlices reads the EndpointSlices of a Service in the snapshot.
func (u *update) readSlices(ctx context.Context, name types.NamespacedName) error {
	if u.s.Services.Value(name) == nil {
		u.s.EndpointSlices.Delete(name)
		return nil
	}
	now, err := Endpoints(ctx, u.Reader, name, false)
	if err != nil {
		return err
	}
	before, exists := u.s.EndpointSlices.Get(name)
	now = keepVersions(now, before)
	if !exists || !slices.Equal(before, now) {
		u.s.EndpointSlices.Set(name, now)
	}
	return nil
}

func (u *update) applyService(ctx context.Context, o changedObject) (bool, error) {
	if u.last.uses.services[o.NamespacedName] == 0 {
		return true, nil
	}
	return u.readService(ctx, o.NamespacedName, false)
}

func (u *update) applySlices(ctx context.Context, o changedObject) (bool, error) {
	if u.last.uses.services[o.NamespacedName] == 0 {
		return true, nil
	}
	return true, u.readSlices(ctx, o.NamespacedName)
}
