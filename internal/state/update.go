package state

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// update is one Reload that reads only changed objects.
type update struct {
	Loader
	key Key
	// last is what the last Reload has found. The update changes its counts.
	last *Previous
	// s is the new snapshot. It shares the last one's slices and maps until they change.
	s      *gateway.Snapshot
	copied struct{ http, grpc, sets, policies, access, namespaces bool }
	// changed are the objects that have changed, or were added or removed.
	changed map[gateway.Owner]bool
}

// applier applies a changed object to an update. It returns false if everything must be
// loaded.
type applier func(*update, context.Context, changedObject) (bool, error)

// appliers has the kinds whose events [Changes] records. The Gateway, its GatewayClass, Tunnel
// and TunnelConfigurations, and the connectors' pods are read by every update.
var appliers = map[string]applier{
	gateway.KindHTTPRoute:        (*update).applyHTTPRoute,
	gateway.KindGRPCRoute:        (*update).applyGRPCRoute,
	gateway.KindListenerSet:      (*update).applyListenerSet,
	gateway.KindBackendTLSPolicy: (*update).applyPolicy,
	gateway.KindAccessPolicy:     (*update).applyAccessPolicy,
	"Namespace":                  (*update).applyNamespace,
	"ReferenceGrant":             (*update).applyGrant,
	"Service":                    (*update).applyService,
	kindSlices:                   (*update).applySlices,
	"Secret":                     (*update).applyInspected,
	"ConfigMap":                  (*update).applyInspected,
}

// load returns nil if everything must be loaded.
func (u *update) load(ctx context.Context, changed []changedObject) (*Loaded, error) {
	loaded, err := u.begin(ctx)
	if loaded == nil || err != nil {
		return nil, err
	}
	for _, object := range changed {
		if ok, err := appliers[object.kind](u, ctx, object); !ok || err != nil {
			return nil, err
		}
	}
	if err := u.loadDetached(ctx, loaded); err != nil {
		return nil, err
	}
	loaded.Changed = u.changed
	return loaded, nil
}

// begin reads the objects that every update reads. It returns nil if one of them requires
// that everything is loaded.
func (u *update) begin(ctx context.Context) (*Loaded, error) {
	before := u.last.loaded.Snapshot
	loaded := &Loaded{Snapshot: &gateway.Snapshot{}}
	if err := u.loadGateway(ctx, u.key, loaded); err != nil || !loaded.Managed {
		return nil, err
	}
	s := loaded.Snapshot
	if err := u.loadConfigurations(ctx, s); err != nil {
		return nil, err
	}
	if !hasSameSpec(before.Gateway, s.Gateway) || !isUnchanged(before.ClassConfiguration, s.ClassConfiguration) ||
		!isUnchanged(before.GatewayConfiguration, s.GatewayConfiguration) {
		return nil, nil
	}
	// Whether AccessPolicies are known is no object. The list with the Gateway's own says it.
	if err := u.loadAccessPolicies(ctx, []gateway.Owner{u.key}, s); err != nil || s.AccessPoliciesUnknown != before.AccessPoliciesUnknown {
		return nil, err
	}
	for _, load := range []func(context.Context, *gateway.Snapshot) error{u.loadUsage, u.loadReserved} {
		if err := load(ctx, s); err != nil {
			return nil, err
		}
	}
	s.ListenerSets, s.HTTPRoutes, s.GRPCRoutes = before.ListenerSets, before.HTTPRoutes, before.GRPCRoutes
	s.Grants, s.Certificates, s.CABundles = before.Grants, before.Certificates, before.CABundles
	s.Namespaces, s.Services, s.EndpointSlices = before.Namespaces, before.Services, before.EndpointSlices
	s.ServiceImports, s.ImportedSlices = before.ServiceImports, before.ImportedSlices
	s.BackendTLSPolicies, s.AccessPolicies = before.BackendTLSPolicies, before.AccessPolicies
	if isSameVersion(before.Gateway, s.Gateway) {
		s.Gateway, loaded.Gateway = before.Gateway, before.Gateway
	}
	u.s = s
	return loaded, nil
}

// isUnchanged reports whether both are nil or the same version.
func isUnchanged(a, b *v1alpha1.TunnelConfiguration) bool {
	if a == nil || b == nil {
		return a == b
	}
	return isSameVersion(a, b)
}

// loadDetached determines which of the detached routes are orphans. No other route is.
func (u *update) loadDetached(ctx context.Context, loaded *Loaded) error {
	all := loaded.Snapshot
	detached := &gateway.Snapshot{}
	for _, route := range u.last.detached {
		switch r := route.(type) {
		case *gatewayv1.HTTPRoute:
			detached.HTTPRoutes = append(detached.HTTPRoutes, r)
		case *gatewayv1.GRPCRoute:
			detached.GRPCRoutes = append(detached.GRPCRoutes, r)
		}
	}
	err := u.loadOrphans(ctx, &Loaded{Managed: true, Snapshot: detached}, slices.Collect(maps.Keys(u.last.parents)))
	all.Orphans = detached.Orphans
	return err
}

// copyOnce replaces a map in the snapshot by a copy before its first change.
func copyOnce[M ~map[K]V, K comparable, V any](shared *M, isCopied *bool) {
	if !*isCopied {
		*shared, *isCopied = maps.Clone(*shared), true
	}
}

// place puts the object in the sorted slice, or removes it if it is the zero value.
func place[T client.Object](shared *[]T, isCopied *bool, i int, exists, wanted bool, object T) {
	if !*isCopied {
		*shared, *isCopied = slices.Clone(*shared), true
	}
	switch {
	case exists && wanted:
		(*shared)[i] = object
	case exists:
		*shared = slices.Delete(*shared, i, i+1)
	case wanted:
		*shared = slices.Insert(*shared, i, object)
	}
}

// find returns the position of the object with the name in the sorted slice.
func find[T client.Object](sorted []T, o changedObject) (int, bool) {
	return slices.BinarySearchFunc(sorted, o, func(object T, o changedObject) int {
		return compareNames(client.ObjectKeyFromObject(object), o.NamespacedName)
	})
}

// read reads one object, which shares its content with the cache. It returns nil if the object
// does not exist.
func read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, u *update, o changedObject) (P, error) {
	return get(ctx, u.Reader, o.NamespacedName, P(new(T)), client.UnsafeDisableDeepCopy)
}
