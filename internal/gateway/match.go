package gateway

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// ruleMatch is a rule's match that the data plane can express.
type ruleMatch struct {
	rule, match int
	// instructions is the size of all regular expressions in the match.
	instructions int
	// cost is how many rules each entry with the match counts as.
	cost int
	// toHTTPS reports whether the rule only redirects to https.
	toHTTPS bool
	routing.Match
}

// match returns a route match in the form of the routing table, or the fields that the
// data plane cannot express. A match with such fields is omitted.
func (t translator) match(route *Route, rule, index int) (ruleMatch, []string) {
	match, call := matchesOf(&route.Rules[rule])[index], route.call(rule, index)
	var unsupported []string
	path, size, err := t.path(match.Path, call)
	if err != nil {
		unsupported = append(unsupported, err.Error())
	}
	if unsupported = append(unsupported, t.capabilities.Match(match)...); len(unsupported) > 0 {
		return ruleMatch{}, unsupported
	}
	m := ruleMatch{rule: rule, match: index, instructions: size, toHTTPS: isHTTPSRedirect(&route.Rules[rule])}
	m.Path, m.Method, m.Call = path, string(ptr.Deref(match.Method, "")), call
	for _, h := range match.Headers {
		isExpression := ptr.Deref(h.Type, gatewayv1.HeaderMatchExact) == gatewayv1.HeaderMatchRegularExpression
		if slices.ContainsFunc(m.Headers, func(other routing.ValueMatch) bool { return strings.EqualFold(other.Name, string(h.Name)) }) {
			continue // "Subsequent entries with an equivalent header name MUST be ignored." (HTTPHeaderMatch.Name)
		}
		value, err := t.value(&m, string(h.Name), h.Value, isExpression)
		if err != nil {
			unsupported = append(unsupported, fmt.Sprintf("header %s: %v", h.Name, err))
		}
		m.Headers = append(m.Headers, value)
	}
	for _, q := range match.QueryParams {
		isExpression := ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact) == gatewayv1.QueryParamMatchRegularExpression
		if slices.ContainsFunc(m.Query, func(other routing.ValueMatch) bool { return other.Name == string(q.Name) }) {
			continue // the same rule (HTTPQueryParamMatch.Name)
		}
		value, err := t.value(&m, string(q.Name), q.Value, isExpression)
		if err != nil {
			unsupported = append(unsupported, fmt.Sprintf("query parameter %s: %v", q.Name, err))
		}
		m.Query = append(m.Query, value)
	}
	return m, unsupported
}

// envoySupports reports whether Envoy would support a match that ingress rules do not.
func (t translator) envoySupports(route *Route, rule, index int) bool {
	if t.envoy == nil {
		return false
	}
	withEnvoy := translator{capabilities: *t.envoy, expressions: expressions{refused: t.expressions.refused, unsupported: t.envoy.Expression}}
	_, fields := withEnvoy.match(route, rule, index)
	return len(fields) == 0
}

// value translates the condition for a header or a query parameter, and adds its
// expression size to the match.
func (t translator) value(m *ruleMatch, name, value string, isExpression bool) (routing.ValueMatch, error) {
	if isExpression {
		enclosed, size, err := t.expressions.translate(value)
		if err != nil {
			return routing.ValueMatch{}, err
		}
		value = enclosed
		m.instructions += size
	}
	return routing.ValueMatch{Name: name, Value: value, Expression: isExpression}, nil
}

// path translates an HTTPRoute's path match, or a GRPCRoute's method match. It returns
// the expression size, or an error that names the value that the data plane cannot
// express.
func (t translator) path(match *gatewayv1.HTTPPathMatch, call *routing.Call) (routing.Path, int, error) {
	if call != nil {
		return t.callPath(call)
	}
	// The CRD defaults the path match to PathPrefix "/".
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if match != nil {
		kind, value = ptr.Deref(match.Type, kind), ptr.Deref(match.Value, value)
	}
	switch kind {
	case gatewayv1.PathMatchExact:
		return t.literalPath(routing.PathExact, value)
	case gatewayv1.PathMatchPathPrefix:
		// "When specified, a trailing `/` is ignored." (PathMatchPathPrefix) The data
		// plane's path can end with a slash although the value does not: "/a/%2e" is
		// "/a/".
		path, size, err := t.literalPath(routing.PathPrefix, value)
		path.Value = strings.TrimRight(path.Value, "/")
		return path, size, err
	case gatewayv1.PathMatchRegularExpression:
		return t.expressions.path("path", value)
	default:
		return routing.Path{}, 0, fmt.Errorf("path type %s", kind)
	}
}

func (t translator) literalPath(kind routing.PathKind, value string) (routing.Path, int, error) {
	path, err := t.capabilities.Path(value)
	return routing.Path{Kind: kind, Value: path}, 0, err
}

// path translates an expression in the field.
func (e expressions) path(field, value string) (routing.Path, int, error) {
	enclosed, size, err := e.translate(value)
	if err != nil {
		return routing.Path{}, 0, fmt.Errorf("%s: %w", field, err)
	}
	return routing.Path{Kind: routing.PathExpression, Value: enclosed}, size, nil
}

// callPath translates a gRPC method match to a match for the path /<service>/<method>:
// "Value of the service to match against. If left empty or omitted, will match any
// service." The same applies to the method. (GRPCMethodMatch)
func (t translator) callPath(call *routing.Call) (routing.Path, int, error) {
	service, method := call.Service, call.Method
	switch {
	case service == "" && method == "":
		return routing.Path{}, 0, nil
	case call.Expression:
		return t.callExpression(service, method)
	case method == "":
		return t.literalPath(routing.PathPrefix, "/"+service)
	case service == "":
		// The GatewayClass refuses expressions in routes, but this expression comes from
		// the controller.
		return expressions{}.path("method", "/[^/]+/(?:"+regexp.QuoteMeta(method)+")")
	default:
		return t.literalPath(routing.PathExact, "/"+service+"/"+method)
	}
}

// callExpression joins the expressions for the service and the method.
func (t translator) callExpression(service, method string) (routing.Path, int, error) {
	parts := [2]string{service, method}
	for i, part := range parts {
		if part == "" {
			parts[i] = "[^/]+"
			continue
		}
		path, _, err := t.expressions.path([2]string{"service", "method"}[i], part)
		if err != nil {
			return routing.Path{}, 0, err
		}
		parts[i] = path.Value
	}
	return t.expressions.path("method", "/"+parts[0]+"/"+parts[1])
}
