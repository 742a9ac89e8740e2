package envoy

import (
	"reflect"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// renderedHost is a host of a table with its virtual hosts. It never changes.
type renderedHost struct {
	host      *routing.Host
	placement Placement
	// bucket is the bucket of an exact hostname, or noBucket.
	bucket int
	// open and protected are the virtual hosts of the two listeners. A listener that does not
	// serve the hostname has no routes for it.
	open, protected *routev3.VirtualHost
	// kept are the routes that a hostname with the placement [Kept] had when its Access changed.
	// A route that it has lost since then returns 403.
	kept []*routev3.Route
	// clusters are the names of the clusters that the entries use.
	clusters []string
}

// hosts returns the rendered hosts, in the same order. It takes over the last ones that have not
// changed.
func (r *renderer) hosts(hosts []*routing.Host, transition Transition) []*renderedHost {
	rendered, last := make([]*renderedHost, len(hosts)), r.last
	for i, h := range hosts {
		for len(last) > 0 && last[0].host != h && routing.CompareGroups(last[0].host.Hostname, h.Hostname) < 0 {
			r.dropped, last = append(r.dropped, last[0]), last[1:]
		}
		var before *renderedHost
		if len(last) > 0 && last[0].host.Hostname == h.Hostname {
			before, last = last[0], last[1:]
		}
		placement := transition.placement(h)
		if before != nil && r.reuses && before.isFor(h, placement) {
			rendered[i] = before.with(h)
			continue
		}
		rendered[i] = r.host(h, placement, before)
		r.added = append(r.added, rendered[i])
		if before != nil {
			r.dropped = append(r.dropped, before)
		}
	}
	r.dropped = append(r.dropped, last...)
	return rendered
}

// isFor reports whether the host has the same entries and is served in the same way. A host with
// the placement [Kept] depends on more.
func (h *renderedHost) isFor(host *routing.Host, placement Placement) bool {
	return h.placement == placement && placement.Open != Kept &&
		(h.host == host || h.host.Domain == host.Domain && haveEqualEntries(h.host.Entries, host.Entries))
}

// with returns the rendered host for an equal host, so that it does not keep the last one in memory.
func (h *renderedHost) with(host *routing.Host) *renderedHost {
	if h.host == host {
		return h
	}
	other := *h
	other.host = host
	return &other
}

func (h *renderedHost) isExact() bool { return h.bucket != noBucket }

// haveEqualEntries reports whether the lists have equal objects, as after a decision about the
// whole table. Comparing them takes less time than rendering them.
func haveEqualEntries(a, b []*routing.Entry) bool {
	return slices.EqualFunc(a, b, func(a, b *routing.Entry) bool { return a == b || reflect.DeepEqual(a, b) })
}

// host renders a host. before is the last rendered host with the hostname, or nil.
func (r *renderer) host(h *routing.Host, placement Placement, before *renderedHost) *renderedHost {
	serving := r.virtualHost(h)
	rendered := &renderedHost{
		host: h, placement: placement, bucket: noBucket,
		open: place(serving, placement.Open), protected: place(serving, placement.Protected), clusters: clustersOf(serving.Routes),
	}
	if routing.IsExact(h.Hostname) {
		rendered.bucket = bucketOf(h.Hostname)
	}
	if placement.Open == Kept {
		rendered.open, rendered.kept = keep(serving, before.openRoutes())
	}
	if before != nil {
		rendered.open, rendered.protected = shared(rendered.open, before.open), shared(rendered.protected, before.protected)
	}
	return rendered
}

// openRoutes returns the routes from which the open listener serves the hostname if it has the
// placement [Kept].
func (h *renderedHost) openRoutes() []*routev3.Route {
	switch {
	case h == nil:
		return nil
	case h.placement.Open == Kept:
		return h.kept
	default:
		return h.open.Routes
	}
}

// shared returns the virtual host before if it is equal.
func shared(host, before *routev3.VirtualHost) *routev3.VirtualHost {
	if proto.Equal(host, before) {
		return before
	}
	return host
}

// find returns the host with the hostname, or nil. It also returns the position.
func (r *Resources) find(hostname string) (*renderedHost, int) {
	if r == nil {
		return nil, 0
	}
	i, ok := slices.BinarySearchFunc(r.hosts, hostname, func(h *renderedHost, hostname string) int { return routing.CompareGroups(h.host.Hostname, hostname) })
	if !ok {
		return nil, 0
	}
	return r.hosts[i], i
}

// IsOpen reports whether the open listener has routes for the hostname that do not all return
// 403. It is false for nil resources.
func (r *Resources) IsOpen(hostname string) bool {
	host, _ := r.find(hostname)
	return host != nil && len(host.open.Routes) > 0 && host.placement.Open != Closed
}

// Close returns the resources with hostnames for which the open listener returns 403. The
// name of the hostname for all other requests is "*".
func (r *Resources) Close(names []string) *Resources {
	closed := *r
	closed.hosts = slices.Clone(r.hosts)
	for _, name := range names {
		host, i := r.find(hostnameOf(name))
		if host == nil {
			continue
		}
		c := *host
		c.placement.Open, c.open, c.kept = Closed, place(host.open, Closed), nil
		closed.hosts[i] = &c
	}
	closed.addRoutes(allShards(r.shards), r)
	return &closed
}

// hostnameOf returns the hostname for a name, which is "*" for all other requests.
func hostnameOf(name string) string {
	if name == "*" {
		return ""
	}
	return name
}
