package gateway

import "github.com/tunnel-gateway/tunnel-gateway/internal/routing"

// attachedKinds has the hostnames of the routes attached to a listener, by route kind.
type attachedKinds map[string]hostnameIndex

// hasConflictingKind reports whether a route of another kind is already attached to the
// listener with an intersecting hostname: "If a Route (A) of type HTTPRoute or GRPCRoute
// is attached to a Listener and that listener already has another Route (B) of the other
// type attached and the intersection of the hostnames of A and B is non-empty, then the
// implementation MUST accept exactly one of these two routes". The older route wins.
// (GRPCRouteSpec.Hostnames)
func (l *Listener) hasConflictingKind(route *Route) bool {
	if l.kinds == nil {
		if len(l.routes) == 0 || l.routes[0].Kind == route.Kind {
			return false // most listeners have one route kind and need no index
		}
		l.kinds = attachedKinds{}
		for _, attached := range l.routes {
			l.kinds.add(attached, l)
		}
	}
	for kind, hostnames := range l.kinds {
		if kind != route.Kind && hostnames.intersectsRoute(route, l) {
			return true
		}
	}
	return false
}

// add adds a route's hostnames on the listener. A route whose rules are all dropped there
// conflicts with no other route, because it serves no request.
func (k attachedKinds) add(route *Route, l *Listener) {
	if route.isFullyDropped(route.droppedAt([]*Listener{l})) {
		return
	}
	if k[route.Kind] == nil {
		k[route.Kind] = hostnameIndex{}
	}
	for hostname := range route.hostnamesOnListener(l.Owner, l.Hostname()) {
		k[route.Kind].add(hostname.served)
	}
}

// hostnameIndex finds out whether a hostname intersects with any hostname in a set, in as
// many lookups as the hostname has labels. Its keys are the set's hostnames, whose value
// is true, and the wider hostnames that cover one.
type hostnameIndex map[string]bool

func (x hostnameIndex) add(hostname string) {
	x[hostname] = true
	for wide := range routing.WiderHostnames(hostname) {
		if _, ok := x[wide]; ok {
			return // and so are the hostnames that cover this one
		}
		x[wide] = false
	}
}

// intersects reports whether the hostname covers a hostname in the set, or is covered by
// one. (routing.Intersect)
func (x hostnameIndex) intersects(hostname string) bool {
	if _, ok := x[hostname]; ok {
		return true
	}
	for wide := range routing.WiderHostnames(hostname) {
		if x[wide] {
			return true
		}
	}
	return false
}

// intersectsRoute reports whether one of the route's hostnames on a listener intersects
// with a hostname in the index.
func (x hostnameIndex) intersectsRoute(route *Route, l *Listener) bool {
	for hostname := range route.hostnamesOnListener(l.Owner, l.Hostname()) {
		if x.intersects(hostname.served) {
			return true
		}
	}
	return false
}
