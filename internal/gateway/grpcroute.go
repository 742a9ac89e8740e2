package gateway

import (
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// newGRPCRoute converts a GRPCRoute into the form of an HTTPRoute. It keeps the method
// matches in the GRPCRoute: [Route.call] returns them.
func newGRPCRoute(object *gatewayv1.GRPCRoute) Route {
	rules := make([]gatewayv1.HTTPRouteRule, len(object.Spec.Rules))
	for i, rule := range object.Spec.Rules {
		rules[i] = httpRule(rule)
	}
	route := newRoute(KindGRPCRoute, object, object.Spec.CommonRouteSpec, object.Spec.Hostnames, rules)
	route.grpc = object
	return route
}

func httpRule(rule gatewayv1.GRPCRouteRule) gatewayv1.HTTPRouteRule {
	out := gatewayv1.HTTPRouteRule{
		Name: rule.Name, SessionPersistence: rule.SessionPersistence, Filters: httpFilters(rule.Filters),
	}
	for _, match := range rule.Matches {
		out.Matches = append(out.Matches, httpMatch(match))
	}
	for _, backend := range rule.BackendRefs {
		out.BackendRefs = append(out.BackendRefs, gatewayv1.HTTPBackendRef{
			BackendRef: backend.BackendRef, Filters: httpFilters(backend.Filters),
		})
	}
	return out
}

func httpFilters(filters []gatewayv1.GRPCRouteFilter) []gatewayv1.HTTPRouteFilter {
	var out []gatewayv1.HTTPRouteFilter
	for _, f := range filters {
		out = append(out, gatewayv1.HTTPRouteFilter{
			Type:                   gatewayv1.HTTPRouteFilterType(f.Type),
			RequestHeaderModifier:  f.RequestHeaderModifier,
			ResponseHeaderModifier: f.ResponseHeaderModifier,
			RequestMirror:          f.RequestMirror,
			ExtensionRef:           f.ExtensionRef,
		})
	}
	return out
}

func httpMatch(match gatewayv1.GRPCRouteMatch) gatewayv1.HTTPRouteMatch {
	var out gatewayv1.HTTPRouteMatch
	for _, h := range match.Headers {
		out.Headers = append(out.Headers, gatewayv1.HTTPHeaderMatch{
			Type: (*gatewayv1.HeaderMatchType)(h.Type), Name: gatewayv1.HTTPHeaderName(h.Name), Value: h.Value,
		})
	}
	return out
}

// call returns the gRPC method match in a rule, or nil for an HTTPRoute.
func (r *Route) call(rule, match int) *routing.Call {
	if r.grpc == nil {
		return nil
	}
	call := &routing.Call{}
	if match >= len(r.grpc.Spec.Rules[rule].Matches) {
		return call // the default match in a rule without matches
	}
	if m := r.grpc.Spec.Rules[rule].Matches[match].Method; m != nil {
		call.Service, call.Method = ptr.Deref(m.Service, ""), ptr.Deref(m.Method, "")
		call.Expression = ptr.Deref(m.Type, gatewayv1.GRPCMethodMatchExact) != gatewayv1.GRPCMethodMatchExact
	}
	return call
}
