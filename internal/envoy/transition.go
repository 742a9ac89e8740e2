package envoy

import (
	"maps"
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
	// the hostname's Access settings changed, and only as long as the answer stays the
	// same. All others get 403.
	Kept
	// Closed means that all requests get 403.
	Closed
)

func (t Transition) placement(h *routing.Host) Placement {
	if p, ok := t.Placements[h.Hostname]; ok {
		return p
	}
	return PlacementOf(h.Access != nil)
}

// PlacementOf returns the placement for a hostname whose Access settings do not change.
func PlacementOf(requiresAccess bool) Placement {
	if requiresAccess {
		return Placement{Open: NotServed, Protected: Served}
	}
	return Placement{Open: Served, Protected: NotServed}
}

// place returns a virtual host that serves a host in this way.
func place(host *routev3.VirtualHost, s Serving) *routev3.VirtualHost {
	switch s {
	case Served, Kept:
		return host
	case NotServed:
		return &routev3.VirtualHost{Name: host.Name, Domains: host.Domains}
	default:
		everything := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
		return &routev3.VirtualHost{Name: host.Name, Domains: host.Domains, Routes: []*routev3.Route{forbid(everything)}}
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
func forbid(match *routev3.RouteMatch) *routev3.Route {
	return &routev3.Route{Match: match, Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusForbidden}}}
}

// openRoutes returns the routes, by hostname, from which the open listener serves the
// hostnames with the placement [Kept]. It is nil for nil resources.
func (r *Resources) openRoutes() map[string][]*routev3.Route {
	if r == nil {
		return nil
	}
	routes := make(map[string][]*routev3.Route, len(r.Open.VirtualHosts))
	for _, host := range r.Open.VirtualHosts {
		hostname := hostnameOf(host)
		routes[hostname] = host.Routes
		if kept, ok := r.kept[hostname]; ok {
			routes[hostname] = kept
		}
	}
	return routes
}

// Close returns the resources with hostnames for which the open listener returns 403. The
// hostname of the virtual host for all other requests is "*".
func (r *Resources) Close(names []string) *Resources {
	closed := *r
	closed.kept, closed.closed = maps.Clone(r.kept), maps.Clone(r.closed)
	hosts := slices.Clone(r.Open.VirtualHosts)
	for i, host := range hosts {
		if slices.Contains(names, host.Name) {
			hosts[i] = place(host, Closed)
			delete(closed.kept, hostnameOf(host))
			closed.closed[hostnameOf(host)] = true
		}
	}
	closed.Open = routeConfiguration(ListenerOpen, hosts, r.Telemetry)
	return &closed
}

// IsOpen reports, by hostname, whether the open listener has routes for the hostname that
// do not all return 403.
func (r *Resources) IsOpen() map[string]bool {
	open := make(map[string]bool, len(r.Open.VirtualHosts))
	for _, host := range r.Open.VirtualHosts {
		hostname := hostnameOf(host)
		open[hostname] = len(host.Routes) > 0 && !r.closed[hostname]
	}
	return open
}

// hostnameOf returns the hostname of a virtual host, which is empty for the virtual host
// for all other requests.
func hostnameOf(host *routev3.VirtualHost) string {
	if host.Name == "*" {
		return ""
	}
	return host.Name
}
