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

// ruleMatch is a match of a rule that the data plane can express.
type ruleMatch struct {
	rule, match int
	routing.Match
}

// translateMatch returns the match in the form of the routing table, or the fields
// that the data plane cannot express. A match with such fields is omitted.
func translateMatch(match gatewayv1.HTTPRouteMatch, call *routing.Call, c routing.Capabilities) (routing.Match, []string) {
	var unsupported []string
	path, err := newPath(match.Path, c)
	if err != nil {
		unsupported = append(unsupported, err.Error())
	}
	if unsupported = append(unsupported, c.Match(match)...); len(unsupported) > 0 {
		return routing.Match{}, unsupported
	}
	m := routing.Match{Path: path, Method: string(ptr.Deref(match.Method, "")), Call: call}
	for _, h := range match.Headers {
		isExpression := ptr.Deref(h.Type, gatewayv1.HeaderMatchExact) == gatewayv1.HeaderMatchRegularExpression
		if slices.ContainsFunc(m.Headers, func(other routing.ValueMatch) bool { return strings.EqualFold(other.Name, string(h.Name)) }) {
			continue // "Subsequent entries with an equivalent header name MUST be ignored." (HTTPHeaderMatch.Name)
		}
		m.Headers, err = appendValue(m.Headers, string(h.Name), h.Value, isExpression)
		if err != nil {
			unsupported = append(unsupported, fmt.Sprintf("header %s: %v", h.Name, err))
		}
	}
	for _, q := range match.QueryParams {
		isExpression := ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact) == gatewayv1.QueryParamMatchRegularExpression
		if slices.ContainsFunc(m.Query, func(other routing.ValueMatch) bool { return other.Name == string(q.Name) }) {
			continue // the same rule (HTTPQueryParamMatch.Name)
		}
		m.Query, err = appendValue(m.Query, string(q.Name), q.Value, isExpression)
		if err != nil {
			unsupported = append(unsupported, fmt.Sprintf("query parameter %s: %v", q.Name, err))
		}
	}
	return m, unsupported
}

func appendValue(values []routing.ValueMatch, name, value string, isExpression bool) ([]routing.ValueMatch, error) {
	if isExpression {
		enclosed, err := wrapInGroup(value)
		if err != nil {
			return values, err
		}
		value = enclosed
	}
	return append(values, routing.ValueMatch{Name: name, Value: value, Expression: isExpression}), nil
}

// newPath translates a path match, or returns an error that names the value that
// the data plane cannot express.
func newPath(match *gatewayv1.HTTPPathMatch, c routing.Capabilities) (routing.Path, error) {
	// The CRD defaults the path match to PathPrefix "/".
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if match != nil {
		kind, value = ptr.Deref(match.Type, kind), ptr.Deref(match.Value, value)
	}
	switch kind {
	case gatewayv1.PathMatchExact:
		path, err := c.Path(value)
		return routing.Path{Kind: routing.PathExact, Value: path}, err
	case gatewayv1.PathMatchPathPrefix:
		// "When specified, a trailing `/` is ignored." (PathMatchPathPrefix)
		path, err := c.Path(strings.TrimRight(value, "/"))
		return routing.Path{Kind: routing.PathPrefix, Value: path}, err
	case gatewayv1.PathMatchRegularExpression:
		enclosed, err := wrapInGroup(value)
		return routing.Path{Kind: routing.PathExpression, Value: enclosed}, err
	default:
		return routing.Path{}, fmt.Errorf("path type %s", kind)
	}
}

// wrapInGroup puts an expression into a non-capturing group, or returns an error
// when the expression is not valid RE2. The expression must compile alone and in
// the group, or a parenthesis could close the group early. A quotation (\Q)
// without an end must end before the closing parenthesis.
func wrapInGroup(expression string) (string, error) {
	if _, err := regexp.Compile(expression); err == nil {
		for _, end := range []string{")", `\E)`} {
			enclosed := "(?:" + expression + end
			if _, err := regexp.Compile(enclosed); err == nil {
				return enclosed, nil
			}
		}
	}
	return "", fmt.Errorf("invalid RE2 expression %q", expression)
}
