package controller

import (
	"maps"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// routeStates are the states of the routes in a Gateway's last report. The zero value is the one
// before the first report. Reports share the statuses of unchanged routes, whose conditions
// need not be read again.
type routeStates struct {
	routes []*gateway.RouteStatus
	states []metrics.RouteState // "" for a route without a parent
	counts map[metrics.RouteState]int
}

// update replaces the routes, and returns how many of them have each state.
func (r *routeStates) update(routes []*gateway.RouteStatus) map[metrics.RouteState]int {
	if len(routes) != len(r.routes) {
		r.routes, r.states, r.counts = make([]*gateway.RouteStatus, len(routes)), make([]metrics.RouteState, len(routes)), map[metrics.RouteState]int{}
	}
	for i, route := range routes {
		if route == r.routes[i] {
			continue // most routes
		}
		r.count(r.states[i], -1)
		r.states[i] = routeState(route.Parents)
		r.count(r.states[i], 1)
	}
	r.routes = routes
	return maps.Clone(r.counts)
}

// count adds to the number of routes with the state.
func (r *routeStates) count(state metrics.RouteState, n int) {
	if state == "" {
		return
	}
	if r.counts[state] += n; r.counts[state] == 0 {
		delete(r.counts, state)
	}
}

// routeState returns the route's worst state on any parent, or "" if it has none.
func routeState(parents []gatewayv1.RouteParentStatus) metrics.RouteState {
	if len(parents) == 0 {
		return ""
	}
	unresolved, partial := false, false
	for _, parent := range parents {
		if !conditions.TypeAccepted.IsTrue(parent.Conditions) {
			return metrics.RouteRejected
		}
		unresolved = unresolved || !conditions.TypeResolvedRefs.IsTrue(parent.Conditions)
		partial = partial || conditions.TypePartiallyInvalid.IsTrue(parent.Conditions)
	}
	switch {
	case unresolved:
		return metrics.RouteUnresolved
	case partial:
		return metrics.RoutePartiallyInvalid
	default:
		return metrics.RouteAccepted
	}
}
