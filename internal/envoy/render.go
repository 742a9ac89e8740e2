package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Resources contain everything that Envoy needs to serve a routing table. They share memory,
// and must not be changed.
type Resources struct {
	// Open and Protected are the routes for the two listeners. Each has a virtual host
	// for every hostname in the table. On a listener that does not serve the hostname,
	// the virtual host has no routes, so that a wider virtual host does not answer.
	Open, Protected *routev3.RouteConfiguration
	// Clusters are sorted by name.
	Clusters []*clusterv3.Cluster
	// Endpoints are the clusters whose addresses [Assign] returns, by name.
	Endpoints []EndpointsOf
	// ByName are the Services without an address in their manifest, by name. Envoy looks up
	// their DNS names.
	ByName []routing.Backend

	// Telemetry has the settings for the listeners.
	Telemetry routing.Telemetry
	// ClientCertificate is the content of [SecretClientCertificate]. It is nil if no
	// cluster names this secret.
	ClientCertificate *routing.ClientCertificate

	byContent map[clusterContent]*clusterv3.Cluster
	bySource  map[EndpointSource][]EndpointsOf
	// kept are the routes that a hostname with the placement [Kept] had when its Access changed.
	// A route that it has lost since then returns 403.
	kept map[string][]*routev3.Route
	// closed are the hostnames for which the open listener returns 403.
	closed map[string]bool
}

// Render returns the resources for a table. The same table gives the same resources.
func Render(t *routing.Table) *Resources { return RenderTransition(t, Transition{}, nil) }

// RenderTransition returns the resources for a table while hostnames change their Access
// settings. The resources share equal clusters with the last ones, which may be nil.
func RenderTransition(t *routing.Table, transition Transition, last *Resources) *Resources {
	hosts := t.Hosts(transition.Hostnames...)
	r := &renderer{
		telemetry: t.Telemetry,
		clusters:  newClusters(t, last),
		routes:    map[*routing.Entry][]*routev3.Route{},
		actions:   map[actionKey]*routev3.RouteAction{},
	}
	var before map[string][]*routev3.Route
	if len(transition.Placements) > 0 {
		before = last.openRoutes()
	}
	resources := &Resources{Telemetry: t.Telemetry, kept: map[string][]*routev3.Route{}, closed: map[string]bool{}}
	open := make([]*routev3.VirtualHost, len(hosts))
	protected := make([]*routev3.VirtualHost, len(hosts))
	for i := range hosts {
		hostname, serving := hosts[i].Hostname, r.virtualHost(&hosts[i])
		placement := transition.placement(&hosts[i])
		open[i], protected[i] = place(serving, placement.Open), place(serving, placement.Protected)
		switch placement.Open {
		case Kept:
			open[i], resources.kept[hostname] = keep(serving, before[hostname])
		case Closed:
			resources.closed[hostname] = true
		default:
		}
	}
	resources.Open = routeConfiguration(ListenerOpen, open, t.Telemetry)
	resources.Protected = routeConfiguration(ListenerProtected, protected, t.Telemetry)
	r.clusters.addTo(resources)
	if tracing := t.Telemetry.Tracing; tracing != nil {
		resources.Clusters = append(resources.Clusters, collectorCluster(tracing))
	}
	if r.clusters.presents {
		resources.ClientCertificate = t.ClientCertificate
	}
	return resources
}

func routeConfiguration(name string, hosts []*routev3.VirtualHost, telemetry routing.Telemetry) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:                     name,
		VirtualHosts:             hosts,
		IgnorePortInHostMatching: true,
		RequestHeadersToRemove:   []string{"x-envoy-external-address", "x-envoy-internal"}, // added by Envoy itself
		ResponseHeadersToRemove:  removedFromResponses(telemetry),
		ValidateClusters:         boolValue(false), // unresolved backends have no cluster
	}
}

// renderer renders table entries. Entries that are repeated for several hostnames share
// their routes.
type renderer struct {
	telemetry routing.Telemetry
	clusters  *clusters
	routes    map[*routing.Entry][]*routev3.Route
	actions   map[actionKey]*routev3.RouteAction
}

// actionKey has everything on which the RouteAction for an entry depends.
type actionKey struct {
	action *routing.Action
	origin *v1alpha1.OriginRequest
	// prefix is the matched prefix when the action replaces it.
	prefix string
}

func (r *renderer) virtualHost(h *routing.Host) *routev3.VirtualHost {
	host := emptyVirtualHost(h.Hostname)
	var answered routing.Schemes
	for _, e := range h.Entries {
		host.Routes = append(host.Routes, r.routesOf(e, h.Hostname)...)
		if e.Source.Route.Kind == routing.KindGRPCRoute && host.ResponseHeadersToRemove == nil {
			// Envoy drops the trailers of a response with a Content-Length.
			host.ResponseHeadersToRemove = []string{"content-length"}
		}
		if e.Match.MatchesAll() {
			answered = answered.With(e.Scheme)
		}
		if answered.HasBoth() {
			break // no request reaches the other entries
		}
	}
	return host
}

// emptyVirtualHost returns a virtual host without routes, which answers with the status 404.
// Its domain is the hostname: Envoy prefers exact names, then the longest wildcard, which
// also matches several labels.
func emptyVirtualHost(hostname string) *routev3.VirtualHost {
	if hostname == "" {
		hostname = "*"
	}
	return &routev3.VirtualHost{Name: hostname, Domains: []string{hostname}}
}

// routesOf returns the routes for an entry and a hostname that the entry covers.
func (r *renderer) routesOf(e *routing.Entry, hostname string) []*routev3.Route {
	if routes, ok := r.routes[e]; ok {
		return routes
	}
	var routes []*routev3.Route
	for _, m := range routeMatches(e) {
		if e.Action.Redirect != nil {
			routes = append(routes, redirectRoutes(e, hostname, m)...)
		} else {
			routes = append(routes, r.route(e, m))
		}
	}
	if labels := routeMetadata(e, r.telemetry); labels != nil {
		for _, route := range routes {
			route.Metadata = labels
		}
	}
	if isRepeated := e.Hostname != hostname || !routing.IsExact(e.Hostname); isRepeated && !dependsOnHostname(e) {
		r.routes[e] = routes
	}
	return routes
}
