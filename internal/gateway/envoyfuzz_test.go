package gateway_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// fuzzedRoute has the route values that are texts.
type fuzzedRoute struct {
	name, value, removed, replacement, path, expression, text, origin, service string
}

// isAdmitted reports whether the API admits the values, apart from their lengths.
func (f fuzzedRoute) isAdmitted() bool {
	for _, text := range []string{f.name, f.value, f.removed, f.replacement, f.path, f.expression, f.text, f.origin, f.service} {
		if !utf8.ValidString(text) || len(text) > 1024 {
			return false
		}
	}
	return admittedName.MatchString(f.name) && admittedPath.MatchString(f.path) && !refusedPath.MatchString(f.path) &&
		admittedOrigin.MatchString(f.origin) && f.value != "" && f.text != "" && f.expression != ""
}

// The CRD patterns.
var (
	admittedName   = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$`)
	admittedPath   = regexp.MustCompile(`^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*$`)
	refusedPath    = regexp.MustCompile(`//|/\.\.?/|/\.\.?$|%2[fF]`)
	admittedOrigin = regexp.MustCompile(`(^\*$)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)`)
)

// routes returns an HTTPRoute whose rules have the values, and a GRPCRoute.
func (f fuzzedRoute) routes() (*gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute) {
	exact, prefix, expression := gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression
	headers := &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: gatewayv1.HTTPHeaderName(f.name), Value: f.value}}}
	removal := &gatewayv1.HTTPHeaderFilter{Remove: []string{f.removed}}
	full := &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &f.replacement}
	replaced := &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &f.replacement}
	cors := &gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{gatewayv1.CORSOrigin(f.origin)}, ExposeHeaders: []gatewayv1.HTTPHeaderName{gatewayv1.HTTPHeaderName(f.name)}}
	rule := func(m gatewayv1.HTTPRouteMatch, filter gatewayv1.HTTPRouteFilter) gatewayv1.HTTPRouteRule {
		r := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{m}, Filters: []gatewayv1.HTTPRouteFilter{filter}}
		if filter.RequestRedirect == nil {
			r.BackendRefs = webBackend()
		}
		return r
	}
	route := httpRoute(routeMeta("values", time.Hour))
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{
		rule(gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &exact, Value: &f.path}}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: headers}),
		rule(gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &f.path}}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: &gatewayv1.HTTPURLRewriteFilter{Path: replaced}}),
		rule(gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &expression, Value: &f.expression}}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: removal}),
		rule(gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{
			{Name: gatewayv1.HTTPHeaderName(f.name), Value: f.text}, {Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "x-expression", Value: f.expression},
		}}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: &gatewayv1.HTTPURLRewriteFilter{Path: full}}),
		rule(gatewayv1.HTTPRouteMatch{QueryParams: []gatewayv1.HTTPQueryParamMatch{
			{Name: gatewayv1.HTTPHeaderName(f.name), Value: f.text}, {Type: new(gatewayv1.QueryParamMatchRegularExpression), Name: "x-expression", Value: f.expression},
		}}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Path: full}}),
		rule(gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &f.path}, Method: new(gatewayv1.HTTPMethodGet)},
			gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Path: replaced}}),
		rule(gatewayv1.HTTPRouteMatch{}, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterCORS, CORS: cors}),
	}
	calls := &gatewayv1.GRPCRoute{ObjectMeta: routeMeta("calls", 0)}
	calls.Spec.CommonRouteSpec, calls.Spec.Hostnames = toShared, []gatewayv1.Hostname{"calls.example.com"}
	calls.Spec.Rules = []gatewayv1.GRPCRouteRule{{Matches: []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{
		Type: new(gatewayv1.GRPCMethodMatchRegularExpression), Service: &f.service, Method: &f.expression,
	}}}, BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: webBackend()[0].BackendRef}}}}
	return route, calls
}

// resources returns what Envoy gets for the routes.
func (f fuzzedRoute) resources() *envoy.Resources {
	s := routesSnapshot()
	route, calls := f.routes()
	route.Spec.Hostnames = []gatewayv1.Hostname{"values.example.com"}
	s.HTTPRoutes, s.GRPCRoutes = []*gatewayv1.HTTPRoute{route}, []*gatewayv1.GRPCRoute{calls}
	return envoy.Render(gateway.Build(s, envoyOptions()).Table)
}

// FuzzEnvoyValues checks that no text in a route makes the resources invalid: neither by
// the rules of the messages, nor by the rules that only Envoy has.
func FuzzEnvoyValues(f *testing.F) {
	f.Add("x-a", "v", "x-b", "/b", "/a", "/a.*", "1", "https://*.example.com", "shop.*")
	f.Add("Host", "%ENVIRONMENT(HOME)%", ":path", `/\1`, "/a/%2e", `\p{greek}`, "%", "*", `\x{100}`)
	f.Add("x-envoy-a", "a\r\nb: c", "", "", "/%2e%2e", `[\xf0-ñ]`, "\x00", "http://a:80", "a)|(b")
	f.Add("a", "é", "é", "/%00", "/%c3%bc", `\Qa`, "é", "https://*", `\Q`)
	f.Add("%", "%%", "Connection", "//", "/%00", `(?i)\pL{200}`, " ", "https://a:99999", `(?P<n>a)(?P<n>b)`)
	f.Fuzz(func(t *testing.T, name, value, removed, replacement, path, expression, text, origin, service string) {
		route := fuzzedRoute{name, value, removed, replacement, path, expression, text, origin, service}
		if !route.isAdmitted() {
			return
		}
		r := route.resources()
		if err := resourcesProblem(r); err != nil {
			t.Fatalf("%+v: %v", route, err)
		}
		for _, host := range slices.Concat(r.Routes[0].VirtualHosts, r.Routes[1].VirtualHosts) {
			wantSafeTexts(t, host)
		}
	})
}

// wantSafeTexts checks the texts for what Envoy's messages permit and Envoy does not.
func wantSafeTexts(t *testing.T, host *routev3.VirtualHost) {
	t.Helper()
	err := protorange.Range(host.ProtoReflect(), func(p protopath.Values) error {
		if m, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok {
			wantSafeMessage(t, m.Interface())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func wantSafeMessage(t *testing.T, m proto.Message) {
	t.Helper()
	switch m := m.(type) {
	case *matcherv3.RegexMatcher:
		if _, err := regexp.Compile(m.Regex); err != nil || isUnsupported(m.Regex) {
			t.Errorf("expression %q (%v)", m.Regex, err)
		}
	case *matcherv3.RegexMatchAndSubstitute:
		if strings.Contains(m.Substitution, `\`) {
			t.Errorf("substitution %q", m.Substitution)
		}
	case *routev3.Route:
		wantHarmlessNames(t, m.ResponseHeadersToRemove)
	case *routev3.WeightedCluster_ClusterWeight:
		wantHarmlessNames(t, append(m.RequestHeadersToRemove, m.ResponseHeadersToRemove...))
	case *corev3.HeaderValue:
		if strings.Contains(strings.ReplaceAll(m.Value, "%%", ""), "%") || controlCharacter.MatchString(m.Value) {
			t.Errorf("header %q: %q", m.Key, m.Value)
		}
		wantHarmlessNames(t, []string{m.Key})
	}
}

// isUnsupported reports whether Envoy rejects the expression, or evaluates it in another way.
func isUnsupported(expression string) bool {
	return expression == "" || unsupportedExpression.MatchString(expression) && !literalBackslash.MatchString(expression)
}

func wantHarmlessNames(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if !admittedName.MatchString(name) || framingName.MatchString(name) {
			t.Errorf("header %q is changed", name)
		}
	}
}

var (
	// unsupportedExpression matches expression parts that RE2 rejects, or compares as bytes.
	unsupportedExpression = regexp.MustCompile(`[^\x00-\x7f]|\\[pP]\{\^?[a-z]|\\x\{0*[1-9a-fA-F][0-9a-fA-F]{2}`)
	// literalBackslash matches what makes such a part harmless.
	literalBackslash = regexp.MustCompile(`\\\\|\\Q`)
	controlCharacter = regexp.MustCompile(`[\x00-\x08\x0a-\x1f\x7f]`)
	framingName      = regexp.MustCompile(`(?i)^(?::.*|host|content-length|transfer-encoding|connection|keep-alive|proxy-connection|te|trailer|upgrade|x-envoy-.*)$`)
)
