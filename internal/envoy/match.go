package envoy

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// routeMatch is an Envoy match, and the path that it matches literally.
type routeMatch struct {
	*routev3.RouteMatch
	// prefix is the literal prefix, without a slash at the end.
	prefix string
}

// routeMatches returns the matches that together cover an entry: one, or two when the
// path contains escapes with letters. Envoy compares escapes with regard to case, but
// "%c3" and "%C3" are the same path (RFC 3986, section 6.2.2.1).
func routeMatches(e *routing.Entry) []routeMatch {
	matches := []routeMatch{newRouteMatch(e.Match, e.Match.Path.Value)}
	if lower := lowerForm(e.Match.Path); lower != e.Match.Path.Value {
		matches = append(matches, newRouteMatch(e.Match, lower))
	}
	if e.Scheme != "" {
		for i := range matches {
			matches[i] = matches[i].with(schemeMatcher(e.Scheme))
		}
	}
	return matches
}

// with returns the match with another condition for a header.
func (m routeMatch) with(h *routev3.HeaderMatcher) routeMatch {
	match := &routev3.RouteMatch{PathSpecifier: m.PathSpecifier, QueryParameters: m.QueryParameters}
	match.Headers = append(slices.Clip(m.Headers), h)
	return routeMatch{match, m.prefix}
}

// countRoutes returns how many routes a match needs.
func countRoutes(m *routing.Match) int {
	if lowerForm(m.Path) != m.Path.Value {
		return 2
	}
	return 1
}

// lowerForm returns the path value with lower-case escapes. In an expression, "%" has no
// meaning.
func lowerForm(p routing.Path) string {
	if p.Kind == routing.PathExpression {
		return p.Value
	}
	return lowerEscapes(p.Value)
}

func newRouteMatch(m *routing.Match, path string) routeMatch {
	match := &routev3.RouteMatch{}
	switch {
	case m.Path == (routing.Path{Kind: routing.PathExact, Value: "/"}):
		// Envoy merges repeated slashes, except in a path that has nothing else.
		match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: expression("/+")}
	case m.Path.Kind == routing.PathExact:
		match.PathSpecifier = &routev3.RouteMatch_Path{Path: path}
	case m.Path.Kind == routing.PathExpression:
		match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: expression(path)}
	case path == "":
		match.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: "/"}
	default:
		match.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: path}
	}
	if m.Method != "" {
		match.Headers = append(match.Headers, headerMatcher(routing.ValueMatch{Name: ":method", Value: m.Method}))
	}
	for _, h := range m.Headers {
		match.Headers = append(match.Headers, headerMatcher(h))
	}
	for _, q := range m.Query {
		match.QueryParameters = append(match.QueryParameters, &routev3.QueryParameterMatcher{
			Name: q.Name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{StringMatch: stringMatcher(q)},
		})
	}
	return routeMatch{match, path}
}

// deeperThan matches requests for hosts with several more labels than the domain.
func deeperThan(domain string) *routev3.RouteMatch {
	oneLevel := headerMatcher(routing.ValueMatch{Name: ":authority", Value: "[^.]+" + regexp.QuoteMeta(domain) + "(:[0-9]*)?", Expression: true})
	oneLevel.InvertMatch = true
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}, Headers: []*routev3.HeaderMatcher{oneLevel}}
}

func headerMatcher(h routing.ValueMatch) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name: strings.ToLower(h.Name), HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: stringMatcher(h)},
	}
}

func stringMatcher(v routing.ValueMatch) *matcherv3.StringMatcher {
	if v.Expression {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: expression(v.Value)}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: v.Value}}
}

// expression returns an expression that Envoy compares with the whole value.
func expression(value string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: value} }

// prefixExpression matches a prefix and the slashes after it.
func prefixExpression(prefix string) *matcherv3.RegexMatcher {
	return expression("^" + regexp.QuoteMeta(prefix) + "/*")
}

// dependsOnHostname reports whether the routes for an entry differ between hostnames: a
// redirect without a hostname contains the hostname of the virtual host.
func dependsOnHostname(e *routing.Entry) bool {
	return e.Action.Redirect != nil && e.Action.Redirect.Hostname == ""
}
