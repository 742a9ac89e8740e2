package envoy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The virtual hosts of a listener are spread over RouteConfigurations, its shards, because Envoy
// compiles the whole RouteConfiguration for each change. A filter computes the bucket of the
// requested host, and scopes map the buckets to shards. The number of buckets never changes, so
// that the number of shards can change without another listener.
const (
	// buckets is the number of buckets of a listener, a power of two. It is also the largest
	// number of shards.
	buckets = 1 << bucketBits
	// bucketBits is the number of bits of a bucket.
	bucketBits = 7
	// hostsPerShard is the number of hostnames above which a listener gets more shards.
	hostsPerShard = 128
)

// noBucket is the bucket of a wildcard, which belongs to every shard.
const noBucket = -1

// headerBucket has the key of a request's scope. Visitors and routes cannot set it, because its
// name begins with x-envoy-, and backends do not get it.
const headerBucket = "x-envoy-bucket"

// The hash of a host multiplies these numbers modulo 2^hashBits, which Lua's numbers represent
// exactly.
const (
	hashBits     = 24
	hashFactor   = 709
	hashFinisher = 40503
)

// bucketOf returns the bucket for a hostname in lower case. The filter does the same.
func bucketOf(hostname string) int {
	const mask = 1<<hashBits - 1
	hash := uint32(0)
	for i := range len(hostname) {
		hash = (hash*hashFactor + uint32(hostname[i])) & mask
	}
	return int(hash * hashFinisher & mask >> (hashBits - bucketBits))
}

// countShards returns the number of shards for the hosts, a power of two. Entries for wildcards
// are repeated in each shard, so there are no more shards than it takes to double the entries.
// Metrics of requests in flight need the route before the filter has run, so that they have only
// one shard.
func countShards(hosts []*routing.Host, telemetry routing.Telemetry) int {
	if countsInFlight(telemetry) {
		return 1
	}
	exact, all, repeated := 0, 0, 0
	for i := range hosts {
		size := 1 + len(hosts[i].Entries)
		all += size
		if routing.IsExact(hosts[i].Hostname) {
			exact++
		} else {
			repeated += size
		}
	}
	shards := 1
	for shards < buckets && exact > shards*hostsPerShard && 2*shards*repeated <= all+repeated {
		shards *= 2
	}
	return shards
}

// shardName returns the name of a shard's RouteConfiguration. It contains the number of shards,
// because a RouteConfiguration for another number serves other hostnames. A listener with one
// shard shares its name with the RouteConfiguration.
func shardName(listener string, shards, shard int) string {
	if shards == 1 {
		return listener
	}
	return fmt.Sprintf("%s.%d.%d", listener, shards, shard)
}

// ListenerOf returns the listener that a RouteConfiguration of [Resources.Routes] belongs to. The
// result is no listener if it belongs to both.
func ListenerOf(routeConfiguration string) string {
	listener, _, _ := strings.Cut(routeConfiguration, ".")
	return listener
}

// Before the filter has run, a request belongs to the scope with the key "<listener>/start". If the
// listener has one shard, this scope leads to it, and the shard disables the filter. Otherwise, it
// leads to routesAtStart, because Envoy refuses unknown upgrades only if a request has a route at
// its start.
const (
	scopeAtStart  = "start"
	routesAtStart = "start"
)

// startRoutes answers with the status 404. Only requests get it for which the filter fails.
func startRoutes() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: routesAtStart, VirtualHosts: []*routev3.VirtualHost{{
		Name: routesAtStart, Domains: []string{"*"}, Routes: []*routev3.Route{respond(everything(), http.StatusNotFound)},
	}}}
}

// changedShards reports, for each shard, whether it can differ from the last one.
func (r *renderer) changedShards(shards int, last *Resources) []bool {
	if last == nil || !r.reuses || last.shards != shards {
		return allShards(shards)
	}
	changed := make([]bool, shards)
	for _, hosts := range [][]*renderedHost{r.added, r.dropped} {
		for _, h := range hosts {
			if !h.isExact() {
				return allShards(shards)
			}
			changed[h.bucket%shards] = true
		}
	}
	return changed
}

func allShards(n int) []bool { return slices.Repeat([]bool{true}, n) }

// addRoutes adds the shards of both listeners, which contain the hosts, and their scopes. It takes
// over the last shards that have not changed.
func (r *Resources) addRoutes(changed []bool, last *Resources) {
	shards := len(changed)
	r.shards, r.Routes = shards, make([]*routev3.RouteConfiguration, 0, 2*shards)
	before := map[string]*routev3.RouteConfiguration{}
	if last != nil {
		for _, c := range last.Routes {
			before[c.Name] = c
		}
	}
	for listener, virtualHost := range map[string]func(*renderedHost) *routev3.VirtualHost{
		ListenerOpen:      func(h *renderedHost) *routev3.VirtualHost { return h.open },
		ListenerProtected: func(h *renderedHost) *routev3.VirtualHost { return h.protected },
	} {
		for shard, hosts := range distribute(r.hosts, changed, virtualHost) {
			name := shardName(listener, shards, shard)
			if !changed[shard] {
				r.Routes = append(r.Routes, before[name])
				continue
			}
			c := routeConfiguration(name, hosts, r.Telemetry)
			if shards == 1 {
				c.TypedPerFilterConfig = withoutBuckets
			}
			r.Routes = append(r.Routes, sharedRoutes(c, before[name]))
		}
	}
	if shards > 1 {
		r.Routes = append(r.Routes, cmp.Or(before[routesAtStart], startRoutes()))
	}
	slices.SortFunc(r.Routes, func(a, b *routev3.RouteConfiguration) int { return strings.Compare(a.Name, b.Name) })
	if last != nil && last.shards == shards {
		r.Scopes = last.Scopes
	} else {
		r.Scopes = newScopes(shards)
	}
}

// distribute returns the virtual hosts of each wanted shard. Virtual hosts without routes are only
// necessary below a wildcard with routes, which would answer in their place.
func distribute(hosts []*renderedHost, wanted []bool, virtualHost func(*renderedHost) *routev3.VirtualHost) [][]*routev3.VirtualHost {
	needsEmpty := slices.ContainsFunc(hosts, func(h *renderedHost) bool { return !h.isExact() && len(virtualHost(h).Routes) > 0 })
	shards := len(wanted)
	all := make([][]*routev3.VirtualHost, shards)
	for _, h := range hosts {
		if h.isExact() && !wanted[h.bucket%shards] {
			continue // most hosts
		}
		host := virtualHost(h)
		switch {
		case len(host.Routes) == 0 && !needsEmpty:
		case h.isExact():
			all[h.bucket%shards] = append(all[h.bucket%shards], host)
		default:
			for shard := range all {
				all[shard] = append(all[shard], host)
			}
		}
	}
	return all
}

// sharedRoutes returns the RouteConfiguration before if it has the same virtual hosts and
// settings.
func sharedRoutes(c, before *routev3.RouteConfiguration) *routev3.RouteConfiguration {
	if before == nil || !slices.Equal(c.VirtualHosts, before.VirtualHosts) || !slices.Equal(c.ResponseHeadersToRemove, before.ResponseHeadersToRemove) {
		return c
	}
	return before
}

// Whole returns one RouteConfiguration with the virtual hosts of all RouteConfigurations of a
// listener, for a listener that has no scopes. It has the name of the listener.
func Whole(listener string, routes []*routev3.RouteConfiguration) *routev3.RouteConfiguration {
	whole := &routev3.RouteConfiguration{}
	seen := map[*routev3.VirtualHost]bool{}
	for _, c := range routes {
		switch {
		case c.Name == listener:
			return c
		case ListenerOf(c.Name) != listener:
			continue
		case whole.Name == "":
			whole = proto.CloneOf(&routev3.RouteConfiguration{
				Name: listener, IgnorePortInHostMatching: c.IgnorePortInHostMatching, RequestHeadersToRemove: c.RequestHeadersToRemove,
				ResponseHeadersToRemove: c.ResponseHeadersToRemove, ValidateClusters: c.ValidateClusters,
			})
		}
		for _, host := range c.VirtualHosts {
			if !seen[host] {
				seen[host], whole.VirtualHosts = true, append(whole.VirtualHosts, host)
			}
		}
	}
	return whole
}

func routeConfiguration(name string, hosts []*routev3.VirtualHost, telemetry routing.Telemetry) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:                     name,
		VirtualHosts:             hosts,
		IgnorePortInHostMatching: true,
		RequestHeadersToRemove:   []string{"x-envoy-external-address", "x-envoy-internal", headerBucket}, // added by Envoy itself
		ResponseHeadersToRemove:  removedFromResponses(telemetry),
		ValidateClusters:         boolValue(false), // unresolved backends have no cluster
	}
}

// newScopes returns the scopes for both listeners, sorted by name. The name of a scope is its key.
func newScopes(shards int) []*routev3.ScopedRouteConfiguration {
	var scopes []*routev3.ScopedRouteConfiguration
	for _, listener := range []string{ListenerOpen, ListenerProtected} {
		for bucket := range buckets {
			scopes = append(scopes, newScope(bucketKey(listener)+strconv.Itoa(bucket), shardName(listener, shards, bucket%shards)))
		}
		for shard := range shards {
			name := shardName(listener, shards, shard)
			scopes = append(scopes, newScope(warmingPrefix+name, name))
		}
		first := listener
		if shards > 1 {
			first = routesAtStart
		}
		scopes = append(scopes, newScope(bucketKey(listener)+scopeAtStart, first))
	}
	if shards > 1 {
		scopes = append(scopes, newScope(warmingPrefix+routesAtStart, routesAtStart))
	}
	slices.SortFunc(scopes, func(a, b *routev3.ScopedRouteConfiguration) int { return strings.Compare(a.Name, b.Name) })
	return scopes
}

// bucketKey begins the keys for the buckets of a listener.
func bucketKey(listener string) string { return listener + "/" }

// warmingPrefix begins the key of a scope that no request has. Envoy requests a RouteConfiguration
// as soon as a scope names it, and returns 404 until it has the RouteConfiguration.
const warmingPrefix = "warming/"

// IsWarmingScope reports whether no request belongs to the scope with the name. Each
// RouteConfiguration has such a scope. Once Envoy has it and the RouteConfiguration, other scopes
// can name the RouteConfiguration without a lost request.
func IsWarmingScope(name string) bool { return strings.HasPrefix(name, warmingPrefix) }

func newScope(key, routes string) *routev3.ScopedRouteConfiguration {
	return &routev3.ScopedRouteConfiguration{
		Name: key, RouteConfigurationName: routes,
		Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{
			{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: key}},
		}},
	}
}
