package gateway

import "github.com/tunnel-gateway/tunnel-gateway/internal/routing"

// attachedKinds are the hostnames of the routes of each kind that are attached to a
// listener.
type attachedKinds map[string]hostnameIndex

// hasConflictingKind reports whether a route of another kind is already attached
// to the listener with an intersecting hostname: "If a Route (A) of type HTTPRoute or GRPCRoute
// is attached to a Listener and that listener already has another Route (B) of
// the other type attached and the intersection of the hostnames of A and B is
// non-empty, then the implementation MUST accept exactly one of these two
// routes". The older route wins. (GRPCRouteSpec.Hostnames)
func (l *Listener) hasConflictingKind(route *Route) bool {
	if l.kinds == nil {
		if len(l.routes) == 0 || l.routes[0].Kind == route.Kind {
			return false // most listeners have routes of one kind and need no index
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

// add adds the hostnames of a route on the listener. A route whose rules are all
// dropped there conflicts with no other route, because it serves no request.
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

// hostnameIndex finds out whether a hostname intersects with one of a set of hostnames,
// in as many lookups as the hostname has labels. Its keys are the hostnames of the set,
// whose value is true, and the wider hostnames that cover one of them.
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

// intersects reports whether the hostname covers a hostname of the set, or is covered by
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

// intersectsRoute reports whether a hostname of the route on a listener intersects with
// a hostname in the index.
func (x hostnameIndex) intersectsRoute(route *Route, l *Listener) bool {
	for hostname := range route.hostnamesOnListener(l.Owner, l.Hostname()) {
		if x.intersects(hostname.served) {
			return true
		}
	}
	return false
}
