package gateway_test

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// specRoute is an HTTPRoute or a GRPCRoute.
type specRoute struct {
	metav1.ObjectMeta
	kind       string
	parentRefs []gatewayv1.ParentReference
	hostnames  []string // an empty hostname for a route without hostnames
	rules      []specRule
}

// specRule is a route rule. A rule without matches has the default match.
type specRule struct {
	matches []specMatch
	gatewayv1.HTTPRouteRule
}

// specMatch is an HTTPRoute match, or the headers and the call from a GRPCRoute match.
// The call is nil for an HTTPRoute, and empty for every call.
type specMatch struct {
	gatewayv1.HTTPRouteMatch
	call *gatewayv1.GRPCMethodMatch
}

// specRoutes returns the routes from the oldest to the youngest, then by
// "namespace/name", then by kind.
func specRoutes(s *gateway.Snapshot) []*specRoute {
	var routes []*specRoute
	for _, route := range s.HTTPRoutes {
		routes = append(routes, specHTTPRoute(route))
	}
	for _, route := range s.GRPCRoutes {
		routes = append(routes, specGRPCRoute(route))
	}
	slices.SortFunc(routes, compareRouteAge)
	return routes
}

func compareRouteAge(a, b *specRoute) int {
	return cmp.Or(
		byAge(a.CreationTimestamp, b.CreationTimestamp),
		strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name),
		strings.Compare(a.kind, b.kind),
	)
}

func specHTTPRoute(route *gatewayv1.HTTPRoute) *specRoute {
	r := &specRoute{route.ObjectMeta, "HTTPRoute", route.Spec.ParentRefs, writtenHostnames(route.Spec.Hostnames), nil}
	for _, rule := range route.Spec.Rules {
		converted := specRule{HTTPRouteRule: rule}
		for _, match := range rule.Matches {
			converted.matches = append(converted.matches, specMatch{match, nil})
		}
		if len(rule.Matches) == 0 {
			converted.matches = []specMatch{{}}
		}
		r.rules = append(r.rules, converted)
	}
	return r
}

func specGRPCRoute(route *gatewayv1.GRPCRoute) *specRoute {
	r := &specRoute{route.ObjectMeta, "GRPCRoute", route.Spec.ParentRefs, writtenHostnames(route.Spec.Hostnames), nil}
	for _, rule := range route.Spec.Rules {
		var converted specRule
		for _, f := range rule.Filters {
			converted.Filters = append(converted.Filters, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterType(f.Type)})
		}
		for _, ref := range rule.BackendRefs {
			converted.BackendRefs = append(converted.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: ref.BackendRef})
		}
		for _, match := range rule.Matches {
			m := specMatch{call: match.Method}
			if m.call == nil {
				m.call = &gatewayv1.GRPCMethodMatch{}
			}
			for _, h := range match.Headers {
				m.Headers = append(m.Headers, gatewayv1.HTTPHeaderMatch{Type: (*gatewayv1.HeaderMatchType)(h.Type), Name: gatewayv1.HTTPHeaderName(h.Name), Value: h.Value})
			}
			converted.matches = append(converted.matches, m)
		}
		if len(rule.Matches) == 0 {
			converted.matches = []specMatch{{call: &gatewayv1.GRPCMethodMatch{}}}
		}
		r.rules = append(r.rules, converted)
	}
	return r
}

func writtenHostnames(hostnames []gatewayv1.Hostname) []string {
	if len(hostnames) == 0 {
		return []string{""}
	}
	var written []string
	for _, hostname := range hostnames {
		written = append(written, string(hostname))
	}
	return written
}

// answer returns the service in the ingress rule that answers a request. The host must be
// in lower case, and the path decoded.
func (o *oracle) answer(host, path string) string {
	best := o.best(routing.Request{Host: host, Path: path})
	if best == nil {
		return answerNotFound
	}
	action := o.action(best.route, best.route.rules[best.rule])
	if action.status != 0 {
		return fmt.Sprintf("http_status:%d", action.status)
	}
	return strings.TrimPrefix(action.backends[0], "1 to ")
}

// describeAnswer names the match that answers the request, and its action.
func (o *oracle) describeAnswer(r routing.Request) string {
	best := o.best(r)
	if best == nil {
		return "no match"
	}
	return best.String() + ": " + o.action(best.route, best.route.rules[best.rule]).String()
}

// candidate is a match in a route rule that matches the request.
type candidate struct {
	route       *specRoute
	rule, match int
	precedence  []int // the larger number at the first difference takes precedence
	via         []*claim
}

// String names the match.
func (c *candidate) String() string {
	return fmt.Sprintf("%s %s/%s, rule %d, match %d", c.route.kind, c.route.Namespace, c.route.Name, c.rule, c.match)
}

func (c *candidate) before(other *candidate) bool {
	return cmp.Or(
		-slices.Compare(c.precedence, other.precedence),
		compareRouteAge(c.route, other.route),
		cmp.Compare(c.rule, other.rule),
		cmp.Compare(c.match, other.match),
	) < 0
}

// candidates returns the route's matches that match the request under one of its
// hostnames.
func (o *oracle) candidates(route *specRoute, hostnames []string, r routing.Request) []*candidate {
	hostname := -1
	for _, written := range hostnames {
		if hostMatches(written, r.Host) {
			hostname = max(hostname, specificity(written))
		}
	}
	if hostname < 0 {
		return nil
	}
	var found []*candidate
	for i, rule := range route.rules {
		if !o.everything && isSpecRedirectToHTTPS(rule) {
			continue
		}
		for j, match := range rule.matches {
			if o.isMatchSupported(match) && o.matches(match, r) {
				found = append(found, &candidate{route: route, rule: i, match: j, precedence: append([]int{hostname}, o.precedence(match)...)})
			}
		}
	}
	return found
}

// precedence returns the numbers that decide after the hostname. For a GRPCRoute, they
// are the lengths of service and method. For an HTTPRoute, they are the path kind, the
// prefix length, and whether the match has a method. For both, the counts of headers and
// query parameters with different names follow. The API does not define an order between
// an HTTPRoute and a GRPCRoute that share a hostname through different ports. The other
// kind's numbers are then 0.
func (o *oracle) precedence(m specMatch) []int {
	service, method, path, prefix, verb := 0, 0, 0, 0, 0
	switch kind, value := pathOf(m.HTTPRouteMatch); {
	case m.call != nil && m.call.Type != nil && *m.call.Type == gatewayv1.GRPCMethodMatchRegularExpression:
	case m.call != nil:
		service, method = len(text(m.call.Service)), len(text(m.call.Method))
	case kind == gatewayv1.PathMatchExact:
		path = 2
	case kind == gatewayv1.PathMatchRegularExpression:
		path = 1
	default:
		literal, _ := o.literal(value)
		prefix = len(strings.TrimSuffix(literal, "/"))
	}
	if m.Method != nil {
		verb = 1
	}
	return []int{service, method, path, prefix, verb, len(firstHeaders(m.Headers)), len(m.QueryParams)}
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// firstHeaders returns the first match for each header name, in lower case.
func firstHeaders(headers []gatewayv1.HTTPHeaderMatch) map[string]gatewayv1.HTTPHeaderMatch {
	first := map[string]gatewayv1.HTTPHeaderMatch{}
	for _, h := range headers {
		if _, repeated := first[strings.ToLower(string(h.Name))]; !repeated {
			first[strings.ToLower(string(h.Name))] = h
		}
	}
	return first
}

// matches reports whether every part matches the request.
func (o *oracle) matches(m specMatch, r routing.Request) bool {
	if m.Method != nil && string(*m.Method) != cmp.Or(r.Method, "GET") {
		return false
	}
	for name, h := range firstHeaders(m.Headers) {
		if !o.headerMatches(name, h, r) {
			return false
		}
	}
	query := map[string][]string{} // not decoded
	for part := range strings.SplitSeq(r.Query, "&") {
		name, value, _ := strings.Cut(part, "=")
		query[name] = append(query[name], value)
	}
	for _, q := range m.QueryParams {
		values := query[string(q.Name)]
		if len(values) == 0 || !o.valueMatches(q.Type != nil && *q.Type == gatewayv1.QueryParamMatchRegularExpression, q.Value, values[0]) {
			return false
		}
	}
	if m.call != nil {
		return o.callMatches(m.call, r.Path)
	}
	return o.pathMatches(m.HTTPRouteMatch, r.Path)
}

// headerMatches reports whether a header line has the value.
func (o *oracle) headerMatches(name string, h gatewayv1.HTTPHeaderMatch, r routing.Request) bool {
	for header, values := range r.Headers {
		if strings.ToLower(header) == name {
			return slices.ContainsFunc(values, func(value string) bool {
				return o.valueMatches(h.Type != nil && *h.Type == gatewayv1.HeaderMatchRegularExpression, h.Value, value)
			})
		}
	}
	return false
}

func (o *oracle) valueMatches(isExpression bool, want, value string) bool {
	if isExpression {
		return o.matchesWhole(want, value)
	}
	return want == value
}

// callMatches compares a gRPC method match with a call's path /<service>/<method>. An
// empty service or method matches every one. The specification does not define paths with
// more slashes, so any slash can separate service and method.
func (o *oracle) callMatches(call *gatewayv1.GRPCMethodMatch, path string) bool {
	service, method := text(call.Service), text(call.Method)
	if service == "" && method == "" {
		return true
	}
	isExpression := call.Type != nil && *call.Type == gatewayv1.GRPCMethodMatchRegularExpression
	matches := func(want, part string) bool {
		if want == "" {
			return part != "" && !strings.Contains(part, "/")
		}
		return o.valueMatches(isExpression, want, part)
	}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' && matches(service, path[1:i]) && (matches(method, path[i+1:]) || method == "" && !isExpression) {
			return true
		}
	}
	return false
}

func pathOf(match gatewayv1.HTTPRouteMatch) (gatewayv1.PathMatchType, string) {
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if match.Path != nil && match.Path.Type != nil {
		kind = *match.Path.Type
	}
	if match.Path != nil && match.Path.Value != nil {
		value = *match.Path.Value
	}
	return kind, value
}

// literal returns a path in the form in which the data plane compares paths: decoded, or
// for Envoy with all escapes in upper case except escaped unreserved characters.
func (o *oracle) literal(path string) (string, error) {
	decoded, err := url.PathUnescape(path)
	if !o.envoy {
		return decoded, err
	}
	return pathEscape.ReplaceAllStringFunc(path, func(escape string) string {
		if c, _ := url.PathUnescape(escape); unreserved.MatchString(c) {
			return c
		}
		return strings.ToUpper(escape)
	}), err
}

var (
	pathEscape = regexp.MustCompile("%[0-9A-Fa-f]{2}")
	unreserved = regexp.MustCompile("^[-A-Za-z0-9._~]$")
)

// pathMatches compares a match with the path in the form that the data plane compares. A
// prefix consists of whole path elements, and its trailing slash is ignored.
func (o *oracle) pathMatches(match gatewayv1.HTTPRouteMatch, path string) bool {
	pathType, value := pathOf(match)
	if pathType == gatewayv1.PathMatchRegularExpression {
		return o.matchesWhole(value, path)
	}
	literal, _ := o.literal(value)
	if pathType == gatewayv1.PathMatchExact {
		return literal == path
	}
	prefix := strings.TrimSuffix(literal, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// compile returns the expression, or nil when it does not compile.
func (o *oracle) compile(expression string) *regexp.Regexp {
	compiled, known := o.compiled[expression]
	if !known {
		compiled, _ = regexp.Compile(expression)
		o.compiled[expression] = compiled
	}
	return compiled
}

// matchesWhole reports whether the expression matches the whole value. It uses the
// longest match, because the first alternative that matches can be too short.
func (o *oracle) matchesWhole(expression, value string) bool {
	compiled := o.compile(expression)
	if compiled == nil {
		return false
	}
	compiled.Longest()
	location := compiled.FindStringIndex(value)
	return location != nil && location[0] == 0 && location[1] == len(value)
}

// isMatchSupported reports whether the data plane can express the match. Every
// expression must be valid. An ingress rule has only a path, which is valid UTF-8.
func (o *oracle) isMatchSupported(m specMatch) bool {
	if slices.ContainsFunc(m.expressions(), func(expression string) bool { return o.compile(expression) == nil }) {
		return false
	}
	if o.envoy && m.call == nil && slices.Contains(m.expressions(), "") {
		return false
	}
	pathType, value := pathOf(m.HTTPRouteMatch)
	if literal, err := o.literal(value); pathType != gatewayv1.PathMatchRegularExpression && (err != nil || !o.everything && !utf8.ValidString(literal)) {
		return false
	}
	return o.everything || len(m.Headers) == 0 && len(m.QueryParams) == 0 && m.Method == nil
}

// expressions returns the expressions in the match that have an effect.
func (m specMatch) expressions() []string {
	var expressions []string
	if m.call != nil && m.call.Type != nil && *m.call.Type == gatewayv1.GRPCMethodMatchRegularExpression {
		expressions = append(expressions, text(m.call.Service), text(m.call.Method))
	}
	for _, h := range firstHeaders(m.Headers) {
		if *h.Type == gatewayv1.HeaderMatchRegularExpression {
			expressions = append(expressions, h.Value)
		}
	}
	for _, q := range m.QueryParams {
		if *q.Type == gatewayv1.QueryParamMatchRegularExpression {
			expressions = append(expressions, q.Value)
		}
	}
	if pathType, value := pathOf(m.HTTPRouteMatch); pathType == gatewayv1.PathMatchRegularExpression {
		expressions = append(expressions, value)
	}
	return expressions
}

// specAction is what happens to a request: a status, a redirect with its status, or
// backends with weights.
type specAction struct {
	status, redirect int
	backends         []string
}

func (a specAction) String() string {
	switch {
	case a.status != 0:
		return fmt.Sprintf("status %d", a.status)
	case a.redirect != 0:
		return fmt.Sprintf("redirect %d", a.redirect)
	default:
		return strings.Join(a.backends, ", ")
	}
}

// action returns what a rule does: an error when the action is not supported, or when no
// backend resolves.
func (o *oracle) action(route *specRoute, rule specRule) specAction {
	failed := specAction{status: 500}
	if route.kind == "GRPCRoute" && o.everything {
		failed.status = 503
	}
	if !o.isActionSupported(rule) {
		return failed
	}
	if status := specRedirect(rule); status != 0 {
		return specAction{redirect: status}
	}
	var backends []string
	resolved := false
	for _, ref := range weightedBackends(rule) {
		service, ok := o.backend(ref, route)
		if !ok {
			service = fmt.Sprintf("status %d", failed.status)
		}
		weight := int32(1)
		if ref.Weight != nil {
			weight = *ref.Weight
		}
		backends = append(backends, fmt.Sprintf("%d to %s", weight, service))
		resolved = resolved || ok
	}
	if !resolved {
		return failed
	}
	return specAction{backends: backends}
}

// specRedirect returns the redirect status from a rule or its only backend, or 0.
func specRedirect(rule specRule) int {
	filters := slices.Clone(rule.Filters)
	if weighted := weightedBackends(rule); len(weighted) == 1 {
		filters = append(filters, weighted[0].Filters...)
	}
	for _, filter := range filters {
		switch {
		case filter.Type != gatewayv1.HTTPRouteFilterRequestRedirect:
		case filter.RequestRedirect.StatusCode == nil:
			return 302
		default:
			return *filter.RequestRedirect.StatusCode
		}
	}
	return 0
}

func weightedBackends(rule specRule) []gatewayv1.HTTPBackendRef {
	return slices.DeleteFunc(slices.Clone(rule.BackendRefs), func(ref gatewayv1.HTTPBackendRef) bool {
		return ref.Weight != nil && *ref.Weight == 0
	})
}

// isActionSupported reports whether the data plane can express what the rule does. An
// ingress rule only sends requests to one backend. Every data plane rejects extensions,
// CORS on a backend, and redirects on one of several backends.
func (o *oracle) isActionSupported(rule specRule) bool {
	weighted := weightedBackends(rule)
	filters := slices.Clone(rule.Filters)
	for _, ref := range weighted {
		filters = append(filters, ref.Filters...)
		if !areFiltersOfBackend(ref.Filters, len(weighted) == 1) {
			return false
		}
	}
	if rule.SessionPersistence != nil || o.envoy && !areRetriesSupported(rule.Retry) {
		return false
	}
	if o.everything {
		return !slices.ContainsFunc(filters, func(f gatewayv1.HTTPRouteFilter) bool { return f.Type == gatewayv1.HTTPRouteFilterExtensionRef })
	}
	return len(filters) == 0 && rule.Timeouts == nil && rule.Retry == nil && len(weighted) <= 1
}

// areRetriesSupported reports whether Envoy can repeat requests in the same way.
func areRetriesSupported(r *gatewayv1.HTTPRouteRetry) bool {
	return r == nil || r.Backoff == nil && (r.Attempts == nil || *r.Attempts <= 10)
}

// areFiltersOfBackend reports whether a backend can have the filters.
func areFiltersOfBackend(filters []gatewayv1.HTTPRouteFilter, isOnly bool) bool {
	return !slices.ContainsFunc(filters, func(f gatewayv1.HTTPRouteFilter) bool {
		return f.Type == gatewayv1.HTTPRouteFilterRequestRedirect && !isOnly || f.Type == gatewayv1.HTTPRouteFilterCORS
	})
}

// isRuleSupported reports whether the data plane serves the rule as written.
func (o *oracle) isRuleSupported(rule specRule) bool {
	return o.isActionSupported(rule) && !slices.ContainsFunc(rule.matches, func(match specMatch) bool { return !o.isMatchSupported(match) })
}

// isPartlySupported reports whether the listeners serve a rule in the route as written.
func (o *oracle) isPartlySupported(route *specRoute, listeners ...*claim) bool {
	return slices.ContainsFunc(route.rules, func(rule specRule) bool { return o.isRuleSupported(rule) && o.mayRedirect(rule, listeners) })
}

// backend returns the URL of the Service, and false when it does not resolve.
func (o *oracle) backend(ref gatewayv1.HTTPBackendRef, route *specRoute) (string, bool) {
	group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service")
	name := types.NamespacedName{Namespace: route.Namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	switch {
	case ref.Port == nil || !o.granted(route.kind, route.Namespace, string(kind), name):
		return "", false
	case group == "multicluster.x-k8s.io" && kind == "ServiceImport" && !o.snapshot.NoServiceImports:
		return o.importURL(name, *ref.Port)
	case group == "" && kind == "Service":
		return o.serviceURL(name, *ref.Port)
	default:
		return "", false
	}
}

func (o *oracle) serviceURL(name types.NamespacedName, number gatewayv1.PortNumber) (string, bool) {
	service := o.snapshot.Services.Value(name)
	if service == nil || service.Spec.Type == corev1.ServiceTypeExternalName {
		return "", false
	}
	for _, port := range service.Spec.Ports {
		if port.Port == number {
			return o.urlOf(service, port)
		}
	}
	return "", false
}

func (o *oracle) urlOf(service *corev1.Service, port corev1.ServicePort) (string, bool) {
	schemes := map[string]string{"": "http", "http": "http", "kubernetes.io/ws": "http", "https": "https", "kubernetes.io/wss": "https"}
	if o.everything {
		schemes["kubernetes.io/h2c"] = "h2c"
	}
	number, protocol := port.Port, ""
	if port.AppProtocol != nil {
		protocol = *port.AppProtocol
	}
	scheme, reachable := schemes[protocol]
	if service.Spec.ClusterIP == corev1.ClusterIPNone && !o.envoy { // Envoy follows the EndpointSlices
		reachable = reachable && port.TargetPort.Type == intstr.Int // a named port requires EndpointSlices
		number = port.TargetPort.IntVal
	}
	return fmt.Sprintf("%s://%s.%s.svc.%s:%d", scheme, service.Name, service.Namespace, randomOptions.ClusterDomain, number), reachable
}
