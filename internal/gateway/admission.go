package gateway

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// AdmitsRoute returns a function that reports whether a listener in the snapshot admits a
// route. [Build] resolves backends for no other route, so that only these routes need
// Services and ReferenceGrants. The result depends on the Gateway, the ListenerSets, the
// namespaces and the TunnelConfigurations in the snapshot.
func AdmitsRoute(s *Snapshot) func(route metav1.Object) bool {
	permitted := newPermittedHostnames(s)
	listeners, sets := mergeListeners(s)
	p := newParents(s, listeners, sets)
	return func(object metav1.Object) bool {
		var route Route
		switch o := object.(type) {
		case *gatewayv1.HTTPRoute:
			route = newRoute(KindHTTPRoute, o, o.Spec.CommonRouteSpec, o.Spec.Hostnames, nil)
		case *gatewayv1.GRPCRoute:
			route = newRoute(KindGRPCRoute, o, o.Spec.CommonRouteSpec, o.Spec.Hostnames, nil)
		}
		route.permitted = permitted
		return route.isAdmitted(p)
	}
}

// isAdmitted reports whether a listener admits the route, before any route is attached: a
// route that later conflicts with another kind is admitted.
func (r *Route) isAdmitted(p parents) bool {
	return slices.ContainsFunc(r.parentRefs, func(ref gatewayv1.ParentReference) bool {
		owner, ok := OwnerOf(ref, r.Namespace)
		parent, found := p[owner]
		return ok && found && parent.notAllowed == nil && slices.ContainsFunc(parent.inSection(ref.SectionName), func(l *Listener) bool {
			return r.attachmentStep(l, ref) == stepAdmitted
		})
	})
}

// resolvedMessage is the message for a route without unresolved references. If no
// listener admits the route, the condition is True, as the Gateway API conformance suite
// requires.
func (r *Route) resolvedMessage() string {
	if !r.admitted {
		return "The controller does not check the references of a route that no listener admits."
	}
	return messageResolvedRefs + r.ignoredPolicies
}
