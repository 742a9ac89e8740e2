package envoy

import (
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Transition describes how the listeners serve hostnames whose Access settings change,
// until the connectors have the ingress rules for the new settings.
type Transition struct {
	// Hostnames are further hostnames that the connectors distinguish. Each of them has a
	// virtual host if the table covers it.
	Hostnames []string
	// Placements lists the hostnames that the listener for their Access settings does not
	// serve alone.
	Placements map[string]Placement
}

// Placement is how each listener serves a hostname.
type Placement struct{ Open, Protected Serving }

// Serving is how a listener serves a hostname.
type Serving int

const (
	// NotServed means that the virtual host has no routes, so that all requests get 404 and no
	// wider virtual host answers them.
	NotServed Serving = iota
	// Served means that the virtual host has all routes.
	Served
	// Kept means that the virtual host answers only the requests that it answered before
	// protection was demanded for the hostname, and only as long as the answer stays the
	// same. All others get 403.
	Kept
	// Closed means that all requests get 403.
	Closed
)

func (t Transition) placement(h *routing.Host) Placement {
	if h.IsClosed() {
		return Placement{Open: Closed, Protected: Closed}
	}
	if p, ok := t.Placements[h.Hostname]; ok {
		return p
	}
	return PlacementOf(h.Access)
}

// PlacementOf returns the placement for a hostname whose Access settings do not change. A
// closed hostname needs no rule at Cloudflare, so its requests can arrive on both listeners.
// A hostname that waits for its protection has the rules of an open one.
func PlacementOf(access *routing.Requirement) Placement {
	switch {
	case access.IsClosed():
		return Placement{Open: Closed, Protected: Closed}
	case access.DemandsToken():
		return Placement{Open: NotServed, Protected: Served}
	case access.IsWaiting():
		return Placement{Open: Kept, Protected: NotServed}
	default:
		return Placement{Open: Served, Protected: NotServed}
	}
}

// place returns a virtual host that serves a host in this way.
func place(host *routev3.VirtualHost, s Serving) *routev3.VirtualHost {
	switch s {
	case Served, Kept:
		return host
	case NotServed:
		return &routev3.VirtualHost{Name: host.Name, Domains: host.Domains}
	default:
		return &routev3.VirtualHost{Name: host.Name, Domains: host.Domains, Routes: []*routev3.Route{forbid(everything())}}
	}
}

// keep returns the host with the routes that it had before and still has. Where either
// list has a route that comes first and that the other list lacks, that route returns
// 403. A request is therefore forwarded only if the same route answers it in both lists.
// keep also returns the routes before, in which the lost routes return 403: they do not
// come back.
func keep(host *routev3.VirtualHost, before []*routev3.Route) (kept *routev3.VirtualHost, remaining []*routev3.Route) {
	positions := map[string][]int{}
	for i, route := range before {
		positions[identity(route)] = append(positions[identity(route)], i)
	}
	var routes []*routev3.Route
	next := 0 // the first route before that is not in routes
	for _, route := range host.Routes {
		same := positions[identity(route)]
		at, _ := slices.BinarySearch(same, next)
		if at == len(same) {
			routes = append(routes, forbid(route.Match))
			continue
		}
		remaining = append(remaining, forbidAll(before[next:same[at]])...)
		routes = append(append(routes, remaining[next:]...), route)
		remaining = append(remaining, route)
		next = same[at] + 1
	}
	remaining = append(remaining, forbidAll(before[next:])...)
	return &routev3.VirtualHost{
		Name: host.Name, Domains: host.Domains, Routes: append(routes, remaining[next:]...), ResponseHeadersToRemove: host.ResponseHeadersToRemove,
	}, remaining
}

// identity returns a text that equal routes share. The labels for metrics do not
// distinguish them, because settings and other tenants' routes change the labels.
func identity(route *routev3.Route) string {
	if route.Metadata != nil {
		route = proto.CloneOf(route)
		route.Metadata = nil
	}
	content, _ := proto.MarshalOptions{Deterministic: true}.Marshal(route) // fails only for invalid UTF-8, which the API server refuses
	return string(content)
}

func forbidAll(routes []*routev3.Route) []*routev3.Route {
	forbidden := make([]*routev3.Route, len(routes))
	for i, route := range routes {
		forbidden[i] = forbid(route.Match)
	}
	return forbidden
}

// forbid returns a route that returns 403 for the match.
func forbid(match *routev3.RouteMatch) *routev3.Route { return respond(match, http.StatusForbidden) }

// respond returns a route that returns the status for the match.
func respond(match *routev3.RouteMatch, status uint32) *routev3.Route {
	return &routev3.Route{Match: match, Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}}
}

// everything matches each request.
func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}
