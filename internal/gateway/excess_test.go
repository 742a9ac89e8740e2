package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The rules are counted before any route is refused, so that changing from Envoy to
// ingress rules never begins by refusing routes.
func TestExcessCountsTheRulesOfAllRoutes(t *testing.T) {
	for name, test := range map[string]struct {
		limits            v1alpha1.Limits
		routes, listeners int
		want              string
	}{
		"within the limits":     {v1alpha1.Limits{}, 3, 3, ""},
		"above the default":     {v1alpha1.Limits{}, 110, 0, "needs 1100 ingress rules, but limits.rulesPerTunnel of the GatewayClass is 1000"},
		"above another default": {v1alpha1.Limits{RulesPerTunnel: new(int32(20_000)), RulesPerNamespace: new(int32(500))}, 110, 0, ""},
		"rules that return 404": {v1alpha1.Limits{RulesPerTunnel: new(int32(20))}, 0, 30, "With ingress rules, objects of the Gateway exceed limits of the GatewayClass (routes: 0, listeners: 10)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTenantCluster(0)
			c.HTTPRoutes, c.ListenerSets = nil, nil
			c.addNamespace("team", "")
			for range test.routes {
				route := c.addRoute("team", "", 10, "")
				route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("%s.example.com", route.Name))}
			}
			if test.listeners > 0 {
				c.addSet("team", test.listeners)
			}
			setLimits(c.Snapshot, test.limits)
			build := func(plane v1alpha1.DataPlane) *gateway.Result {
				s := *c.Snapshot
				s.DataPlane = plane
				return gateway.Build(&s, options)
			}
			withEnvoy := build(v1alpha1.DataPlaneEnvoy)
			got := build(v1alpha1.DataPlaneIngressRules).Excess(withEnvoy)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("the excess is %q, want %q", got, test.want)
			}
			if again := withEnvoy.Excess(withEnvoy); again != "" {
				t.Errorf("compared with itself, the excess of Envoy is %q", again)
			}
		})
	}
}
