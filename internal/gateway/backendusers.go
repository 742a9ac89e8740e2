package gateway

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// backendUsers has the routes that name a Service or ServiceImport, by its name.
type backendUsers map[types.NamespacedName][]*Route

// users returns the routes by backend. The first change of a backend after a whole decision collects them.
func (d *decision) users() backendUsers {
	if d.backendUsers == nil {
		d.backendUsers = make(backendUsers, len(d.Routes))
		for _, route := range d.Routes {
			d.backendUsers.add(route)
		}
	}
	return d.backendUsers
}

func (u backendUsers) add(route *Route) {
	for name := range route.namedBackends() {
		if routes := u[name]; len(routes) == 0 || routes[len(routes)-1] != route {
			u[name] = append(routes, route)
		}
	}
}

func (u backendUsers) remove(route *Route) {
	for name := range route.namedBackends() {
		i := slices.Index(u[name], route)
		switch {
		case i < 0: // the route names it twice
		case len(u[name]) == 1:
			delete(u, name)
		default:
			u[name] = slices.Delete(u[name], i, i+1)
		}
	}
}

// namedBackends iterates over the names in all backendRefs and mirrors. Names can be repeated.
func (r *Route) namedBackends() iter.Seq[types.NamespacedName] {
	return func(yield func(types.NamespacedName) bool) {
		for i := range r.Rules {
			rule := &r.Rules[i]
			if !r.yieldMirrors(rule.Filters, yield) {
				return
			}
			for j := range rule.BackendRefs {
				ref := &rule.BackendRefs[j]
				if !yield(r.backendName(&ref.BackendObjectReference)) || !r.yieldMirrors(ref.Filters, yield) {
					return
				}
			}
		}
	}
}

func (r *Route) yieldMirrors(filters []gatewayv1.HTTPRouteFilter, yield func(types.NamespacedName) bool) bool {
	for i := range filters {
		if mirror := filters[i].RequestMirror; mirror != nil && !yield(r.backendName(&mirror.BackendRef)) {
			return false
		}
	}
	return true
}

func (r *Route) backendName(ref *gatewayv1.BackendObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(r.Namespace))), Name: string(ref.Name)}
}
