// Package routing holds one Gateway's routing table: every match that is served, in the
// order in which a data plane tries the matches, and what happens to a request that
// matches.
//
// The table is the interface between the decision and the data planes. Package gateway
// builds it, and a renderer for each data plane translates it. [Table.Answer] follows a
// request through the table, for the plan command and for tests.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O. It
// imports neither Cloudflare's nor Envoy's types.
package routing

import (
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Table is one Gateway's routing table. It contains exactly what the data plane serves:
// matches that the data plane cannot express are absent, and actions that it cannot
// express are replaced by a status.
type Table struct {
	// Groups are in order from the most specific hostname to the least specific. A
	// request belongs to the first group whose hostname covers its host, and never falls
	// through to another group.
	Groups []Group
	// Access decides which requests require a Cloudflare Access token.
	Access Access
	// ClusterDomain is the DNS domain of the cluster, without a leading or trailing dot.
	ClusterDomain string
	// OriginRequest are the settings for requests to backends, or nil. An Entry's
	// settings take precedence.
	OriginRequest *v1alpha1.OriginRequest
	// Protection has the settings that protect backends and their visitors.
	Protection Protection
	// Telemetry has the settings for metrics, access logs and traces.
	Telemetry Telemetry
	// ClientCertificate is what the data plane presents to backends with TLS, or nil.
	ClientCertificate *ClientCertificate

	known *knownLists // nil unless KeepLists was called
}

// Entries iterates over all entries.
func (t *Table) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range t.Groups {
			for e := range t.Groups[i].all() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Group has the entries from all listeners with one hostname.
type Group struct {
	// Hostname is the hostname of all these listeners: an exact name, a wildcard such as
	// "*.example.com", or empty for every host.
	Hostname string
	// Namespace is the namespace of the owner of the listeners.
	Namespace string
	// Redirects are redirects to https that belong to an HTTP listener for a wider
	// hostname. They answer http requests before the Entries, in their order. Only a
	// group of HTTPS listeners has any.
	Redirects []*Entry
	// Entries are in the order in which they are tried. A request that no entry matches
	// gets the status 404.
	Entries []*Entry
}

// Entry is one route match and its action.
type Entry struct {
	// Hostname is the hostname for which the entry is served: where the listener hostname
	// and the route hostname intersect.
	Hostname string
	// RouteHostname is the hostname in the route, which decides the order. It is empty
	// when the route has no hostnames.
	RouteHostname string
	// Match is the condition for requests with this hostname.
	Match *Match
	// Scheme is the scheme whose requests the entry answers, or empty for both.
	Scheme Scheme
	// AfterHTTPS reports whether only HTTP listeners admit the route although the
	// hostname also has HTTPS listeners, for a data plane that does not know the scheme
	// of a request.
	AfterHTTPS bool
	// InsteadOf is the redirect to https in whose place an HTTPS listener for a wider
	// hostname answers https requests. Its Route is nil for other entries.
	InsteadOf Source
	// Action is what happens to a matching request. A rule's entries share it.
	Action *Action
	// Source is the route match that the entry comes from.
	Source Source
	// OriginRequest are the settings from the listeners that admit the route, or nil.
	// They take precedence over the Table's settings.
	OriginRequest *v1alpha1.OriginRequest
	// Counted reports whether the metrics by route have the requests to the entry's rule
	// and hostname. They count all others together.
	Counted bool
}

// Matches reports whether the entry answers the request, unless another entry comes before it.
func (e *Entry) Matches(r Request) bool { return e.Scheme.Covers(r.scheme()) && e.matchesAnyScheme(r) }

// matchesAnyScheme reports whether the entry would answer the request in one of the
// schemes.
func (e *Entry) matchesAnyScheme(r Request) bool {
	return Covers(e.Hostname, r.Host) && e.Match.Matches(r)
}

// Source names one match in a route.
type Source struct {
	Route *Route
	// Rule is the index of the rule in the route, and Match the index of the match in the
	// rule, both from 0.
	Rule, Match int
}

// Describe names the route and the rule.
func (s Source) Describe() string { return fmt.Sprintf("%s rule %d", s.Route.Describe(), s.Rule) }

// Route identifies a route.
type Route struct {
	// Kind is HTTPRoute or GRPCRoute.
	Kind string
	types.NamespacedName
	// Created is when the route was created, in seconds since 1970. A route without a
	// creation time has the largest value.
	Created int64
	// Rank is the position among all routes: the oldest route first, then by
	// "{namespace}/{name}", then by kind.
	Rank int
	// Tenant identifies the tenant that the route belongs to. It is empty while no route
	// is Confined.
	Tenant string
	// Confined reports whether the wildcards in the route do not apply to narrower
	// hostnames that only routes of other tenants name.
	Confined bool
}

// Kinds of supported routes.
const (
	KindHTTPRoute = "HTTPRoute"
	KindGRPCRoute = "GRPCRoute"
)

// Describe names the route.
func (r *Route) Describe() string { return r.Kind + " " + r.String() }
