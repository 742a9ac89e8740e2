package envoy

import (
	"regexp"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// route returns one route for an entry without a redirect.
func (r *renderer) route(e *routing.Entry, m routeMatch) *routev3.Route {
	route := &routev3.Route{Name: e.Source.Describe(), Match: m.RouteMatch}
	a := e.Action
	if a.Forward != nil {
		route.Action = &routev3.Route_Route{Route: r.routeAction(e, m)}
	} else {
		route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: uint32(a.Status)}} //nolint:gosec // an HTTP status
		setResponse(route, a)
	}
	if a.CORS != nil {
		route.TypedPerFilterConfig = map[string]*anypb.Any{filterCORS: pack(corsPolicy(a.CORS))}
	}
	return route
}

// setResponse sets the header changes for responses that Envoy sends itself.
func setResponse(route *routev3.Route, a *routing.Action) {
	response := compose(a.Response)
	route.ResponseHeadersToAdd, route.ResponseHeadersToRemove = response.add, response.remove
}

// pathRewrite replaces a path, or its matched prefix, by a literal or by an expression.
type pathRewrite struct {
	literal    string
	expression *matcherv3.RegexMatchAndSubstitute
}

// rewritePath returns the rewrite for a path change. The table in
// HTTPPathModifier.ReplacePrefixMatch defines the slashes.
func rewritePath(c *routing.PathChange, prefix string) pathRewrite {
	replacement := strings.TrimSuffix(c.Value, "/")
	switch {
	case !c.Prefix && c.Value == "":
		return pathRewrite{literal: "/"}
	case !c.Prefix:
		return pathRewrite{literal: c.Value}
	case replacement == "":
		return pathRewrite{expression: substitution(prefixExpression(prefix), "/")}
	case prefix == "":
		return pathRewrite{literal: replacement + "/"} // the match is the prefix "/"
	default:
		return pathRewrite{literal: replacement}
	}
}

// substitution returns a path rewrite. A backslash refers to a part of the path.
func substitution(pattern *matcherv3.RegexMatcher, value string) *matcherv3.RegexMatchAndSubstitute {
	return &matcherv3.RegexMatchAndSubstitute{Pattern: pattern, Substitution: strings.ReplaceAll(value, `\`, `\\`)}
}

const filterCORS = "envoy.filters.http.cors"

func corsPolicy(c *routing.CORS) *corsv3.CorsPolicy {
	policy := &corsv3.CorsPolicy{
		AllowMethods: strings.Join(c.AllowMethods, ", "), AllowHeaders: strings.Join(c.AllowHeaders, ", "),
		ExposeHeaders: exposedHeaders(c), MaxAge: strconv.FormatInt(int64(c.MaxAge.Seconds()), 10),
		AllowCredentials:             boolValue(c.AllowCredentials),
		ForwardNotMatchingPreflights: boolValue(false),
	}
	for _, origin := range c.AllowOrigins {
		policy.AllowOriginStringMatch = append(policy.AllowOriginStringMatch, originMatchers(origin)...)
	}
	return policy
}

// exposedHeaders returns the headers that scripts can read. Browsers do not accept a
// wildcard for requests with credentials.
func exposedHeaders(c *routing.CORS) string {
	var names []string
	for _, name := range c.ExposeHeaders {
		if name != "*" || !c.AllowCredentials {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// originMatchers returns the conditions for an origin: browsers write the scheme and the
// host in lower case and omit the default port, and other clients may write it.
func originMatchers(origin string) []*matcherv3.StringMatcher {
	if origin == "*" {
		return []*matcherv3.StringMatcher{stringMatcher(routing.ValueMatch{Value: ".*", Expression: true})}
	}
	scheme, host, _ := strings.Cut(strings.ToLower(origin), "://")
	port, hasDefault := wellKnownPorts[scheme]
	defaultPort := ":" + strconv.Itoa(int(port))
	host = strings.TrimSuffix(host, defaultPort)
	optional := hasDefault && !strings.Contains(host, ":")
	if rest, wildcard := strings.CutPrefix(host, "*"); wildcard {
		expression := regexp.QuoteMeta(scheme+"://") + `[^/:@]+` + regexp.QuoteMeta(rest)
		if optional {
			expression += "(" + defaultPort + ")?"
		}
		return []*matcherv3.StringMatcher{stringMatcher(routing.ValueMatch{Value: expression, Expression: true})}
	}
	matchers := []*matcherv3.StringMatcher{stringMatcher(routing.ValueMatch{Value: scheme + "://" + host})}
	if optional {
		matchers = append(matchers, stringMatcher(routing.ValueMatch{Value: scheme + "://" + host + defaultPort}))
	}
	return matchers
}

// pack returns a message as Any. Its bytes are deterministic.
func pack(m proto.Message) *anypb.Any {
	packed := &anypb.Any{}
	if err := anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic("marshal a message with valid UTF-8: " + err.Error()) // the values are checked
	}
	return packed
}

func clusterNotFoundCode(kind string) routev3.RouteAction_ClusterNotFoundResponseCode {
	if kind == routing.KindGRPCRoute {
		return routev3.RouteAction_SERVICE_UNAVAILABLE
	}
	return routev3.RouteAction_INTERNAL_SERVER_ERROR
}

// millionths returns a fraction in millionths, the smallest unit in Envoy.
func millionths(numerator, denominator int32) uint32 {
	const million = 1_000_000
	if denominator <= 0 {
		return million
	}
	return uint32(min(million, max(0, int64(numerator)*million/int64(denominator))))
}
