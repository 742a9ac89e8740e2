package envoy

import (
	"reflect"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Resources contain everything that Envoy needs to serve a routing table. They share memory,
// and must not be changed.
type Resources struct {
	// Routes are the RouteConfigurations for both listeners, sorted by name. Those of a listener
	// are its shards; see [buckets]. If the last resources have an equal one, it is the same
	// object.
	Routes []*routev3.RouteConfiguration
	// Scopes select the RouteConfiguration for a request, sorted by name. They share equal
	// objects with the last resources, too.
	Scopes []*routev3.ScopedRouteConfiguration
	// Clusters are sorted by name, and share equal objects with the last resources.
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

	settings renderSettings
	// hosts are in the order of [routing.Table.Hosts].
	hosts []*renderedHost
	// shards is the number of shards for each listener.
	shards     int
	clusterSet *clusterSet
}

// renderSettings are what every host and cluster depends on.
type renderSettings struct {
	telemetry  routing.Telemetry
	tunnel     *v1alpha1.OriginRequest
	domain     string
	protection routing.Protection
	// clientCertificate reports whether Envoy presents a certificate to backends.
	clientCertificate bool
}

// Render returns the resources for a table. The same table gives the same resources.
func Render(t *routing.Table) *Resources { return RenderTransition(t, Transition{}, nil) }

// RenderTransition returns the resources for a table while hostnames change their Access
// settings. The resources share equal objects with the last ones, which may be nil. It does not
// render hosts again whose entries equal those in the last table, unless settings for all
// hosts have changed. Only hosts with the placement [Kept] depend on the last resources.
func RenderTransition(t *routing.Table, transition Transition, last *Resources) *Resources {
	resources := &Resources{Telemetry: t.Telemetry, settings: renderSettings{
		telemetry: t.Telemetry, tunnel: t.OriginRequest, domain: t.ClusterDomain, protection: t.Protection, clientCertificate: t.ClientCertificate != nil,
	}}
	hosts := t.Hosts(transition.Hostnames...)
	r := newRenderer(t, last, reflect.DeepEqual(resources.settings, last.settingsOf()))
	resources.hosts = r.hosts(hosts, transition)
	resources.addRoutes(r.changedShards(countShards(hosts, t.Telemetry), last), last)
	r.addClusters(resources, last)
	if resources.clusterSet.presenting > 0 {
		resources.ClientCertificate = t.ClientCertificate
	}
	return resources
}

func (r *Resources) settingsOf() renderSettings {
	if r == nil {
		return renderSettings{}
	}
	return r.settings
}

// renderer renders table entries. Entries that are repeated for several hostnames share
// their routes.
type renderer struct {
	telemetry routing.Telemetry
	clusters  *clusters
	routes    map[*routing.Entry][]*routev3.Route
	actions   map[actionKey]*routev3.RouteAction
	// last are the hosts of the last resources. reuses reports whether they depend on the same
	// settings.
	last   []*renderedHost
	reuses bool
	// added are the hosts that are not among the last ones, and dropped the last hosts that are
	// not among the present ones.
	added, dropped []*renderedHost
}

func newRenderer(t *routing.Table, last *Resources, reuses bool) *renderer {
	r := &renderer{
		telemetry: t.Telemetry,
		clusters:  newClusters(t, last),
		routes:    map[*routing.Entry][]*routev3.Route{},
		actions:   map[actionKey]*routev3.RouteAction{},
	}
	if last != nil {
		r.last, r.reuses = last.hosts, reuses
	}
	return r
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
	if h.Domain != "" && !routing.IsExact(h.Hostname) {
		host.Routes = append(host.Routes, forbid(deeperThan(h.Domain)))
	}
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
