package gateway_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// largestHost returns the hostname with the most Envoy routes, and how many.
func largestHost(r *gateway.Result) (hostname string, most int) {
	uncounted := uncountedEntries(r)
	for _, host := range r.Table.Hosts() {
		rules := 0
		for _, e := range host.Entries {
			if !uncounted[e] {
				rules += envoy.Capabilities().Cost(e.Match, e.Action)
			}
		}
		if rules > most {
			hostname, most = host.Hostname, rules
		}
	}
	return hostname, most
}

// addHeaderRoutes adds routes for a hostname, each with 64 header matches.
func (c *tenantCluster) addHeaderRoutes(namespace string, hostname gatewayv1.Hostname, routes int) {
	for i := range routes {
		route := c.addRoute(namespace, "", 0, "")
		route.Spec.Hostnames = []gatewayv1.Hostname{hostname}
		for j := range 64 {
			route.Spec.Rules[0].Matches = append(route.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{
				Headers: []gatewayv1.HTTPHeaderMatch{{Name: "x-version", Value: fmt.Sprintf("%s-%d-%d", namespace, i, j)}},
			})
		}
	}
}

// Envoy compares a request with each route for its hostname: 20,000 routes take 7.7 ms.
func TestRoutesOfAHostnameAreLimited(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	c.addHeaderRoutes("team", "shop.example.com", 300)
	result := gateway.Build(c.Snapshot, envoyOptions())
	if _, most := largestHost(result); most > 1000 || most < 1000-64 {
		t.Errorf("the hostname has %d Envoy routes, want about the limit of 1,000", most)
	}
	oldest, youngest := result.Routes[0].Parents[0].Rejected, result.Routes[299].Parents[0].Rejected
	if oldest != nil || youngest == nil || youngest.Reason != conditions.ReasonLimitExceeded || !strings.Contains(youngest.Message, "limits.routesPerHostname") {
		t.Errorf("the oldest route is rejected with %+v and the youngest with %+v, want LimitExceeded only for the youngest", oldest, youngest)
	}
}

// refusedAndConfined counts a namespace's refused and confined routes.
func refusedAndConfined(r *gateway.Result, namespace string) (refused, confined int) {
	for _, route := range r.Routes {
		switch p := route.Parents[0]; {
		case route.Namespace != namespace:
		case p.Rejected != nil:
			refused++
		case strings.Contains(route.DescribeLeftOut(&p), "limits.routesPerHostname"):
			confined++
		}
	}
	return refused, confined
}

// One tenant's routes for a hostname take nothing from another that needs less than its
// share, and neither do its wildcards. One tenant's hostname never costs another a
// wildcard.
func TestTheRoutesOfAHostnameAreShared(t *testing.T) {
	shop, wildcard := gatewayv1.Hostname("shop.example.com"), gatewayv1.Hostname("*.example.com")
	for name, test := range map[string]struct {
		add  func(c *tenantCluster)
		want [4]int // refused and confined routes: the team's, then the attacker's
	}{
		"the same hostname": {func(c *tenantCluster) {
			c.addHeaderRoutes("attacker", shop, 20)
			c.addHeaderRoutes("team", shop, 7)
		}, [4]int{0, 0, 12, 0}},
		"a wildcard above the hostname": {func(c *tenantCluster) {
			c.addHeaderRoutes("attacker", wildcard, 15)
			c.addHeaderRoutes("team", shop, 7)
		}, [4]int{0, 0, 0, 7}},
		"a hostname below the wildcard": {func(c *tenantCluster) {
			c.addHeaderRoutes("attacker", shop, 20)
			c.addHeaderRoutes("team", wildcard, 7)
		}, [4]int{0, 7, 5, 0}},
		"the same wildcard": {func(c *tenantCluster) {
			c.addHeaderRoutes("attacker", wildcard, 20)
			c.addHeaderRoutes("team", wildcard, 7)
		}, [4]int{0, 0, 12, 0}},
		"a wildcard and a hostname of one tenant": {func(c *tenantCluster) {
			c.addHeaderRoutes("team", shop, 8)
			c.addHeaderRoutes("team", wildcard, 8)
		}, [4]int{1, 0, 0, 0}},
		"a fallback of the platform team": {func(c *tenantCluster) {
			c.addHeaderRoutes("infra", wildcard, 10)
			c.addHeaderRoutes("team", shop, 7)
		}, [4]int{2, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTenantCluster(0)
			c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
			c.addNamespace("team", "")
			c.addNamespace("attacker", "")
			test.add(c)
			result := gateway.Build(c.Snapshot, envoyOptions())
			var got [4]int
			got[0], got[1] = refusedAndConfined(result, "team")
			got[2], got[3] = refusedAndConfined(result, "attacker")
			if got != test.want {
				t.Errorf("refused and confined routes of the team and of the attacker: %v, want %v", got, test.want)
			}
			if hostname, most := largestHost(result); most > 1000 {
				t.Errorf("%s has %d Envoy routes", hostname, most)
			}
		})
	}
}

// When a match for every request is refused, the rules for wider hostnames take its place
// and count.
func TestRulesThatAreNoLongerShadowedCount(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	for i, hostname := range []gatewayv1.Hostname{"a.b.c.d.example.com", "*.b.c.d.example.com", "*.c.d.example.com", "*.d.example.com", "*.example.com"} {
		c.addHeaderRoutes("team", hostname, 10)
		shadowing := c.HTTPRoutes[len(c.HTTPRoutes)-1]
		shadowing.CreationTimestamp = metav1.NewTime(dayOne.AddDate(0, i+1, 0))
		shadowing.Spec.Rules = append(shadowing.Spec.Rules, gatewayv1.HTTPRouteRule{BackendRefs: webBackend()})
	}
	setLimits(c.Snapshot, v1alpha1.Limits{RoutesPerHostname: new(int32(9 * 64))})
	if hostname, most := largestHost(gateway.Build(c.Snapshot, envoyOptions())); most > 9*64 {
		t.Errorf("%s has %d Envoy routes, want at most %d", hostname, most, 9*64)
	}
}

// checkHostnames checks that no hostname is above the limit. It counts refused and
// confined routes.
func checkHostnames(t *testing.T, s *gateway.Snapshot, limit int32) (refused, confined int) {
	t.Helper()
	setLimits(s, v1alpha1.Limits{RoutesPerHostname: &limit, TenantLabel: new(tenantLabel)})
	s.DataPlane = v1alpha1.DataPlaneEnvoy
	result := gateway.Build(s, envoyOptions())
	if result.Table == nil {
		return 0, 0
	}
	hostname, most := largestHost(result)
	if most > int(limit) || result.Usage.PerHostname != most {
		t.Errorf("hostname %q has %d Envoy routes of %d, and the usage is %d (%s)", hostname, most, limit, result.Usage.PerHostname, result.Usage.Hostname)
	}
	for _, route := range result.Routes {
		for i := range route.Parents {
			p := &route.Parents[i]
			if p.Rejected != nil && strings.Contains(p.Rejected.Message, "routesPerHostname") {
				refused++
			}
			if strings.Contains(route.DescribeLeftOut(p), "routesPerHostname") {
				confined++
			}
		}
	}
	return refused, confined
}

// addNestedHostnames adds routes from random namespaces for three hostnames, one below
// the other.
func (c *tenantCluster) addNestedHostnames() {
	for _, name := range slices.Sorted(maps.Keys(c.Namespaces)) {
		for _, hostname := range []gatewayv1.Hostname{"a.b.example.com", "*.b.example.com", "*.example.com"} {
			if c.IntN(2) == 0 {
				c.addRoute(name, "", c.IntN(4), "").Spec.Hostnames = []gatewayv1.Hostname{hostname}
			}
		}
	}
}

// The limit holds for every hostname in random clusters, and the usage states the
// largest.
func TestTheLimitHoldsForEveryHostname(t *testing.T) {
	refused, confined := 0, 0
	check := func(s *gateway.Snapshot, limit int32) {
		r, c := checkHostnames(t, s, limit)
		refused, confined = refused+r, confined+c
	}
	forEachCluster(t, func(_ *testing.T, s *gateway.Snapshot, seed uint64) { check(s, int32(1+seed%8)) })
	for seed := range uint64(200) {
		c, _ := randomTenants(seed)
		c.addNestedHostnames()
		check(c.Snapshot, 1+c.Int32N(12))
	}
	if refused < 100 || confined < 100 {
		t.Errorf("%d refused and %d confined routes, want more of both", refused, confined)
	}
}

// BenchmarkHostnameLimit measures Build for 20,000 matches for one hostname, and for
// wildcards and hostnames from different tenants.
func BenchmarkHostnameLimit(b *testing.B) {
	for name, add := range map[string]func(c *tenantCluster){
		"one-hostname": func(c *tenantCluster) { c.addHeaderRoutes("team", "shop.example.com", 300) },
		"wildcards-and-hostnames": func(c *tenantCluster) {
			c.addHeaderRoutes("team", "*.example.com", 140)
			c.addHostnames("attacker", 600)
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := newTenantCluster(0)
			c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
			c.addNamespace("team", "")
			c.addNamespace("attacker", "")
			add(c)
			b.ReportAllocs()
			for b.Loop() {
				gateway.Build(c.Snapshot, envoyOptions())
			}
		})
	}
}

// A tenant can have matches for every request that hide one another, one for each label
// in a deep hostname. The controller must not count the routes for all hostnames again
// for each of them.
func TestHiddenMatchesDoNotMultiplyTheCounts(t *testing.T) {
	const depth, fillers = 60, 40
	domain := func(k int) gatewayv1.Hostname { return gatewayv1.Hostname(strings.Repeat("a.", k) + "example.com") }
	allocations := func(limit int32) float64 {
		c := newTenantCluster(0)
		c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
		c.addNamespace("team", "")
		c.addHeaderRoutes("team", "x."+domain(depth), 15)
		add := func(minutes int, hostnames ...gatewayv1.Hostname) {
			route := c.addRoute("team", "", 0, "") // matches every request
			route.Spec.Hostnames = hostnames
			route.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC))
		}
		add(0, "x."+domain(depth))
		for k := depth; k >= 0; k-- { // the routes for wider hostnames are younger
			add(depth-k+1, "*."+domain(k))
		}
		for i := range fillers {
			var hostnames []gatewayv1.Hostname
			for j := range 16 {
				hostnames = append(hostnames, gatewayv1.Hostname(fmt.Sprintf("y%d-%d.", i, j))+domain(depth))
			}
			add(-1, hostnames...)
		}
		setLimits(c.Snapshot, v1alpha1.Limits{RoutesPerHostname: &limit})
		return testing.AllocsPerRun(1, func() { gateway.Build(c.Snapshot, envoyOptions()) })
	}
	if growth := allocations(960) / allocations(100_000); growth > 4 {
		t.Errorf("with hidden matches, a decision needs %.1f times as many allocations, want at most 4", growth)
	}
}
