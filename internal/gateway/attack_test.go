package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// One route with 113 expensive expressions costs a connector 2.5 GB and delays every
// tenant's requests by seconds.
func TestExpensiveExpressionsAreNotServed(t *testing.T) {
	s := teamsSnapshot(2)
	route := s.HTTPRoutes[0]
	route.Spec.Rules[0].Matches = nil
	for i := range 113 {
		route.Spec.Rules[0].Matches = append(route.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{
			Path: pathMatch(gatewayv1.PathMatchRegularExpression, fmt.Sprintf("/%d(.?){999}", i)),
		})
	}
	for _, rule := range ingress.Rules(gateway.Build(s, options).Table) {
		if strings.Contains(rule.Path, "999") {
			t.Errorf("the expression %s is served", rule.Path)
		}
	}
}

// One HTTPRoute with 128 matches, attached to 32 ListenerSets with 64 listeners each, has
// 262,144 rules.
func TestOneRouteCannotFillATunnel(t *testing.T) {
	s := teamsSnapshot(2)
	setLimits(s, v1alpha1.Limits{ListenersPerNamespace: new(int32(100000))})
	attachToManyListeners(s)
	if rules := len(ingress.Rules(gateway.Build(s, options).Table)); rules > 1001 {
		t.Errorf("the tunnel has %d rules", rules)
	}
}

func attachToManyListeners(s *gateway.Snapshot) {
	s.Namespaces["attacker"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attacker"}}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "attacker", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(dayOne.Add(time.Hour))}
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: meta("wide")}
	for i := range 128 {
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{
			Path: pathMatch(gatewayv1.PathMatchExact, fmt.Sprintf("/%d", i)),
		}}})
	}
	for i := range 32 {
		name := fmt.Sprintf("set-%d", i)
		set := &gatewayv1.ListenerSet{ObjectMeta: meta(name)}
		set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}
		for j := range 64 {
			set.Spec.Listeners = append(set.Spec.Listeners, teamListener(fmt.Sprintf("l%d", j), fmt.Sprintf("h%d-%d.attacker.example.com", i, j)))
		}
		s.ListenerSets = append(s.ListenerSets, set)
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{
			Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: gatewayv1.ObjectName(name),
		})
	}
	s.HTTPRoutes = append(s.HTTPRoutes, route)
}

// The time to parse an expression can be much larger than its size, so a tenant's
// expressions have a limit on their total length before they are parsed.
func TestLongExpressionsAreNotParsed(t *testing.T) {
	s := teamsSnapshot(2)
	addExpressions(s, 10, "(?i)"+strings.Repeat(`\pL`, 300))
	result := gateway.Build(s, options)
	for _, route := range result.Routes {
		if strings.HasPrefix(route.Name, "expressions") && (route.Parents[0].Rejected == nil || route.Parents[0].Rejected.Reason != conditions.ReasonLimitExceeded) {
			t.Errorf("%s is rejected with %+v, want LimitExceeded", route.Name, route.Parents[0].Rejected)
		}
	}
}

// addExpressions adds routes with 128 regular expressions each to the first team.
func addExpressions(s *gateway.Snapshot, routes int, expression string) {
	for i := range routes {
		route := s.HTTPRoutes[0].DeepCopy()
		route.Name = fmt.Sprintf("expressions-%d", i)
		route.Spec.Rules[0].Matches = nil
		for j := range 128 {
			route.Spec.Rules[0].Matches = append(route.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{
				Path: pathMatch(gatewayv1.PathMatchRegularExpression, fmt.Sprintf("/%d%s", j, expression)),
			})
		}
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
}

// BenchmarkBuildRefusedExpressions measures Build for 100 routes with 12,800 expressions
// that are slow to parse. It must take less than 100 ms.
func BenchmarkBuildRefusedExpressions(b *testing.B) {
	for name, expression := range map[string]string{
		"classes": "(?i)" + strings.Repeat(`\pL`, 50), "ranges": "(?i)" + strings.Repeat(`[A-\x{1e942}]`, 20), "repetitions": "(?:.?){100}",
	} {
		b.Run(name, func(b *testing.B) {
			s := teamsSnapshot(20)
			addExpressions(s, 100, expression)
			for b.Loop() {
				gateway.Build(s, options)
			}
		})
	}
}

// In each of n namespaces, ListenerSets compete for one hostname and exceed the limit on
// rules with it, so that excluding one lets another claim the hostname.
func contestedNotFoundSnapshot(n int) *gateway.Snapshot {
	c := newTenantCluster(0)
	for i := range n {
		namespace := fmt.Sprintf("team-%d", i)
		c.addNamespace(namespace, "")
		c.addSet(namespace, 1)
		for j := range 8 {
			set := c.ListenerSets[len(c.ListenerSets)-1].DeepCopy()
			set.Name = fmt.Sprintf("contested-%d", j)
			set.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname("contested.example.com"))
			c.ListenerSets = append(c.ListenerSets, set)
		}
	}
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerNamespace: new(int32(1))})
	return c.Snapshot
}

func TestListenersAreDecidedAtMostTwice(t *testing.T) {
	allocations := func(n int) float64 {
		s := contestedNotFoundSnapshot(n)
		return testing.AllocsPerRun(1, func() { gateway.Build(s, options) })
	}
	if growth := allocations(300) / allocations(30); growth > 11 {
		t.Errorf("10 times as many namespaces lead to %.1f times as many allocations, want at most 11", growth)
	}
}

// A tenant must not use up other tenants' rules by claiming a wide hostname, below which
// each of their hostnames needs a rule that returns 404.
func TestAWideHostnameLeavesRulesToOtherTenants(t *testing.T) {
	for _, wide := range []gatewayv1.Hostname{"*.com", "*.team.example.com", ""} {
		c := newTenantCluster(0)
		c.Gateway.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname("www.example.org"))
		c.addNamespace("team", "")
		c.addSet("team", 4)
		for i := range 4 {
			c.addRoute("team", fmt.Sprintf("h%d", i), 2, "")
		}
		setLimits(c.Snapshot, v1alpha1.Limits{RulesPerNamespace: new(int32(8))})
		before := rulesByNamespace(gateway.Build(c.Snapshot, options))["team"]
		c.addNamespace("attacker", "")
		c.addSet("attacker", 1)
		c.ListenerSets[len(c.ListenerSets)-1].Spec.Listeners[0].Hostname = &wide
		result := gateway.Build(c.Snapshot, options)
		if diff := cmp.Diff(before, rulesByNamespace(result)["team"]); diff != "" {
			t.Errorf("rules below the hostname %q (-before +after):\n%s", wide, diff)
		}
		for _, usage := range result.Usage.Tenants {
			if usage.Name == "attacker" && usage.Rules < 4 {
				t.Errorf("hostname %q counts %d rules for its tenant, want at least 4", wide, usage.Rules)
			}
		}
	}
}

// A namespace must not make the controller read thousands of Secrets. Its other
// certificates count as valid, because no connector uses them.
func TestSecretsAboveTheLimitAreNotRead(t *testing.T) {
	s := teamsSnapshot(2)
	set := s.ListenerSets[0]
	for i := range 200 {
		entry := teamListener(fmt.Sprintf("tls-%d", i), fmt.Sprintf("tls-%d.example.com", i))
		entry.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: gatewayv1.ObjectName(fmt.Sprintf("secret-%03d", i))}}}
		set.Spec.Listeners = append(set.Spec.Listeners, entry)
	}
	if names := gateway.SecretsToRead(s); len(names) != 128 || names[127].Name != "secret-127" {
		t.Errorf("got %d Secrets to read, the last is %s, want the first 128", len(names), names[len(names)-1])
	}
	for _, l := range gateway.Build(s, options).Listeners {
		if l.Spec.Name == "tls-127" && l.Unresolved == nil {
			t.Error("a missing Secret below the limit is resolved")
		}
		if l.Spec.Name == "tls-128" && l.Unresolved != nil {
			t.Errorf("a Secret above the limit has the problem %+v", l.Unresolved)
		}
	}
}

// With Envoy, a wildcard's rules are repeated for each narrower hostname. Another
// tenant's hostnames take only their own requests from the wildcard, and do not count the
// wildcard's rules for their tenant.
func TestHostnamesOfOthersOnlyConfineAWildcardRoute(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	c.addWildcardRoute("team", 10, "")
	wildcard := c.HTTPRoutes[0].Name
	c.addRoute("team", "", 1, "").Spec.Hostnames = []gatewayv1.Hostname{"own.example.com"}
	c.addNamespace("other", "")
	c.addHostnames("other", 2)
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(200)), RulesPerNamespace: new(int32(32))})
	result := gateway.Build(c.Snapshot, options)
	if routes, _ := result.Usage.Refused(); routes > 0 || result.Usage.Confined != 1 || result.Usage.Repeated != 0 {
		t.Fatalf("%d routes are refused, %d are confined, and %d rules are repeated for other tenants; want 0, 1 and 0", routes, result.Usage.Confined, result.Usage.Repeated)
	}
	other := string(c.HTTPRoutes[2].Spec.Hostnames[0])
	for host, want := range map[string]string{"any.example.com": "team", "own.example.com": "team", other: "no room to repeat"} {
		if got := namespaceOfAnswer(result.Table, routing.Request{Host: host, Path: "/" + wildcard + "/0"}); !strings.Contains(got, want) {
			t.Errorf("host %s: the answer is %q, want %q", host, got, want)
		}
	}
	for _, route := range report(result, c.Snapshot).Routes {
		message := messageOf(route.Parents[0].Conditions, "Accepted")
		if got := strings.Contains(message, "do not apply to narrower hostnames that only other namespaces use"); got != (route.Name == wildcard) {
			t.Errorf("the message of route %s is %q", route.Name, message)
		}
	}
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(640)), RulesPerNamespace: new(int32(32))})
	result = gateway.Build(c.Snapshot, options)
	got := namespaceOfAnswer(result.Table, routing.Request{Host: other, Path: "/" + wildcard + "/0"})
	if got != "team" || result.Usage.Repeated != 320 || result.Usage.Confined != 0 {
		t.Errorf("below the limit, the answer is %q, and %d rules are repeated for other tenants, want 320", got, result.Usage.Repeated)
	}
}

// namespaceOfAnswer returns the namespace whose entry answers the request, or why the
// only entry that matches it does not.
func namespaceOfAnswer(table *routing.Table, request routing.Request) string {
	switch entry, shadowed := table.Answer(request); {
	case entry != nil:
		return entry.Source.Route.Namespace
	case len(shadowed) == 1:
		return shadowed[0].Reason
	default:
		return ""
	}
}

// The expressions in a repeated rule count, because Envoy compiles each repetition: a
// wildcard's expressions for its own tenant's hostnames, and the platform fallback's
// expressions for each tenant's hostnames.
func TestRepeatedExpressionsCount(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addWildcardRoute("infra", 1, "/[a-z]+")
	for _, name := range []string{"few", "many"} {
		c.addNamespace(name, "")
		c.addHostnames(name, map[string]int{"few": 1, "many": 8}[name])
	}
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(1000))})
	result := gateway.Build(c.Snapshot, options)
	for _, usage := range result.Usage.Tenants {
		want := map[string]int{"infra": 1, "few": 16 * (1 + 11), "many": 4 * 16 * (1 + 11)}[usage.Name]
		if usage.Rules != want || usage.RefusedRoutes > 0 != (usage.Name == "many") {
			t.Errorf("tenant %s has %d rules and %d refused routes, want %d rules", usage.Name, usage.Rules, usage.RefusedRoutes, want)
		}
	}
	for _, route := range result.Routes {
		if rejected := route.Parents[0].Rejected; rejected != nil && !strings.Contains(rejected.Message, "The route needs 192 Envoy routes") {
			t.Errorf("route %s is rejected with %q", route.Name, rejected.Message)
		}
	}
}
