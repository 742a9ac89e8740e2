package gateway_test

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// A route has the reason IncompatibleFilters when every rule has filters that exclude each
// other, and is partly served when only some have.
func TestIncompatibleFiltersOfEveryRule(t *testing.T) {
	redirect := gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{}}
	cors := gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterCORS, CORS: &gatewayv1.HTTPCORSFilter{}}
	both := gatewayv1.HTTPRouteRule{Filters: []gatewayv1.HTTPRouteFilter{redirect, cors}}
	for want, rules := range map[string][]gatewayv1.HTTPRouteRule{
		string(gatewayv1.RouteReasonIncompatibleFilters): {both, both},
		"": {both, {Filters: []gatewayv1.HTTPRouteFilter{redirect}}},
		string(gatewayv1.RouteReasonUnsupportedValue): {both, {Retry: &gatewayv1.HTTPRouteRetry{Attempts: new(11)}}},
	} {
		c := newTenantCluster(0)
		c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
		c.addRoute("infra", "", 1, "").Spec.Rules = rules
		got := ""
		if rejected := gateway.Build(c.Snapshot, envoyOptions()).Routes[0].Parents[0].Rejected; rejected != nil {
			got = rejected.Reason.String()
		}
		if got != want {
			t.Errorf("got reason %q, want %q", got, want)
		}
	}
}

// A redirect on the only backend excludes CORS like a redirect in the rule.
func TestRedirectOfTheBackendIsIncompatibleWithCORS(t *testing.T) {
	redirected := webBackend()
	redirected[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{}}}
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addRoute("infra", "", 1, "").Spec.Rules = []gatewayv1.HTTPRouteRule{{
		Filters:     []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterCORS, CORS: &gatewayv1.HTTPCORSFilter{}}},
		BackendRefs: redirected,
	}}
	rejected := gateway.Build(c.Snapshot, envoyOptions()).Routes[0].Parents[0].Rejected
	if rejected == nil || rejected.Reason != conditions.ReasonIncompatibleFilters {
		t.Errorf("the route has the problem %+v, want the reason IncompatibleFilters", rejected)
	}
}
