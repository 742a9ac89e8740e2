package gateway_test

import (
	"slices"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// envoyOptions make every Gateway use Envoy.
func envoyOptions() gateway.Options {
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: envoyOfFiles(), v1alpha1.DataPlaneEnvoy: envoyOfFiles()}
	return o
}

// With Envoy, every rule that Envoy gets counts, including repeated rules: as one rule,
// and ten more for each regular expression in a repeated rule.
func TestRepeatedRulesCount(t *testing.T) {
	own, forOthers := 0, 0
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		rules := costOfRules(result)
		own += result.Usage.Rules
		for _, g := range result.Table.Groups {
			own -= len(g.Entries)
		}
		forOthers += result.Usage.Repeated
		// A route also counts as one rule for each backend. A redirect counts for all
		// entries that can answer in its place.
		counted, isExact := result.Usage.Rules+result.Usage.Repeated, !answersInsteadOfOthers(result.Table)
		if counted < rules || isExact && counted > rules+furtherBackends(s) {
			t.Errorf("counted %d rules, %d of them for other tenants; Envoy gets %d", counted, result.Usage.Repeated, rules)
		}
	})
	if own == 0 || forOthers == 0 {
		t.Errorf("the clusters do not have every case: %d repeated rules, %d for hostnames of other tenants", own, forOthers)
	}
}

// answersInsteadOfOthers reports whether an entry answers in the place of another listener.
func answersInsteadOfOthers(t *routing.Table) bool {
	isOfGateway := func(e *routing.Entry) bool { return e.Source.Route.Namespace == "infra" }
	isInstead := func(e *routing.Entry) bool { return e.InsteadOf.Route != nil }
	return slices.ContainsFunc(t.Groups, func(g routing.Group) bool {
		return slices.ContainsFunc(g.Redirects, isOfGateway) || slices.ContainsFunc(g.Entries, isInstead)
	})
}

// furtherBackends counts the backends except each rule's first.
func furtherBackends(s *gateway.Snapshot) int {
	further := 0
	for _, route := range s.HTTPRoutes {
		for _, rule := range route.Spec.Rules {
			further += max(0, len(rule.BackendRefs)-1)
		}
	}
	return further
}

// costOfRules counts Envoy's rules. A repeated rule counts ten more for each of its
// regular expressions.
func costOfRules(r *gateway.Result) int {
	rules := 0
	uncounted := uncountedEntries(r)
	for _, host := range r.Table.Hosts() {
		for _, e := range host.Entries {
			cost := 1
			if uncounted[e] {
				continue
			}
			if e.Hostname != host.Hostname || e.InsteadOf.Route != nil {
				cost += 10 * expressionsOf(e.Match)
			}
			rules += cost * envoy.Capabilities().Cost(e.Match, e.Action)
		}
	}
	return rules
}

// uncountedEntries returns the entries that count for no tenant: redirects that belong to the
// Gateway's listeners.
func uncountedEntries(r *gateway.Result) map[*routing.Entry]bool {
	uncounted := map[*routing.Entry]bool{}
	for i := range r.Table.Groups {
		g := &r.Table.Groups[i]
		for _, e := range g.Redirects {
			uncounted[e] = !redirectsItself(r, g.Hostname)
		}
	}
	return uncounted
}

// redirectsItself reports whether the ListenerSet with the hostname has an HTTP listener for a
// wider one.
func redirectsItself(r *gateway.Result, hostname string) bool {
	owners := map[gateway.Owner]bool{}
	for _, l := range r.Listeners {
		if l.Rejected == nil && l.Hostname() == hostname && l.Owner.Kind == gateway.KindListenerSet {
			owners[l.Owner] = true
		}
	}
	return slices.ContainsFunc(r.Listeners, func(l *gateway.Listener) bool {
		return l.Rejected == nil && owners[l.Owner] && l.Spec.Protocol == gatewayv1.HTTPProtocolType &&
			l.Hostname() != hostname && routing.Covers(l.Hostname(), hostname)
	})
}

func expressionsOf(m *routing.Match) int {
	count := 0
	if m.Path.Kind == routing.PathExpression {
		count++
	}
	for _, value := range slices.Concat(m.Headers, m.Query) {
		if value.Expression {
			count++
		}
	}
	return count
}

// A platform team's fallback that is repeated for one tenant's hostnames does not use up
// another tenant's rules.
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

// Envoy distinguishes letter case in escapes, so that a path with an escaped byte such as
// "é" has two routes. Both count, even where they are repeated.
func TestBothRoutesOfAnEscapedPathCount(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	for _, hostname := range []gatewayv1.Hostname{"*.example.com", "a.example.com"} {
		route := c.addRoute("infra", "", 0, "")
		route.Spec.Hostnames = []gatewayv1.Hostname{hostname}
		for _, path := range []string{"/caf%C3%A9", "/a%20b", "/plain"} {
			route.Spec.Rules[0].Matches = append(route.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{Path: pathMatch(gatewayv1.PathMatchPathPrefix, path)})
		}
	}
	result := gateway.Build(c.Snapshot, envoyOptions())
	routes := 0
	for _, host := range envoy.Whole(envoy.ListenerOpen, envoy.Render(result.Table).Routes).VirtualHosts {
		routes += len(host.Routes)
	}
	if result.Usage.Rules != routes {
		t.Errorf("%d rules count, and Envoy gets %d routes", result.Usage.Rules, routes)
	}
}
