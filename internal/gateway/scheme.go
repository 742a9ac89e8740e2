package gateway

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A tunnel serves all ports for a hostname at once, but Cloudflare's edge reports the
// scheme of each request. Where the data plane knows it, an HTTP listener answers http
// and an HTTPS listener https:
//
//	served listeners   http                                          https
//	of both protocols  the routes of the HTTP listeners              the routes of the HTTPS listeners
//	HTTPS alone        a redirect to https of an HTTP listener       the routes
//	                   for a wider hostname, otherwise the routes
//	HTTP alone         the routes                                    the routes, and in the place of a redirect
//	                                                                 to https an HTTPS listener for a wider hostname,
//	                                                                 or 404 below a wildcard
//
// A redirect to https never answers https, because the visitor would follow it forever.

// isHTTPSRedirect reports whether a rule only redirects to https: it keeps the hostname,
// the path and the default port, and otherwise only changes headers.
func isHTTPSRedirect(rule *gatewayv1.HTTPRouteRule) bool {
	redirect, filters := redirectOf(rule), rule.Filters
	for _, backend := range routing.WeightedBackends(rule) {
		filters = append(slices.Clip(filters), backend.Filters...)
	}
	if redirect == nil || redirect.Scheme == nil || *redirect.Scheme != string(routing.SchemeHTTPS) ||
		redirect.Hostname != nil || redirect.Path != nil || redirect.Port != nil && *redirect.Port != 443 {
		return false
	}
	return !slices.ContainsFunc(filters, func(f gatewayv1.HTTPRouteFilter) bool {
		return f.RequestRedirect != redirect && f.Type != gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.Type != gatewayv1.HTTPRouteFilterResponseHeaderModifier
	})
}

// scheme returns which requests the listener is for.
func (l *Listener) scheme() routing.Scheme {
	if l.Spec.Protocol == gatewayv1.HTTPSProtocolType {
		return routing.SchemeHTTPS
	}
	return routing.SchemeHTTP
}

// servesHTTP reports whether the listener serves, and is for http requests.
func (l *Listener) servesHTTP() bool { return l.Serves() && l.scheme() == routing.SchemeHTTP }

// markAfterHTTPS marks the HTTP listeners whose hostnames also have served HTTPS
// listeners.
func markAfterHTTPS(listeners []*Listener) {
	secure := map[string]bool{}
	for _, l := range listeners {
		if l.Serves() && l.scheme() == routing.SchemeHTTPS {
			secure[l.Hostname()] = true
		}
	}
	for _, l := range listeners {
		l.afterHTTPS = l.scheme() == routing.SchemeHTTP && secure[l.Hostname()]
	}
}

// groupSchemes says which schemes a group answers, and which other groups help it.
type groupSchemes struct {
	// known reports whether the data plane knows the scheme of each request.
	known bool
	// served are the schemes that the served listeners are for.
	served routing.Schemes
	// byRoute has, for each route, the schemes for which listeners admit it. It is nil
	// unless the group has listeners with both protocols.
	byRoute map[*Route]routing.Schemes
	// lender is the group whose redirects to https answer http. It is nil unless the group has
	// HTTPS listeners alone.
	lender *group
	// secure is the group that answers https in place of a redirect to https. It is nil
	// unless the group has HTTP listeners alone.
	secure *group
	// redirects finds a lender's redirects to https. It is nil until they are needed.
	redirects redirectIndex
}

// addScheme adds a listener's scheme, before its routes.
func (g *group) addScheme(l *Listener) {
	s, before := &g.schemes, g.schemes.served
	s.served = before.With(l.scheme())
	if !s.served.HasBoth() {
		return // most groups
	}
	if s.byRoute == nil {
		s.byRoute = map[*Route]routing.Schemes{}
		for _, route := range g.routes {
			s.byRoute[route] = before
		}
	}
	for _, route := range l.routes {
		s.byRoute[route] = s.byRoute[route].With(l.scheme())
	}
}

// admits reports whether a listener for the scheme admits a route in the group.
func (g *group) admits(route *Route, scheme routing.Scheme) bool {
	if g.schemes.byRoute == nil {
		return g.schemes.served.Has(scheme)
	}
	return g.schemes.byRoute[route].Has(scheme)
}

// schemeOf returns the scheme whose requests a route's match answers in the group, or
// false if it answers none.
func (g *group) schemeOf(route *Route, m *ruleMatch) (scheme routing.Scheme, answers bool) {
	schemes := g.schemes.byRoute[route]
	switch {
	case !g.schemes.known:
		return "", true
	case m.toHTTPS:
		return routing.SchemeHTTP, g.admits(route, routing.SchemeHTTP)
	case g.schemes.byRoute == nil || schemes.HasBoth():
		return "", true
	case schemes.Has(routing.SchemeHTTP):
		return routing.SchemeHTTP, true
	default:
		return routing.SchemeHTTPS, true
	}
}

func (g *group) answers(route *Route, m *ruleMatch) bool {
	_, answers := g.schemeOf(route, m)
	return answers
}

// answered returns the schemes for which the route answers every request for a hostname.
func (g *group) answered(route *Route) routing.Schemes {
	var answered routing.Schemes
	for i := range route.matches {
		m := &route.matches[i]
		if scheme, answers := g.schemeOf(route, m); answers && m.MatchesAll() {
			answered = answered.With(scheme)
		}
	}
	return answered
}

// isAfterHTTPS reports whether only HTTP listeners in the group admit the route, although
// it also has HTTPS listeners, and the data plane does not know the request scheme.
func (g *group) isAfterHTTPS(route *Route) bool {
	return !g.schemes.known && g.schemes.byRoute != nil && !g.schemes.byRoute[route].Has(routing.SchemeHTTPS)
}

// linkSchemes finds the groups that answer requests for another group because of their
// scheme.
func linkSchemes(groups map[string]*group, gateway Owner) {
	for _, g := range groups {
		g.schemes.known = true
		served := g.schemes.served
		switch {
		case served.HasBoth():
		case served.Has(routing.SchemeHTTPS):
			g.schemes.lender = g.wider(groups, routing.SchemeHTTP, g.owner)
			if g.schemes.lender == nil && g.owner != gateway {
				g.schemes.lender = g.wider(groups, routing.SchemeHTTP, gateway)
			}
		case served.Has(routing.SchemeHTTP):
			g.schemes.secure = g.wider(groups, routing.SchemeHTTPS, g.owner)
		}
	}
}

// wider returns the owner's most specific group for a wider hostname with a served
// listener for the scheme, or nil.
func (g *group) wider(groups map[string]*group, scheme routing.Scheme, owner Owner) *group {
	for hostname := range routing.WiderHostnames(g.hostname) {
		if wide := groups[hostname]; wide != nil && wide.owner == owner && wide.schemes.served.Has(scheme) {
			return wide
		}
	}
	return nil
}
