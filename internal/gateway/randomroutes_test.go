package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Names and values in matches and requests are few, so that many requests have several
// matches. Most expressions are valid.
var (
	randomHeaderNames      = []string{"version", "Version", "VERSION", "x-tenant", "X-Tenant", "canary"}
	randomParameterNames   = []string{"debug", "Debug", "page"}
	randomValues           = []string{"1", "2"}
	randomValueExpressions = []string{"1", "[12]", "1|12", "(1|2)?", ".*", "[0-9]+", ".", "2.*", "^2$", "("}
	randomServices         = []string{"", "shop.Cart", "shop.CartItems", "Greeter"}
	randomCalls            = []string{"", "Get", "List", "GetAll"}
	randomCallExpressions  = []string{"", ".*", "shop[.].*", "Get|GetAll", "G.*", "("}
)

// addGRPCRoutes adds up to n GRPCRoutes.
func (d *randomizer) addGRPCRoutes(n int) {
	for i := range d.IntN(n + 1) {
		r := &gatewayv1.GRPCRoute{ObjectMeta: d.meta(pick(d, randomNamespaces...), fmt.Sprintf("calls-%d", i))}
		r.Spec.CommonRouteSpec, r.Spec.Hostnames = d.parents(), d.routeHostnames()
		for rule := range 1 + d.IntN(3) {
			r.Spec.Rules = append(r.Spec.Rules, d.grpcRule(types.NamespacedName{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d", r.Name, rule)}))
		}
		d.snapshot.GRPCRoutes = append(d.snapshot.GRPCRoutes, r)
	}
}

func (d *randomizer) grpcRule(service types.NamespacedName) gatewayv1.GRPCRouteRule {
	var rule gatewayv1.GRPCRouteRule
	for d.chance(60) || len(rule.Matches) == 0 && d.chance(90) {
		match := gatewayv1.GRPCRouteMatch{}
		if d.chance(80) {
			match.Method = d.call()
		}
		for _, h := range d.headerMatches() {
			match.Headers = append(match.Headers, gatewayv1.GRPCHeaderMatch{
				Type: (*gatewayv1.GRPCHeaderMatchType)(h.Type), Name: gatewayv1.GRPCHeaderName(h.Name), Value: h.Value,
			})
		}
		rule.Matches = append(rule.Matches, match)
	}
	if d.chance(5) {
		rule.Filters = []gatewayv1.GRPCRouteFilter{{Type: gatewayv1.GRPCRouteFilterExtensionRef, ExtensionRef: &gatewayv1.LocalObjectReference{}}}
	}
	for d.chance(40) || len(rule.BackendRefs) == 0 && d.chance(95) {
		ref := d.backend(service, 70)
		ref.Filters = nil
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.GRPCBackendRef{BackendRef: ref.BackendRef})
		service.Name += "x"
	}
	return rule
}

func (d *randomizer) call() *gatewayv1.GRPCMethodMatch {
	kind, service, method := gatewayv1.GRPCMethodMatchExact, pick(d, randomServices...), pick(d, randomCalls...)
	if d.chance(25) {
		kind, service, method = gatewayv1.GRPCMethodMatchRegularExpression, pick(d, randomCallExpressions...), pick(d, randomCallExpressions...)
	}
	return &gatewayv1.GRPCMethodMatch{Type: &kind, Service: &service, Method: &method}
}

// extendMatch adds a method, headers and query parameters to a match. Many matches
// have every path, so that the other parts decide.
func (d *randomizer) extendMatch(match gatewayv1.HTTPRouteMatch) gatewayv1.HTTPRouteMatch {
	if d.chance(40) {
		match.Path = &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new("/")}
	}
	if d.chance(30) {
		match.Method = new(pick(d, gatewayv1.HTTPMethodGet, gatewayv1.HTTPMethodPost))
	}
	match.Headers = d.headerMatches()
	for d.chance(35) {
		name := gatewayv1.HTTPHeaderName(pick(d, randomParameterNames...))
		if slices.ContainsFunc(match.QueryParams, func(q gatewayv1.HTTPQueryParamMatch) bool { return q.Name == name }) {
			break // the CRD rejects a repeated name
		}
		value, isExpression := d.value()
		kind := gatewayv1.QueryParamMatchExact
		if isExpression {
			kind = gatewayv1.QueryParamMatchRegularExpression
		}
		match.QueryParams = append(match.QueryParams, gatewayv1.HTTPQueryParamMatch{Type: &kind, Name: name, Value: value})
	}
	return match
}

// headerMatches returns matches for headers, including the same name in different
// letter case.
func (d *randomizer) headerMatches() []gatewayv1.HTTPHeaderMatch {
	var headers []gatewayv1.HTTPHeaderMatch
	for d.chance(40) {
		name := gatewayv1.HTTPHeaderName(pick(d, randomHeaderNames...))
		if slices.ContainsFunc(headers, func(h gatewayv1.HTTPHeaderMatch) bool { return h.Name == name }) {
			break // the CRD rejects a repeated name
		}
		value, isExpression := d.value()
		kind := gatewayv1.HeaderMatchExact
		if isExpression {
			kind = gatewayv1.HeaderMatchRegularExpression
		}
		headers = append(headers, gatewayv1.HTTPHeaderMatch{Type: &kind, Name: name, Value: value})
	}
	return headers
}

func (d *randomizer) value() (value string, isExpression bool) {
	if d.chance(30) {
		return pick(d, randomValueExpressions...), true
	}
	return pick(d, randomValues...), false
}

// filters returns no filter or one filter of any type.
func (d *randomizer) filters(service types.NamespacedName) []gatewayv1.HTTPRouteFilter {
	changes := &gatewayv1.HTTPHeaderFilter{Remove: []string{"X-Secret"}}
	var f gatewayv1.HTTPRouteFilter
	switch d.IntN(14) {
	case 0:
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: changes}
	case 1:
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: changes}
	case 2, 3:
		redirect := &gatewayv1.HTTPRequestRedirectFilter{
			Scheme: pick(d, nil, new("https"), new("https"), new("http")), StatusCode: pick(d, nil, new(301), new(308)),
			Port: pick(d, nil, nil, nil, new(gatewayv1.PortNumber(443)), new(gatewayv1.PortNumber(80))),
		}
		if d.chance(20) {
			redirect.Hostname = new(gatewayv1.PreciseHostname("to.example.com"))
		}
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: redirect}
	case 4:
		rewrite := &gatewayv1.HTTPURLRewriteFilter{Hostname: new(gatewayv1.PreciseHostname("rewritten.example.com"))}
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: rewrite}
	case 5:
		mirror := &gatewayv1.HTTPRequestMirrorFilter{BackendRef: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service.Name), Port: new(gatewayv1.PortNumber(8080))}}
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: mirror}
	case 6:
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterCORS, CORS: &gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{"*"}}}
	case 7:
		f = gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterExtensionRef, ExtensionRef: &gatewayv1.LocalObjectReference{Name: "extension"}}
	default:
		return nil
	}
	return []gatewayv1.HTTPRouteFilter{f}
}

// randomRequests returns requests that match hostnames and matches in the snapshot,
// and similar requests that do not match. When everything is set, they have a
// method, headers and a query.
func (d *randomizer) randomRequests(s *gateway.Snapshot, n int) []routing.Request {
	hosts, paths := hostsAround(s), pathsAround(s)
	requests := make([]routing.Request, n)
	for i := range requests {
		requests[i] = routing.Request{Scheme: pick(d, "", routing.SchemeHTTP), Host: pick(d, hosts...), Path: pick(d, paths...)}
		if d.everything {
			d.extendRequest(&requests[i], len(s.GRPCRoutes) > 0)
		}
	}
	return requests
}

func (d *randomizer) extendRequest(r *routing.Request, hasCalls bool) {
	if hasCalls && d.chance(50) {
		r.Path = "/" + pick(d, randomServices[1:]...) + "/" + pick(d, randomCalls[1:]...)
	}
	r.Method = pick(d, "", "GET", "POST", "PUT")
	r.Headers = map[string][]string{}
	query := url.Values{}
	for _, name := range randomHeaderNames {
		for d.chance(50) {
			name := http.CanonicalHeaderKey(name)
			r.Headers[name] = append(r.Headers[name], pick(d, randomValues...))
		}
	}
	for _, name := range randomParameterNames {
		for d.chance(60) {
			query.Add(name, pick(d, randomValues...))
		}
	}
	r.Query = query.Encode()
}
