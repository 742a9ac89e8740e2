package gateway_test

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// envoyOptions are options with which every Gateway has Envoy.
func envoyOptions() gateway.Options {
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: envoyOfFiles(), v1alpha1.DataPlaneEnvoy: envoyOfFiles()}
	return o
}

// With Envoy, every rule that Envoy gets counts, including repeated rules.
func TestRepeatedRulesCount(t *testing.T) {
	repeated := 0
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		if routes, listeners := result.Usage.Refused(); routes+listeners > 0 {
			return // what does not fit is counted before it is refused
		}
		rules, entries := 0, 0
		for _, host := range result.Table.Hosts() {
			rules += len(host.Entries)
		}
		for _, g := range result.Table.Groups {
			entries += len(g.Entries)
		}
		repeated += rules - entries
		if result.Usage.Rules != rules {
			t.Errorf("counted %d rules, Envoy gets %d", result.Usage.Rules, rules)
		}
	})
	if repeated == 0 {
		t.Error("no cluster has repeated rules")
	}
}

// A fallback of the platform team that is repeated for the hostnames of one tenant does not
// use up the rules of another.
func TestFallbackOfThePlatformCountsForTheHostname(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes = nil
	wildcard := []gatewayv1.Hostname{"*.example.com"}
	c.addRoute("infra", "", 10, "").Spec.Hostnames = wildcard
	c.addNamespace("calm", "")
	c.addRoute("calm", "", 1, "")
	c.addNamespace("greedy", "")
	for range 30 {
		c.addRoute("greedy", "", 1, "")
	}
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(100))})
	c.DataPlane = v1alpha1.DataPlaneEnvoy
	for _, usage := range gateway.Build(c.Snapshot, envoyOptions()).Usage.Tenants {
		if refused := usage.RefusedRoutes > 0; refused != (usage.Name == "greedy") {
			t.Errorf("tenant %s has %d rules, and %d refused routes", usage.Name, usage.Rules, usage.RefusedRoutes)
		}
	}
}
