package state

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// ForEachRoute calls do with every HTTPRoute and GRPCRoute that the options select. The
// function must not change the routes.
func ForEachRoute(ctx context.Context, r client.Reader, do func(client.Object), opts ...client.ListOption) error {
	opts = append(opts, client.UnsafeDisableDeepCopy)
	for _, list := range []client.ObjectList{&gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}} {
		if err := r.List(ctx, list, opts...); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			do(o.(client.Object))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loadReferences reads the objects that the listeners and the routes refer to. It
// requires all other objects.
func (l Loader) loadReferences(ctx context.Context, s *gateway.Snapshot) error {
	admits := gateway.AdmitsRoute(s)
	admitted := slices.DeleteFunc(routes(s), func(route client.Object) bool { return !admits(route) })
	if err := l.loadGrants(ctx, s, admitted); err != nil {
		return err
	}
	if err := l.loadCertificates(ctx, s); err != nil {
		return err
	}
	for _, load := range []func(context.Context, *gateway.Snapshot, []client.Object) error{l.loadServices, l.loadImports} {
		if err := load(ctx, s, admitted); err != nil {
			return err
		}
	}
	if err := l.loadReserved(ctx, s); err != nil {
		return err
	}
	return l.loadPolicies(ctx, s)
}

func routes(s *gateway.Snapshot) []client.Object {
	all := make([]client.Object, 0, len(s.HTTPRoutes)+len(s.GRPCRoutes))
	for _, route := range s.HTTPRoutes {
		all = append(all, route)
	}
	for _, route := range s.GRPCRoutes {
		all = append(all, route)
	}
	return all
}

// backendRefs returns the references to backends in all rules of a route: the
// backendRefs, and the mirror targets.
func backendRefs(route client.Object) []gatewayv1.BackendObjectReference {
	var refs []gatewayv1.BackendObjectReference
	switch r := route.(type) {
	case *gatewayv1.HTTPRoute:
		for i := range r.Spec.Rules {
			refs = appendMirrors(refs, r.Spec.Rules[i].Filters, mirrorOfHTTP)
			for _, ref := range r.Spec.Rules[i].BackendRefs {
				refs = appendMirrors(append(refs, ref.BackendObjectReference), ref.Filters, mirrorOfHTTP)
			}
		}
	case *gatewayv1.GRPCRoute:
		for i := range r.Spec.Rules {
			refs = appendMirrors(refs, r.Spec.Rules[i].Filters, mirrorOfGRPC)
			for _, ref := range r.Spec.Rules[i].BackendRefs {
				refs = appendMirrors(append(refs, ref.BackendObjectReference), ref.Filters, mirrorOfGRPC)
			}
		}
	}
	return refs
}

// appendMirrors appends the targets of filters that mirror requests.
func appendMirrors[F any](refs []gatewayv1.BackendObjectReference, filters []F, mirrorOf func(F) *gatewayv1.HTTPRequestMirrorFilter) []gatewayv1.BackendObjectReference {
	for _, f := range filters {
		if mirror := mirrorOf(f); mirror != nil {
			refs = append(refs, mirror.BackendRef)
		}
	}
	return refs
}

func mirrorOfHTTP(f gatewayv1.HTTPRouteFilter) *gatewayv1.HTTPRequestMirrorFilter {
	return f.RequestMirror
}

func mirrorOfGRPC(f gatewayv1.GRPCRouteFilter) *gatewayv1.HTTPRequestMirrorFilter {
	return f.RequestMirror
}

// BackendServices returns the names of the Services that a route's rules refer to.
func BackendServices(route client.Object) []types.NamespacedName {
	return backendsOf(route, "", "Service")
}

// BackendImports returns the names of the ServiceImports that a route's rules refer to.
func BackendImports(route client.Object) []types.NamespacedName {
	return backendsOf(route, multicluster.GroupName, multicluster.KindServiceImport)
}

func backendsOf(route client.Object, group, kind string) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range backendRefs(route) {
		if string(ptr.Deref(ref.Group, "")) == group && string(ptr.Deref(ref.Kind, "Service")) == kind {
			namespace := ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.GetNamespace()))
			names = append(names, types.NamespacedName{Namespace: string(namespace), Name: string(ref.Name)})
		}
	}
	return names
}

// loadGrants reads the ReferenceGrants in every namespace to which a listener or an
// admitted route in another namespace refers.
func (l Loader) loadGrants(ctx context.Context, s *gateway.Snapshot, admitted []client.Object) error {
	targets := map[string]bool{}
	addTargets := func(from string, names []types.NamespacedName) {
		for _, name := range names {
			if name.Namespace != from {
				targets[name.Namespace] = true
			}
		}
	}
	addTargets(s.Gateway.Namespace, gateway.SecretsOfGateway(s.Gateway))
	for _, set := range gateway.AllowedListenerSets(s) {
		addTargets(set.Namespace, gateway.SecretsOfListenerSet(set))
	}
	for _, route := range admitted {
		addTargets(route.GetNamespace(), BackendServices(route))
		addTargets(route.GetNamespace(), BackendImports(route))
	}
	for namespace := range targets {
		var list gatewayv1beta1.ReferenceGrantList
		if err := l.Reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the ReferenceGrants of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			s.Grants = append(s.Grants, &list.Items[i])
		}
	}
	return nil
}

// loadCertificates inspects the certificates to which references are allowed. It requires
// the ReferenceGrants.
func (l Loader) loadCertificates(ctx context.Context, s *gateway.Snapshot) error {
	names := gateway.SecretsToRead(s)
	slices.SortFunc(names, compareNames)
	names = slices.Compact(names)
	retain(l.Certificates, GatewayKey(s.Gateway.Namespace, s.Gateway.Name), names)
	var err error
	s.Certificates, err = inspectAll(ctx, l.Certificates, names)
	return err
}

// retain replaces the objects whose inspections are kept when the key is loaded again.
func retain(inspector any, key Key, names []types.NamespacedName) {
	if cache, ok := inspector.(retainer); ok {
		cache.Retain(key, names)
	}
}

// loadServices reads the admitted routes' backend Services and their EndpointSlices.
func (l Loader) loadServices(ctx context.Context, s *gateway.Snapshot, admitted []client.Object) error {
	services := map[types.NamespacedName]*corev1.Service{}
	endpointSlices := map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	for _, route := range admitted {
		for _, name := range BackendServices(route) {
			if _, ok := services[name]; ok {
				continue
			}
			service, err := get(ctx, l.Reader, name, &corev1.Service{})
			if err != nil {
				return err
			}
			if services[name] = service; service == nil {
				continue
			}
			if endpointSlices[name], err = Endpoints(ctx, l.Reader, name, false); err != nil {
				return err
			}
		}
	}
	s.Services, s.EndpointSlices = byname.From(services), byname.From(endpointSlices)
	return nil
}

// loadImports reads the admitted routes' backend ServiceImports and their EndpointSlices.
func (l Loader) loadImports(ctx context.Context, s *gateway.Snapshot, admitted []client.Object) error {
	s.ServiceImports = map[types.NamespacedName]*multicluster.ServiceImport{}
	s.ImportedSlices = map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	for _, route := range admitted {
		for _, name := range BackendImports(route) {
			if _, ok := s.ServiceImports[name]; ok {
				continue
			}
			found, err := get(ctx, l.Reader, name, &multicluster.ServiceImport{})
			if meta.IsNoMatchError(err) {
				s.NoServiceImports = true
				return nil
			}
			if err != nil {
				return err
			}
			if s.ServiceImports[name] = found; found == nil {
				continue
			}
			if s.ImportedSlices[name], err = Endpoints(ctx, l.Reader, name, true); err != nil {
				return err
			}
		}
	}
	return nil
}
