package gateway_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// A rule that cannot be expressed has three outcomes, each with its own wording.
func TestEachDroppedRuleOutcomeHasItsWording(t *testing.T) {
	method := gatewayv1.HTTPRouteMatch{Method: new(gatewayv1.HTTPMethodGet)}
	header := gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Name: "x", Value: "1"}}}
	path := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: new("/a")}}
	matches := func(m ...gatewayv1.HTTPRouteMatch) []gatewayv1.HTTPRouteMatch { return m }
	filters := filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: addVersion})
	for name, test := range map[string]struct {
		rule gatewayv1.HTTPRouteRule
		want string
	}{
		"a match is omitted": {
			gatewayv1.HTTPRouteRule{Matches: matches(path, header)},
			"match 1 (not supported: headers) is omitted, and its requests go to the next matching rule",
		},
		"several matches are omitted": {
			gatewayv1.HTTPRouteRule{Matches: matches(method, path, header)},
			"match 0 (not supported: method), match 2 (not supported: headers) are omitted, and their requests go to the next matching rule",
		},
		"the rule returns 500": {
			gatewayv1.HTTPRouteRule{Matches: matches(path), Filters: filters},
			"the rule returns 500 (not supported: filter RequestHeaderModifier)",
		},
		"the rule is left out": {
			gatewayv1.HTTPRouteRule{Matches: matches(header, method)},
			"the rule is left out because of match 0 (not supported: headers), match 1 (not supported: method), and its requests go to the next matching rule",
		},
		"a match is omitted and the rule returns 500": {
			gatewayv1.HTTPRouteRule{Matches: matches(path, header), Filters: filters},
			"match 1 (not supported: headers) is omitted, and its requests go to the next matching rule; for the other matches, the rule returns 500 (not supported: filter RequestHeaderModifier)",
		},
		"the rule is left out and has an unsupported action": {
			gatewayv1.HTTPRouteRule{Matches: matches(header), Filters: filters},
			"the rule is left out because of match 0 (not supported: headers), and its requests go to the next matching rule; if you fix the match, the rule returns 500 (not supported: filter RequestHeaderModifier)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			route := httpRoute(routeMeta("route", time.Hour))
			test.rule.BackendRefs = webBackend()
			route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: webBackend()}, test.rule}
			s.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
			conditions := gateway.Build(s, randomOptions).Report(gateway.Outcome{}).Routes[0].Parents[0].Conditions
			if c := meta.FindStatusCondition(conditions, "PartiallyInvalid"); c == nil || c.Message != "Dropped Rule 1: "+test.want+"." {
				t.Errorf("the condition is %+v, want the message %q", c, test.want)
			}
		})
	}
}

// An unsupported kind costs the listener all its routes, so the message says which kind
// to remove.
func TestTheMessageAboutUnsupportedKindsSaysWhatToDo(t *testing.T) {
	kind := func(name string) gatewayv1.RouteGroupKind {
		return gatewayv1.RouteGroupKind{Kind: gatewayv1.Kind(name)}
	}
	other := gatewayv1.RouteGroupKind{Group: new(gatewayv1.Group("example.com")), Kind: "HTTPRoute"}
	for name, test := range map[string]struct {
		protocol gatewayv1.ProtocolType
		kinds    []gatewayv1.RouteGroupKind
		want     string
	}{
		"beside a supported kind": {"HTTP", []gatewayv1.RouteGroupKind{kind("HTTPRoute"), kind("TCPRoute")},
			"allowedRoutes.kinds lists TCPRoute, which protocol HTTP does not support, so the listener serves no routes. Remove TCPRoute from the list."},
		"several": {"HTTP", []gatewayv1.RouteGroupKind{kind("UDPRoute"), kind("HTTPRoute"), kind("TCPRoute")},
			"allowedRoutes.kinds lists UDPRoute and TCPRoute, which protocol HTTP does not support, so the listener serves no routes. Remove UDPRoute and TCPRoute from the list."},
		"a kind of another group": {"HTTPS", []gatewayv1.RouteGroupKind{other, kind("GRPCRoute")},
			"allowedRoutes.kinds lists HTTPRoute of group \"example.com\", which protocol HTTPS does not support, so the listener serves no routes. Remove HTTPRoute of group \"example.com\" from the list."},
		"alone": {"HTTP", []gatewayv1.RouteGroupKind{kind("TCPRoute")},
			"allowedRoutes.kinds lists TCPRoute, which protocol HTTP does not support, so the listener serves no routes. List HTTPRoute or GRPCRoute instead."},
		"of a protocol that is not supported": {"TCP", []gatewayv1.RouteGroupKind{kind("TCPRoute")},
			"allowedRoutes.kinds lists TCPRoute, which protocol TCP does not support, so the listener serves no routes. Use protocol HTTP or HTTPS with HTTPRoute or GRPCRoute."},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			l := &s.Gateway.Spec.Listeners[0]
			l.Protocol, l.AllowedRoutes = test.protocol, &gatewayv1.AllowedRoutes{Kinds: test.kinds}
			got := gateway.Build(s, randomOptions).Listeners[0].Unresolved
			if got == nil || got.Reason != conditions.ReasonInvalidRouteKinds || got.Message != test.want {
				t.Errorf("the problem is %+v, want InvalidRouteKinds: %s", got, test.want)
			}
		})
	}
}

// The message about a rule that ingress rules cannot express, but Envoy can, names Envoy. Other
// messages do not.
func TestMessagesNameTheDataPlaneThatSupportsARule(t *testing.T) {
	const byIngressRules, remedy = "not supported by ingress rules: ", " The platform team can set dataPlane: Envoy."
	header := func(name string) []gatewayv1.HTTPRouteMatch {
		return []gatewayv1.HTTPRouteMatch{{Headers: []gatewayv1.HTTPHeaderMatch{{Name: gatewayv1.HTTPHeaderName(name), Value: "1"}}}}
	}
	expression := func(value string) []gatewayv1.HTTPRouteMatch {
		return []gatewayv1.HTTPRouteMatch{{Path: pathMatch(gatewayv1.PathMatchRegularExpression, value)}}
	}
	timeouts := &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayv1.Duration("1s"))}
	for name, test := range map[string]struct {
		rule  gatewayv1.HTTPRouteRule
		envoy bool
	}{
		"a header":                           {gatewayv1.HTTPRouteRule{Matches: header("x")}, true},
		"a header that Envoy does not get":   {gatewayv1.HTTPRouteRule{Matches: header("x-envoy-retry-on")}, false},
		"an expression that is not valid":    {gatewayv1.HTTPRouteRule{Matches: expression("[")}, false},
		"timeouts":                           {gatewayv1.HTTPRouteRule{Timeouts: timeouts}, true},
		"a retry":                            {gatewayv1.HTTPRouteRule{Retry: &gatewayv1.HTTPRouteRetry{}}, true},
		"a retry after a time":               {gatewayv1.HTTPRouteRule{Retry: &gatewayv1.HTTPRouteRetry{Backoff: new(gatewayv1.Duration("1s"))}}, false},
		"timeouts and a session":             {gatewayv1.HTTPRouteRule{Timeouts: timeouts, SessionPersistence: &gatewayv1.SessionPersistence{}}, false},
		"a filter":                           {gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: addVersion})}, true},
		"a filter of another implementation": {gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterExtensionRef})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := routesSnapshot()
			route := httpRoute(routeMeta("route", time.Hour))
			test.rule.BackendRefs = webBackend()
			route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: webBackend()}, test.rule}
			s.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
			for plane, want := range map[v1alpha1.DataPlane]bool{v1alpha1.DataPlaneIngressRules: test.envoy, v1alpha1.DataPlaneEnvoy: false} {
				s.DataPlane = plane
				message := messageOf(gateway.Build(s, options).Report(gateway.Outcome{}).Routes[0].Parents[0].Conditions, "PartiallyInvalid")
				if plane == v1alpha1.DataPlaneIngressRules && message == "" {
					t.Error("the rule is supported")
				}
				if got := strings.Contains(message, byIngressRules); got != want || strings.HasSuffix(message, remedy) != want {
					t.Errorf("with %s, the message is %q; it must name Envoy: %t", plane, message, want)
				}
			}
		})
	}
}
