package envoy

import (
	"cmp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// redirectRoutes returns the routes for an entry with a redirect, for a hostname that the
// entry covers.
func redirectRoutes(e *routing.Entry, hostname string, m routeMatch) []*routev3.Route {
	redirect := e.Action.Redirect
	host := redirect.Hostname
	if host == "" && routing.IsExact(hostname) {
		host = hostname
	}
	var routes []*routev3.Route
	for _, port := range locationPorts(redirect, e.Scheme, host == "") {
		route := &routev3.Route{Name: e.Source.Describe(), Match: port.limit(m).RouteMatch, Action: &routev3.Route_Redirect{Redirect: redirectAction(redirect, host, port.number, m.prefix)}}
		setResponse(route, e.Action)
		routes = append(routes, route)
	}
	return routes
}

// locationPort is the port in the Location header for some requests to an entry.
type locationPort struct {
	// number is the port, or 0 for none. Envoy then keeps the port of a Host that it copies.
	number int32
	// scheme limits the requests to one scheme, unless it is empty.
	scheme routing.Scheme
	// replaces limits the requests to those whose Host has a port.
	replaces bool
}

// limit narrows the match to these requests.
func (p locationPort) limit(m routeMatch) routeMatch {
	if p.scheme != "" {
		m = m.with(schemeMatcher(p.scheme))
	}
	if p.replaces {
		m = m.with(headerMatcher(routing.ValueMatch{Name: ":authority", Value: ".*:[0-9]+", Expression: true}))
	}
	return m
}

// locationPorts returns the ports for all requests with the scheme that the entry
// answers, the first that applies. copiesHost reports whether the Location header has the
// request's Host.
//
// "If redirect scheme is not-empty, the redirect port MUST be the well-known port
// associated with the redirect scheme", and the header omits it.
// (HTTPRequestRedirectFilter.Port) Envoy cannot remove the port from a Host that it
// copies, but it can replace it.
func locationPorts(r *routing.Redirect, entry routing.Scheme, copiesHost bool) []locationPort {
	requests := []routing.Scheme{entry}
	if entry == "" && dependsOnScheme(r) {
		requests = []routing.Scheme{routing.SchemeHTTP, routing.SchemeHTTPS}
	}
	var ports []locationPort
	for _, scheme := range requests {
		p := locationPort{number: r.LocationPort(scheme)}
		if entry == "" {
			p.scheme = scheme
		}
		if p.number == 0 && copiesHost && namesPort(r) {
			ports = append(ports, locationPort{number: wellKnownPorts[cmp.Or(r.Scheme, string(scheme))], scheme: p.scheme, replaces: true})
		}
		ports = append(ports, p)
	}
	return ports
}

// dependsOnScheme reports whether the port in the Location header depends on the request
// scheme.
func dependsOnScheme(r *routing.Redirect) bool {
	return r.LocationPort(routing.SchemeHTTP) != r.LocationPort(routing.SchemeHTTPS)
}

// namesPort reports whether the redirect determines the port, which it otherwise keeps.
func namesPort(r *routing.Redirect) bool { return r.Scheme != "" || r.Port != 0 }

// countRedirects returns the most routes that a redirect needs for one match.
func countRedirects(r *routing.Redirect) int {
	return len(locationPorts(r, "", r.Hostname == ""))
}

var wellKnownPorts = map[string]int32{"http": 80, "https": 443}

// redirectAction redirects to the host, or keeps the request host if it is empty.
func redirectAction(redirect *routing.Redirect, host string, port int32, prefix string) *routev3.RedirectAction {
	action := &routev3.RedirectAction{HostRedirect: host, ResponseCode: redirectCodes[redirect.Status]}
	if redirect.Scheme != "" {
		action.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: redirect.Scheme}
	}
	action.PortRedirect = uint32(port) //nolint:gosec // the CRD limits ports to 65535
	if redirect.Path == nil {
		return action
	}
	switch path := rewritePath(redirect.Path, prefix); {
	case !redirect.Path.Prefix:
		action.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: path.literal}
	case path.expression != nil:
		action.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: path.expression}
	default:
		action.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: path.literal}
	}
	return action
}

var redirectCodes = map[int]routev3.RedirectAction_RedirectResponseCode{
	301: routev3.RedirectAction_MOVED_PERMANENTLY,
	302: routev3.RedirectAction_FOUND,
	303: routev3.RedirectAction_SEE_OTHER,
	307: routev3.RedirectAction_TEMPORARY_REDIRECT,
	308: routev3.RedirectAction_PERMANENT_REDIRECT,
}
