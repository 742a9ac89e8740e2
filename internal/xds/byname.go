package xds

import (
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// A new leader cannot always build a Gateway's routes: the Gateway may be gone, or not
// accepted. Its Envoys then serve the routes from an earlier leader, and must not send
// requests to an address after it has passed to another tenant's pod. So the server
// answers one resource type without a publication: the endpoints of the clusters to which
// an Envoy subscribes, whose names say which Services they are for. It sends nothing
// else, because an Envoy would remove everything that an answer lacks.
//
// The server remembers the clusters, and the caller of [Server.PublishByName] finds their
// endpoints. When the Gateway has a publication, its endpoints replace these. They are
// usually the same, so that nothing is sent.

// maxByName limits the clusters for each Gateway. Endpoints of further clusters do not
// change until there is a publication.
const maxByName = 50_000

// A client that subscribes to other clusters again and again causes all the endpoints to
// be read again each time. The next [Server.sweep] reports what is above the limit.
const (
	subscriptionBurst    = 5
	subscriptionInterval = 2 * time.Second
)

// byName are the clusters to whose endpoints a Gateway's Envoys subscribe without having
// the Gateway's routes. Server.mu guards it.
type byName struct {
	clusters map[string]*clusterByName
	bySource map[envoy.EndpointSource]map[string]*clusterByName
	// perNamespace counts the clusters for each namespace.
	perNamespace map[string]int
	// reads is the last number that [Server.Subscriptions] returned.
	reads uint64
	// endpoints are the known endpoints of the clusters. The map never changes. It is out of
	// date if isStale is true.
	endpoints resources
	isStale   bool
	// isUnreported reports whether [Options.Subscribed] has to be called, which reports
	// limits.
	isUnreported bool
	reports      *rate.Limiter
}

type clusterByName struct {
	envoy.ClusterName
	streams int
	// endpoints is nil until they are known. read is the number of the subscriptions for
	// which they were read.
	endpoints *resource
	read      uint64
}

func newByName() byName {
	return byName{
		clusters: map[string]*clusterByName{}, bySource: map[envoy.EndpointSource]map[string]*clusterByName{}, perNamespace: map[string]int{},
		reports: rate.NewLimiter(rate.Every(subscriptionInterval), subscriptionBurst),
	}
}

// Subscriptions are clusters to whose endpoints a Gateway's Envoys subscribe.
type Subscriptions struct {
	// Number increases with each call. The endpoints have to be read after the call.
	Number   uint64
	Clusters []envoy.ClusterName
	// Limits are how many endpoints a cluster may have, by namespace.
	Limits map[string]int
}

// Subscriptions returns the clusters to whose endpoints the Gateway's Envoys subscribe
// without having the Gateway's routes: the clusters for the source or, if it is empty, for
// all sources.
func (s *Server) Subscriptions(gateway types.NamespacedName, source envoy.EndpointSource) Subscriptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[gateway]
	if g == nil || len(g.byName.clusters) == 0 {
		return Subscriptions{}
	}
	all := g.byName.clusters
	if source != (envoy.EndpointSource{}) {
		all = g.byName.bySource[source]
	}
	g.byName.reads++
	found := Subscriptions{Number: g.byName.reads, Limits: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		cluster, namespace := all[name], all[name].Source.Namespace
		found.Clusters = append(found.Clusters, cluster.ClusterName)
		found.Limits[namespace] = envoy.EndpointLimit(g.byName.perNamespace[namespace])
	}
	return found
}

// Subscribers returns the Gateways that have [Server.Subscriptions] for the source or, if
// it is empty, for any source.
func (s *Server) Subscribers(source envoy.EndpointSource) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []types.NamespacedName
	for name, g := range s.gateways {
		isFound := len(g.byName.bySource[source]) > 0
		if source == (envoy.EndpointSource{}) {
			isFound = len(g.byName.clusters) > 0
		}
		if isFound {
			found = append(found, name)
		}
	}
	return found
}

// PublishByName replaces the endpoints for clusters in the [Server.Subscriptions] with the
// number. It keeps endpoints that were read for a later number, and ignores clusters to
// which no Envoy subscribes now. A cluster whose assignment is nil has no endpoints.
func (s *Server) PublishByName(gateway types.NamespacedName, number uint64, a envoy.Assignments) {
	s.mu.Lock()
	g := s.gateways[gateway]
	s.mu.Unlock()
	if g == nil {
		return
	}
	valid := resources{}
	for cluster := range a {
		r, err := newEndpoints(cluster, assignment(a, cluster))
		if err != nil {
			s.options.Logger.Error(err, "the endpoints of a cluster are not valid; Envoys keep the previous endpoints", "gateway", gateway, "cluster", cluster)
			continue
		}
		valid[cluster] = r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !g.byName.replace(number, valid) {
		return
	}
	for st := range g.streams {
		if st.byName != nil {
			st.notify()
		}
	}
}

// replace replaces endpoints, and reports whether some have changed.
func (b *byName) replace(number uint64, found resources) (changed bool) {
	for name, r := range found {
		cluster := b.clusters[name]
		if cluster == nil || cluster.read >= number {
			continue
		}
		cluster.read = number
		if cluster.endpoints.GetVersion() != r.Version {
			cluster.endpoints, b.isStale, changed = r, true, true
		}
	}
	return changed
}

// current returns the known endpoints.
func (b *byName) current() resources {
	if b.isStale {
		b.endpoints, b.isStale = make(resources, len(b.clusters)), false
		for name, cluster := range b.clusters {
			if cluster.endpoints != nil {
				b.endpoints[name] = cluster.endpoints
			}
		}
	}
	return b.endpoints
}

// follow adds the clusters to which the stream subscribes.
func (b *byName) follow(st *stream) {
	wanted := st.session.types[endpoints].names
	if st.byName == nil {
		st.byName = map[string]struct{}{}
		for name := range wanted {
			b.add(st, name)
		}
	} else {
		for _, name := range st.resubscribed {
			if _, ok := wanted[name]; ok {
				b.add(st, name)
			} else {
				b.remove(st, name)
			}
		}
	}
	st.resubscribed = nil
}

// leave removes the stream's clusters.
func (b *byName) leave(st *stream) {
	for name := range st.byName {
		b.remove(st, name)
	}
	st.byName, st.resubscribed = nil, nil
}

func (b *byName) add(st *stream, name string) {
	if _, ok := st.byName[name]; ok {
		return
	}
	cluster := b.clusters[name]
	if cluster == nil {
		parsed, ok := envoy.ParseClusterName(name)
		if !ok || len(b.clusters) >= maxByName {
			return
		}
		// Endpoints that were read earlier can be out of date: nothing followed them.
		cluster = &clusterByName{ClusterName: parsed, read: b.reads}
		cluster.Name = strings.Clone(name) // not a part of the request
		b.insert(cluster)
	}
	cluster.streams++
	st.byName[cluster.Name] = struct{}{}
}

func (b *byName) insert(cluster *clusterByName) {
	b.clusters[cluster.Name] = cluster
	if b.bySource[cluster.Source] == nil {
		b.bySource[cluster.Source] = map[string]*clusterByName{}
	}
	b.bySource[cluster.Source][cluster.Name] = cluster
	b.perNamespace[cluster.Source.Namespace]++
	b.isUnreported = true
}

func (b *byName) remove(st *stream, name string) {
	cluster := b.clusters[name]
	if _, ok := st.byName[name]; !ok || cluster == nil {
		return
	}
	delete(st.byName, name)
	if cluster.streams--; cluster.streams > 0 {
		return
	}
	delete(b.clusters, name)
	if delete(b.bySource[cluster.Source], name); len(b.bySource[cluster.Source]) == 0 {
		delete(b.bySource, cluster.Source)
	}
	if b.perNamespace[cluster.Source.Namespace]--; b.perNamespace[cluster.Source.Namespace] == 0 {
		delete(b.perNamespace, cluster.Source.Namespace)
	}
	b.isStale = true
	b.isUnreported = len(b.clusters) > 0 // the limits of the others can change
}

// takeReport reports whether [Options.Subscribed] is to be called now.
func (b *byName) takeReport(isDue bool) bool {
	if !b.isUnreported || len(b.clusters) == 0 || !isDue && !b.reports.Allow() {
		return false
	}
	b.isUnreported = false
	return true
}

// resubscribe remembers the clusters in a request, for [byName.follow].
func (st *stream) resubscribe(r *discoveryv3.DeltaDiscoveryRequest) {
	if r.TypeUrl == typeURLs[endpoints] {
		st.resubscribed = slices.Concat(st.resubscribed, r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe)
	}
}

// changedEndpoints returns the endpoints that the client does not have, and the clusters
// for whose endpoints it waits in vain.
func (s *session) changedEndpoints(sub *subscription) (added []*resource, removed []string) {
	all := s.target.of(endpoints)
	added = sub.missing(all)
	if s.target.isComplete() {
		return added, sub.absent(all.has)
	}
	for _, r := range sub.missingAmong(s.byName) {
		if !all.has(r.Name) {
			added = append(added, r)
		}
	}
	return added, nil
}
