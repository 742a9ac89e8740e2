package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
)

// protectBelowTheApps makes the GatewayClass protect n hostnames below team 0's wildcard.
// The team's only other rules are one route with the matches. The tunnel's limit becomes
// 1,000 rules.
func protectBelowTheApps(n, matches int) *gateway.Snapshot {
	s := teamsSnapshot(1)
	setLimits(s, v1alpha1.Limits{RulesPerTunnel: new(int32(1000))})
	for i := range n {
		s.ClassConfiguration.Spec.ListenerConfigurations = append(s.ClassConfiguration.Spec.ListenerConfigurations, v1alpha1.ListenerConfiguration{
			ProtocolPort: v1alpha1.EveryPort, Hostname: fmt.Sprintf("admin-%d.team-0000.example.com", i),
			Access: &v1alpha1.Access{Required: true, TeamName: new("example"), AUDTags: []v1alpha1.AUDTag{"tag"}},
		})
	}
	apps := s.HTTPRoutes[1]
	apps.Spec.Hostnames = nil
	apps.Spec.Rules[0].Matches = nil
	for i := range matches {
		apps.Spec.Rules[0].Matches = append(apps.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{Path: pathMatch(gatewayv1.PathMatchExact, fmt.Sprintf("/%d", i))})
	}
	return s
}

// The rules for a protected hostname below a wildcard count for the route namespace.
func TestRulesThatAccessAddsCount(t *testing.T) {
	result := gateway.Build(protectBelowTheApps(2, 3), options)
	const want = 1 + 3*(1+2) // the site's route, and three matches for three hostnames
	if got := len(ingress.Rules(result.Table)) - 1; got != want {
		t.Errorf("got %d rules, want %d", got, want)
	}
	if tenant := result.Usage.Tenants[0]; tenant.Name != "team-0000" || tenant.Rules != want || result.Usage.Rules != want {
		t.Errorf("usage %+v of %+v, want %d rules", tenant, result.Usage, want)
	}
}

// A route that cannot be served does not use up other tenants' rules, although protected
// hostnames are below its listener.
func TestUnservedRouteNeedsNoAccessRules(t *testing.T) {
	s := protectBelowTheApps(100, 1)
	before := gateway.Build(s, options).Usage.Rules
	route := s.HTTPRoutes[1].DeepCopy()
	route.Name = "by-header"
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Headers: headers("x-version")}}
	s.HTTPRoutes = append(s.HTTPRoutes, route)
	if after := gateway.Build(s, options).Usage.Rules; after != before {
		t.Errorf("the Gateway has %d rules, and %d with a route that is not served", before, after)
	}
}

// A route for which Access needs too many rules is refused. Its requests get 404, also on
// the protected hostnames.
func TestRulesThatAccessAddsCannotFillATunnel(t *testing.T) {
	s := protectBelowTheApps(250, 10)
	result := gateway.Build(s, options)
	if rules := ingress.Rules(result.Table); len(rules) > 1001 {
		t.Errorf("the tunnel has %d rules", len(rules))
	}
	accepted := report(result, s).Routes[0].Parents[0].Conditions[0]
	if accepted.Reason != conditions.ReasonLimitExceeded.String() || !strings.Contains(accepted.Message, "needs 2510 ingress rules") {
		t.Errorf("condition %+v, want LimitExceeded with the number of rules", accepted)
	}
}

// BenchmarkBuildWithAccess measures Build for 2,500 teams and 250 protected hostnames
// below the Gateway's wildcard, which serves a route for every hostname.
func BenchmarkBuildWithAccess(b *testing.B) {
	s := teamsSnapshot(2500)
	s.Gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "all", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: new(gatewayv1.Hostname("*.example.com"))}}
	for i := range 250 {
		s.ClassConfiguration.Spec.ListenerConfigurations = append(s.ClassConfiguration.Spec.ListenerConfigurations, v1alpha1.ListenerConfiguration{
			ProtocolPort: v1alpha1.EveryPort, Hostname: fmt.Sprintf("admin-%d.example.com", i),
			Access: &v1alpha1.Access{Required: true, TeamName: new("example"), AUDTags: []v1alpha1.AUDTag{"tag"}},
		})
	}
	route := s.HTTPRoutes[0].DeepCopy()
	route.Namespace, route.Name, route.Spec.ParentRefs = "infra", "all", []gatewayv1.ParentReference{{Name: "shared"}}
	s.HTTPRoutes = append(s.HTTPRoutes, route)
	b.ReportAllocs()
	for b.Loop() {
		rulesConfiguration(gateway.Build(s, randomOptions).Table)
	}
}
