package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

func setLimits(s *gateway.Snapshot, limits v1alpha1.Limits) {
	infrastructure := s.Gateway.Spec.Infrastructure
	setParametersRefs(s)
	s.Gateway.Spec.Infrastructure = infrastructure
	s.ClassConfiguration = configuration("platform", "defaults", v1alpha1.TunnelConfigurationSpec{Limits: &limits})
}

// tenantCluster creates random tenants on a shared Gateway. The Gateway has a listener
// for every name below example.com, and each tenant has a ListenerSet for some names.
type tenantCluster struct {
	*rand.Rand
	*gateway.Snapshot
	objects int
}

const tenantLabel = "example.com/tenant"

func newTenantCluster(seed uint64) *tenantCluster {
	c := &tenantCluster{
		Rand: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // the test must be reproducible
		Snapshot: &gateway.Snapshot{
			Now: dayOne.AddDate(1, 0, 0), Namespaces: map[string]*corev1.Namespace{},
			Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared", Generation: 1}},
		},
	}
	all := gatewayv1.NamespacesFromAll
	c.Gateway.Spec = gatewayv1.GatewaySpec{
		AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &all}},
		Listeners: []gatewayv1.Listener{{
			Name: "wide", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: new(gatewayv1.Hostname("*.example.com")),
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
		}},
	}
	c.addNamespace("infra", "")
	for range c.IntN(3) {
		c.addRoute("infra", "", 1+c.IntN(4), "")
	}
	return c
}

func (c *tenantCluster) addNamespace(name, tenant string) {
	meta := metav1.ObjectMeta{Name: name}
	if tenant != "" {
		meta.Labels = map[string]string{tenantLabel: tenant}
	}
	c.Namespaces[name] = &corev1.Namespace{ObjectMeta: meta}
}

// addTenant adds a namespace with a ListenerSet and routes, a quarter with regular
// expressions.
func (c *tenantCluster) addTenant(name string, routes int) {
	c.addNamespace(name, "")
	listeners := 1 + c.IntN(3)
	c.addSet(name, listeners)
	for range routes {
		expression := ""
		if c.IntN(4) == 0 {
			expression = fmt.Sprintf("/[a-z]{%d}", 1+c.IntN(9))
		}
		c.addRoute(name, fmt.Sprintf("h%d", c.IntN(listeners)), 1+c.IntN(4), expression)
	}
}

// addWildcardRoute adds a route for every name below example.com to the Gateway.
func (c *tenantCluster) addWildcardRoute(namespace string, matches int, expression string) {
	c.addRoute(namespace, "", matches, expression).Spec.Hostnames = []gatewayv1.Hostname{"*.example.com"}
}

// addHostnames adds routes with 16 hostnames each to the Gateway.
func (c *tenantCluster) addHostnames(namespace string, routes int) {
	for range routes {
		route := c.addRoute(namespace, "", 1, "")
		route.Spec.Hostnames = nil
		for j := range 16 {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.%s.%s.example.com", j, route.Name, namespace)))
		}
	}
}

func (c *tenantCluster) meta(namespace, kind string) metav1.ObjectMeta {
	c.objects++
	created := metav1.NewTime(dayOne.Add(time.Duration(c.IntN(1000)) * time.Minute))
	return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", kind, c.objects), Generation: 1, CreationTimestamp: created}
}

func (c *tenantCluster) addSet(namespace string, listeners int) {
	set := &gatewayv1.ListenerSet{ObjectMeta: c.meta(namespace, "set")}
	set.Name = "listeners"
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}
	for i := range listeners {
		set.Spec.Listeners = append(set.Spec.Listeners, teamListener(fmt.Sprintf("h%d", i), fmt.Sprintf("h%d.%s.example.com", i, namespace)))
	}
	c.ListenerSets = append(c.ListenerSets, set)
}

// addRoute adds a route to a listener in the namespace's ListenerSet, or to the Gateway
// when section is empty.
func (c *tenantCluster) addRoute(namespace, section string, matches int, expression string) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: c.meta(namespace, "route")}
	if section == "" {
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}}
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + "." + namespace + ".example.com")}
	} else {
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{
			Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: "listeners", SectionName: new(gatewayv1.SectionName(section)),
		}}
	}
	rule := gatewayv1.HTTPRouteRule{BackendRefs: webBackend()}
	for i := range matches {
		kind, path := gatewayv1.PathMatchExact, fmt.Sprintf("/%s/%d", route.Name, i)
		if expression != "" {
			kind, path = gatewayv1.PathMatchRegularExpression, expression+path
		}
		rule.Matches = append(rule.Matches, gatewayv1.HTTPRouteMatch{Path: pathMatch(kind, path)})
	}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{rule}
	c.HTTPRoutes = append(c.HTTPRoutes, route)
	return route
}

// rulesByNamespace returns the route rules for each namespace, in order.
func rulesByNamespace(r *gateway.Result) map[string][]string {
	rules := map[string][]string{}
	for _, rule := range ingress.Rules(r.Table) {
		if rule.Entry != nil {
			namespace := rule.Entry.Source.Route.Namespace
			rules[namespace] = append(rules[namespace], rule.Hostname+rule.Path+" "+rule.Service)
		}
	}
	return rules
}

// attacks are the ways in which a tenant tries to use up the limits of a Gateway.
var attacks = map[string]func(*tenantCluster){
	"a namespace with many routes": func(c *tenantCluster) {
		c.addTenant("attacker", 300)
	},
	"a namespace with routes on the Gateway's listener": func(c *tenantCluster) {
		c.addNamespace("attacker", "")
		for range 300 {
			c.addRoute("attacker", "", 1+c.IntN(30), "")
		}
	},
	"many small namespaces of one tenant": func(c *tenantCluster) {
		for i := range 60 {
			name := fmt.Sprintf("attacker-%d", i)
			c.addTenant(name, 1+c.IntN(3))
			c.addNamespace(name, "attacker")
		}
	},
	"large expressions": func(c *tenantCluster) {
		c.addTenant("attacker", 0)
		for range 60 {
			c.addRoute("attacker", "h0", 1+c.IntN(4), fmt.Sprintf("(.?){%d}", 1+c.IntN(120)))
		}
	},
	"large expressions in many namespaces of one tenant": func(c *tenantCluster) {
		for i := range 60 {
			name := fmt.Sprintf("attacker-%d", i)
			c.addTenant(name, 0)
			c.addNamespace(name, "attacker")
			c.addRoute(name, "h0", 1+c.IntN(4), fmt.Sprintf("(.?){%d}", 100+c.IntN(20)))
		}
	},
	"a wildcard route on the Gateway's listener": func(c *tenantCluster) {
		c.addNamespace("attacker", "")
		for range 3 {
			c.addWildcardRoute("attacker", 30, "")
		}
	},
	"hostnames below the wildcards of others": func(c *tenantCluster) {
		c.addNamespace("attacker", "")
		c.addHostnames("attacker", 20)
	},
	"wildcards with expressions, and hostnames below them": func(c *tenantCluster) {
		for i := range 3 {
			name := fmt.Sprintf("attacker-%d", i)
			c.addNamespace(name, "attacker")
			c.addWildcardRoute(name, 4, "/[a-z]+")
			c.addHostnames(name, 10)
		}
	},
	"a match of every request that is refused": func(c *tenantCluster) {
		c.addNamespace("attacker", "")
		hiding := c.addRoute("attacker", "", 4, "(.?){70}")
		c.addHostnames("attacker", 1)
		hiding.Spec.Hostnames = c.HTTPRoutes[len(c.HTTPRoutes)-1].Spec.Hostnames
		hiding.Spec.Rules = append(hiding.Spec.Rules, gatewayv1.HTTPRouteRule{BackendRefs: webBackend()})
	},
	"many listeners": func(c *tenantCluster) {
		c.addNamespace("attacker", "")
		c.addSet("attacker", 64)
	},
}

func TestAttackerDoesNotChangeOtherTenantsRules(t *testing.T) {
	for name, attack := range attacks {
		for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
			t.Run(fmt.Sprintf("%s with %s", name, plane), func(t *testing.T) {
				compared := 0
				for seed := range uint64(40) {
					compared += attackTenants(t, seed, plane, attack)
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
				if compared < 40 {
					t.Errorf("only %d tenants were below their share", compared)
				}
			})
		}
	}
}

// attackTenants compares the rules of random tenants before and after an attack. It
// returns how many tenants it compared.
func attackTenants(t *testing.T, seed uint64, plane v1alpha1.DataPlane, attack func(*tenantCluster)) (compared int) {
	t.Helper()
	c, limits := randomTenants(seed)
	c.DataPlane = plane
	before := gateway.Build(c.Snapshot, options)
	attack(c)
	after := gateway.Build(c.Snapshot, options)
	if after.Usage.Rules > int(*limits.RulesPerTunnel) {
		t.Errorf("%d rules of %d", after.Usage.Rules, *limits.RulesPerTunnel)
	}
	if plane == v1alpha1.DataPlaneEnvoy {
		limit := int(*limits.RulesPerTunnel) * 3 / 2
		if rules := costOfRules(after); rules > limit {
			t.Errorf("Envoy gets %d rules of %d", rules, limit)
		}
	}
	return compareTenantsBelowShare(t, before, after)
}

func randomTenants(seed uint64) (*tenantCluster, v1alpha1.Limits) {
	c := newTenantCluster(seed)
	for i := range 1 + c.IntN(5) {
		name := fmt.Sprintf("team-%d", i)
		c.addTenant(name, c.IntN(5))
		if c.IntN(3) == 0 {
			c.addWildcardRoute(name, 1+c.IntN(3), "")
		}
	}
	if c.IntN(3) == 0 {
		c.addWildcardRoute("infra", 1+c.IntN(3), "")
	}
	limits := v1alpha1.Limits{RulesPerTunnel: new(30 + c.Int32N(60)), TenantLabel: new(tenantLabel)}
	if c.IntN(2) == 0 {
		limits.RulesPerNamespace = new(5 + c.Int32N(30))
	}
	setLimits(c.Snapshot, limits)
	return c, limits
}

// compareTenantsBelowShare compares the rules before and after an attack for tenants that
// were below their share of the rules and of the expressions. It returns how many there
// were.
func compareTenantsBelowShare(t *testing.T, before, after *gateway.Result) (compared int) {
	t.Helper()
	rulesBefore, rulesAfter := rulesByNamespace(before), rulesByNamespace(after)
	rules, instructions := share(after, int(after.Usage.Limits.RulesPerTunnel), func(u gateway.TenantUsage) int { return u.Rules }),
		share(after, 5000, func(u gateway.TenantUsage) int { return u.Instructions })
	for _, usage := range before.Usage.Tenants {
		if usage.Name == "infra" || usage.Rules > rules || usage.Instructions > instructions {
			continue
		}
		compared++
		if diff := cmp.Diff(rulesBefore[usage.Name], rulesAfter[usage.Name]); diff != "" {
			t.Errorf("rules of %s, which uses %d of its share %d (-before +after):\n%s", usage.Name, usage.Rules, rules, diff)
		}
		compareAnswers(t, usage.Name, before, after)
	}
	return compared
}

// compareAnswers checks that the namespace's routes still answer the requests that one of
// its entries answered before the attack. No attacker names the hosts.
func compareAnswers(t *testing.T, namespace string, before, after *gateway.Result) {
	t.Helper()
	for _, g := range before.Table.Groups {
		for _, e := range g.Entries {
			if e.Source.Route.Namespace != namespace || e.Match.Path.Kind != routing.PathExact {
				continue
			}
			for _, hostname := range []string{e.Hostname, "new." + namespace + ".example.com"} {
				request := routing.Request{Host: strings.Replace(hostname, "*", "unnamed", 1), Path: e.Match.Path.Value}
				old, _ := before.Table.Answer(request)
				answer, _ := after.Table.Answer(request)
				if old != nil && old.Source.Route.Namespace == namespace && (answer == nil || answer.Source.Route.Namespace != namespace) {
					t.Errorf("after the attack, %s does not answer %s%s", old.Source.Describe(), request.Host, request.Path)
				}
			}
		}
	}
}

// share returns what the Gateway's own namespace leaves of a limit, divided by the number
// of tenants.
func share(r *gateway.Result, limit int, used func(gateway.TenantUsage) int) int {
	tenants := 0
	for _, usage := range r.Usage.Tenants {
		if usage.Name == "infra" {
			limit -= used(usage)
		} else {
			tenants++
		}
	}
	return limit / max(1, tenants)
}

func TestRouteAboveALimitIsRefusedWhole(t *testing.T) {
	c := newTenantCluster(0)
	c.addNamespace("team", "")
	c.addSet("team", 1)
	old := c.addRoute("team", "h0", 8, "")
	young := c.addRoute("team", "h0", 3, "")
	old.CreationTimestamp, young.CreationTimestamp = metav1.NewTime(dayOne), metav1.NewTime(dayOne.Add(time.Hour))
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerNamespace: new(int32(10))})
	result := gateway.Build(c.Snapshot, options)
	for _, route := range result.Routes {
		rejected := route.Parents[0].Rejected
		switch {
		case route.Name == old.Name && rejected != nil:
			t.Errorf("the older route is refused: %+v", rejected)
		case route.Name == young.Name && (rejected == nil || rejected.Reason != conditions.ReasonLimitExceeded || !strings.Contains(rejected.Message, "3 ingress rules") || !strings.Contains(rejected.Message, "10 for namespace team")):
			t.Errorf("the younger route is rejected with %+v, want LimitExceeded with the count 3 and the limit 10", rejected)
		}
	}
	if rules := rulesByNamespace(result)["team"]; len(rules) != 8 {
		t.Errorf("got the rules %q, want the 8 rules of the older route", rules)
	}
	listener := result.Listeners[slices.IndexFunc(result.Listeners, func(l *gateway.Listener) bool { return l.Owner.Namespace == "team" })]
	if listener.AttachedRoutes != 1 {
		t.Errorf("the listener has %d attached routes, want 1", listener.AttachedRoutes)
	}
}

// The requests of a refused expression must not reach a wider rule in the same route.
func TestRouteAboveASharedExpressionLimitIsRefusedWhole(t *testing.T) {
	c := newTenantCluster(0)
	c.addNamespace("team", "")
	c.addSet("team", 1)
	c.addRoute("team", "h0", 4, "(.?){70}") // 4 × about 300 instructions
	c.HTTPRoutes[len(c.HTTPRoutes)-1].Spec.Rules = append(c.HTTPRoutes[len(c.HTTPRoutes)-1].Spec.Rules, gatewayv1.HTTPRouteRule{BackendRefs: webBackend()})
	result := gateway.Build(c.Snapshot, options)
	route := result.Routes[slices.IndexFunc(result.Routes, func(r *gateway.Route) bool { return r.Namespace == "team" })]
	if problem := route.Parents[0].Rejected; problem == nil || problem.Reason != conditions.ReasonLimitExceeded || !strings.Contains(problem.Message, "1000") {
		t.Errorf("the route is rejected with %+v, want LimitExceeded with the limit 1000", problem)
	}
	if rules := rulesByNamespace(result)["team"]; len(rules) != 0 {
		t.Errorf("got the rules %q, want none", rules)
	}
}

// A route that is refused because of its rules does not use up its tenant's expressions.
func TestExpressionsOfARefusedRouteAreFree(t *testing.T) {
	c := newTenantCluster(0)
	c.addNamespace("team", "")
	c.addSet("team", 1)
	old, young := c.addRoute("team", "h0", 4, "(.?){45}"), c.addRoute("team", "h0", 1, "(.?){90}")
	old.CreationTimestamp, young.CreationTimestamp = metav1.NewTime(dayOne), metav1.NewTime(dayOne.Add(time.Hour))
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerNamespace: new(int32(3))})
	result := gateway.Build(c.Snapshot, options)
	if rules := rulesByNamespace(result)["team"]; len(rules) != 1 || !strings.Contains(rules[0], "{90}") {
		t.Errorf("got the rules %q, want the rule of the younger route", rules)
	}
}

// The limits belong to the GatewayClass, so a Gateway's invalid settings do not lift
// them.
func TestInvalidSettingsOfAGatewayKeepTheLimits(t *testing.T) {
	c := newTenantCluster(0)
	c.addNamespace("team", "")
	c.addSet("team", 3)
	setLimits(c.Snapshot, v1alpha1.Limits{ListenersPerNamespace: new(int32(2))})
	c.Gateway.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
		Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "missing",
	}}
	result := gateway.Build(c.Snapshot, options)
	if result.Rejected == nil || result.Usage == nil || result.Usage.Tenants[len(result.Usage.Tenants)-1].RefusedListeners != 1 {
		t.Errorf("got rejection %+v and usage %+v, want a rejected Gateway with one refused listener", result.Rejected, result.Usage)
	}
}

// A tenant's 404 rules can exceed its limit without any route. The last listeners in its
// youngest ListenerSets then claim nothing.
func TestListenersWhose404RulesExceedALimitAreExcluded(t *testing.T) {
	c := newTenantCluster(0)
	c.addNamespace("team", "")
	c.addSet("team", 6)
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerNamespace: new(int32(4))})
	result := gateway.Build(c.Snapshot, options)
	var refused []string
	for _, l := range result.Listeners {
		if l.Rejected != nil && l.Rejected.Reason == conditions.ReasonLimitExceeded {
			refused = append(refused, string(l.Spec.Name))
		}
	}
	if diff := cmp.Diff([]string{"h4", "h5"}, refused); diff != "" {
		t.Errorf("listeners above the limit (-want +got):\n%s", diff)
	}
}

// A million rules are counted and refused, but never built.
func BenchmarkBuildAMillionRefusedRules(b *testing.B) {
	s := teamsSnapshot(2)
	attachToManyListeners(s)
	for i := range 3 {
		route := s.HTTPRoutes[len(s.HTTPRoutes)-1].DeepCopy()
		route.Name = fmt.Sprintf("wide-%d", i)
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	setLimits(s, v1alpha1.Limits{ListenersPerNamespace: new(int32(100000)), RulesPerTunnel: new(int32(1000))})
	b.ReportAllocs()
	for b.Loop() {
		rulesConfiguration(gateway.Build(s, options).Table)
	}
}
