package gateway_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// everything describes a data plane that can express every match and every action.
var everything = routing.Capabilities{
	Match:   func(gatewayv1.HTTPRouteMatch) []string { return nil },
	Action:  func(*gatewayv1.HTTPRouteRule) []string { return nil },
	Backend: func(string, routing.Protocol) string { return "" },
	ErrorStatus: func(kind string) int {
		return map[string]int{gateway.KindHTTPRoute: 500, gateway.KindGRPCRoute: 503}[kind]
	},
	Protocols: []routing.Protocol{routing.ProtocolHTTP, routing.ProtocolHTTPS, routing.ProtocolH2C},
	Path:      url.PathUnescape,

	KnowsScheme: true,
}

// routesSnapshot returns a Gateway with one listener for every hostname, and the
// Service "web" with the port 80.
func routesSnapshot() *gateway.Snapshot {
	return &gateway.Snapshot{
		Now: dayOne,
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared", Generation: 1},
			Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{{Name: "any", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
		},
		Namespaces: map[string]*corev1.Namespace{"platform": {}},
		Services: byname.From(map[types.NamespacedName]*corev1.Service{
			{Namespace: "platform", Name: "web"}: {
				ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "web"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			},
		}),
	}
}

func routeMeta(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "platform", Name: name, CreationTimestamp: metav1.NewTime(dayOne.Add(-age)), Generation: 1}
}

var toShared = gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
	Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")), Name: "shared",
}}}

func webBackend() []gatewayv1.HTTPBackendRef {
	return []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: new(gatewayv1.PortNumber(80))}}}}
}

func httpRoute(meta metav1.ObjectMeta, matches ...gatewayv1.HTTPRouteMatch) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: meta, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: toShared, Rules: []gatewayv1.HTTPRouteRule{{Matches: matches, BackendRefs: webBackend()}},
	}}
}

func pathMatch(kind gatewayv1.PathMatchType, value string) *gatewayv1.HTTPPathMatch {
	return &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}
}

func headers(names ...gatewayv1.HTTPHeaderName) []gatewayv1.HTTPHeaderMatch {
	var all []gatewayv1.HTTPHeaderMatch
	for _, name := range names {
		all = append(all, gatewayv1.HTTPHeaderMatch{Name: name, Value: "x"})
	}
	return all
}

func queries(names ...gatewayv1.HTTPHeaderName) []gatewayv1.HTTPQueryParamMatch {
	var all []gatewayv1.HTTPQueryParamMatch
	for _, name := range names {
		all = append(all, gatewayv1.HTTPQueryParamMatch{Name: name, Value: "x"})
	}
	return all
}

// order builds the routing table for a data plane that can express everything, and
// returns the sources in its only group.
func order(t *testing.T, s *gateway.Snapshot) []string {
	t.Helper()
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: everything}
	table := gateway.Build(s, o).Table
	if table == nil || len(table.Groups) != 1 {
		t.Fatalf("the table is %+v, want one group", table)
	}
	var sources []string
	for _, e := range table.Groups[0].Entries {
		sources = append(sources, fmt.Sprintf("%s%d%d", e.Source.Route.Name, e.Source.Rule, e.Source.Match))
	}
	return sources
}

// "Across all rules specified on applicable Routes, precedence must be given to the match
// having: [...]" (HTTPRouteRule.Matches). In each row, the first match's route is younger
// and later in alphabetical order, so that only the match can put it first.
func TestHTTPMatchesAreOrderedAsTheAPIRequires(t *testing.T) {
	post := new(gatewayv1.HTTPMethodPost)
	exact, prefix, expression := gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression
	for name, row := range map[string]struct{ first, second gatewayv1.HTTPRouteMatch }{
		"an exact path before an expression":     {gatewayv1.HTTPRouteMatch{Path: pathMatch(exact, "/a")}, gatewayv1.HTTPRouteMatch{Path: pathMatch(expression, "/a.*"), Method: post}},
		"an exact path before a longer prefix":   {gatewayv1.HTTPRouteMatch{Path: pathMatch(exact, "/a")}, gatewayv1.HTTPRouteMatch{Path: pathMatch(prefix, "/a/b/c"), Method: post}},
		"an expression before a prefix":          {gatewayv1.HTTPRouteMatch{Path: pathMatch(expression, "/a")}, gatewayv1.HTTPRouteMatch{Path: pathMatch(prefix, "/a/b/c"), Method: post}},
		"a longer prefix before a method":        {gatewayv1.HTTPRouteMatch{Path: pathMatch(prefix, "/ab")}, gatewayv1.HTTPRouteMatch{Path: pathMatch(prefix, "/a"), Method: post}},
		"a method before two headers":            {gatewayv1.HTTPRouteMatch{Method: post}, gatewayv1.HTTPRouteMatch{Headers: headers("a", "b"), QueryParams: queries("a", "b")}},
		"two headers before one, and queries":    {gatewayv1.HTTPRouteMatch{Headers: headers("a", "b")}, gatewayv1.HTTPRouteMatch{Headers: headers("a"), QueryParams: queries("a", "b")}},
		"two query parameters before one":        {gatewayv1.HTTPRouteMatch{QueryParams: queries("a", "b")}, gatewayv1.HTTPRouteMatch{QueryParams: queries("a")}},
		"different headers, not one name twice":  {gatewayv1.HTTPRouteMatch{Headers: headers("a", "b")}, gatewayv1.HTTPRouteMatch{Headers: headers("a", "A", "a")}},
		"different queries, not one name twice":  {gatewayv1.HTTPRouteMatch{QueryParams: queries("a", "A")}, gatewayv1.HTTPRouteMatch{QueryParams: queries("a", "a", "a")}},
		"one query parameter before every match": {gatewayv1.HTTPRouteMatch{QueryParams: queries("a")}, gatewayv1.HTTPRouteMatch{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			s.HTTPRoutes = []*gatewayv1.HTTPRoute{
				httpRoute(routeMeta("b", time.Hour), row.first), httpRoute(routeMeta("a", 2*time.Hour), row.second),
			}
			if diff := gocmp.Diff([]string{"b00", "a00"}, order(t, s)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// "If ties still exist across multiple Routes, matching precedence MUST be determined in
// order of the following criteria, continuing on ties: The oldest Route based on creation
// timestamp. The Route appearing first in alphabetical order by "{namespace}/{name}". If
// ties still exist within an HTTPRoute, matching precedence MUST be granted to the FIRST
// matching rule (in list order)". (HTTPRouteRule.Matches)
func TestEqualMatchesAreOrderedByRoute(t *testing.T) {
	s := routesSnapshot()
	every := gatewayv1.HTTPRouteMatch{}
	old := httpRoute(routeMeta("z", 2*time.Hour), every, every)
	old.Spec.Rules = append(old.Spec.Rules, old.Spec.Rules[0])
	s.HTTPRoutes = []*gatewayv1.HTTPRoute{httpRoute(routeMeta("b", time.Hour), every), httpRoute(routeMeta("a", time.Hour), every), old}
	if diff := gocmp.Diff([]string{"z00", "z01", "z10", "z11", "a00", "b00"}, order(t, s)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// GatewayRouteHostnameIntersectionPrecedence: the hostname in the route decides
// before every match.
func TestHostnamesAreOrderedBeforeMatches(t *testing.T) {
	for name, row := range map[string]struct{ first, second gatewayv1.Hostname }{
		"an exact name before a wildcard":    {"a.example.com", "*.example.com"},
		"a longer name before a shorter":     {"long.example.com", "a.example.com"},
		"a longer wildcard before a shorter": {"*.b.example.com", "*.example.com"},
		"a wildcard before every hostname":   {"*.example.com", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			first := httpRoute(routeMeta("b", time.Hour), gatewayv1.HTTPRouteMatch{})
			second := httpRoute(routeMeta("a", 2*time.Hour), gatewayv1.HTTPRouteMatch{Path: pathMatch(gatewayv1.PathMatchExact, "/a"), Headers: headers("a")})
			first.Spec.Hostnames = []gatewayv1.Hostname{row.first}
			if row.second != "" {
				second.Spec.Hostnames = []gatewayv1.Hostname{row.second}
			}
			s.HTTPRoutes = []*gatewayv1.HTTPRoute{second, first}
			if diff := gocmp.Diff([]string{"b00", "a00"}, order(t, s)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// "Precedence MUST be given to the rule with the largest number of: [...] Characters
// in a matching service. Characters in a matching method. Header matches."
// (GRPCRouteRule.Matches)
func TestGRPCMatchesAreOrderedAsTheAPIRequires(t *testing.T) {
	method := func(kind gatewayv1.GRPCMethodMatchType, service, method string) *gatewayv1.GRPCMethodMatch {
		m := &gatewayv1.GRPCMethodMatch{Type: &kind}
		if service != "" {
			m.Service = &service
		}
		if method != "" {
			m.Method = &method
		}
		return m
	}
	metadata := func(names ...gatewayv1.GRPCHeaderName) []gatewayv1.GRPCHeaderMatch {
		var all []gatewayv1.GRPCHeaderMatch
		for _, name := range names {
			all = append(all, gatewayv1.GRPCHeaderMatch{Name: name, Value: "x"})
		}
		return all
	}
	exact, expression := gatewayv1.GRPCMethodMatchExact, gatewayv1.GRPCMethodMatchRegularExpression
	for name, row := range map[string]struct{ first, second gatewayv1.GRPCRouteMatch }{
		"a longer service before a longer method":   {gatewayv1.GRPCRouteMatch{Method: method(exact, "abc", "d")}, gatewayv1.GRPCRouteMatch{Method: method(exact, "ab", "defg")}},
		"a longer method before headers":            {gatewayv1.GRPCRouteMatch{Method: method(exact, "a", "bc")}, gatewayv1.GRPCRouteMatch{Method: method(exact, "a", "b"), Headers: metadata("a", "b")}},
		"a service before a method alone":           {gatewayv1.GRPCRouteMatch{Method: method(exact, "a", "")}, gatewayv1.GRPCRouteMatch{Method: method(exact, "", "bcd"), Headers: metadata("a")}},
		"characters before an expression":           {gatewayv1.GRPCRouteMatch{Method: method(exact, "a", "")}, gatewayv1.GRPCRouteMatch{Method: method(expression, "abc.*", "def"), Headers: metadata("a")}},
		"headers before an expression without them": {gatewayv1.GRPCRouteMatch{Headers: metadata("a")}, gatewayv1.GRPCRouteMatch{Method: method(expression, "abc.*", "def")}},
		"two headers before one":                    {gatewayv1.GRPCRouteMatch{Headers: metadata("a", "b")}, gatewayv1.GRPCRouteMatch{Headers: metadata("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			for i, match := range []gatewayv1.GRPCRouteMatch{row.first, row.second} {
				s.GRPCRoutes = append(s.GRPCRoutes, &gatewayv1.GRPCRoute{
					ObjectMeta: routeMeta([]string{"b", "a"}[i], time.Duration(i+1)*time.Hour),
					Spec:       gatewayv1.GRPCRouteSpec{CommonRouteSpec: toShared, Rules: []gatewayv1.GRPCRouteRule{{Matches: []gatewayv1.GRPCRouteMatch{match}}}},
				})
			}
			if diff := gocmp.Diff([]string{"b00", "a00"}, order(t, s)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}
