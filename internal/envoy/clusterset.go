package envoy

import (
	"maps"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// clusterSet contains the clusters for a table. It never changes.
type clusterSet struct {
	// all is sorted by name.
	all []usedCluster
	// presenting counts the clusters to which Envoy presents the client certificate.
	presenting int
}

// usedCluster is a cluster with the number of hosts that use it.
type usedCluster struct {
	*namedCluster
	uses int
}

// find returns the cluster with the content, or nil.
func (s *clusterSet) find(content *clusterContent) *clusterv3.Cluster {
	if s == nil {
		return nil
	}
	for _, c := range withPrefix(s.all, clusterPrefix(content.source()), usedCluster.name) {
		if c.content == *content {
			return c.Cluster
		}
	}
	return nil
}

func (c usedCluster) name() string { return c.Name }

// withPrefix returns the part of a list, sorted by name, whose names begin with the prefix.
func withPrefix[T any](all []T, prefix string, name func(T) string) []T {
	found := all[position(all, prefix, name):]
	if end := slices.IndexFunc(found, func(c T) bool { return !strings.HasPrefix(name(c), prefix) }); end >= 0 {
		return found[:end:end]
	}
	return found
}

// position returns the index of the first element of a list, sorted by name, whose name is not
// less.
func position[T any](all []T, least string, name func(T) string) int {
	i, _ := slices.BinarySearchFunc(all, least, func(c T, least string) int { return strings.Compare(name(c), least) })
	return i
}

// addClusters adds the clusters that the hosts use, by name. If they are those of the last
// resources, it adds the same lists.
func (r *renderer) addClusters(resources, last *Resources) {
	if last == nil || !r.reuses {
		r.dropped = nil
		resources.clusterSet, _ = r.clusterSet(&clusterSet{})
		resources.listClusters()
		resources.addCollector(nil)
		return
	}
	set, isChanged := r.clusterSet(last.clusterSet)
	resources.clusterSet = set
	if !isChanged {
		resources.Clusters, resources.Endpoints, resources.ByName = last.Clusters, last.Endpoints, last.ByName
		return
	}
	resources.listClusters()
	resources.addCollector(last)
}

// clusterSet returns the set before after hosts were added and dropped, and whether it has other
// clusters.
func (r *renderer) clusterSet(before *clusterSet) (set *clusterSet, isChanged bool) {
	uses := r.addedUses()
	set = &clusterSet{all: make([]usedCluster, 0, len(before.all)+len(uses)), presenting: before.presenting}
	added, rest := r.clusters.byName(), before.all
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		i := position(rest, name, usedCluster.name)
		set.all, rest = append(set.all, rest[:i]...), rest[i:]
		c, isKnown := usedCluster{namedCluster: added[name]}, false
		if len(rest) > 0 && rest[0].Name == name {
			c, isKnown, rest = rest[0], true, rest[1:]
		}
		if c.uses += uses[name]; c.uses > 0 {
			set.all = append(set.all, c)
		}
		if isUsed := c.uses > 0; isUsed != isKnown {
			isChanged = true
			set.count(c, isUsed)
		}
	}
	set.all = append(set.all, rest...)
	return set, isChanged
}

// count counts a cluster that is added or removed.
func (s *clusterSet) count(c usedCluster, isAdded bool) {
	switch {
	case !c.content.presents:
	case isAdded:
		s.presenting++
	default:
		s.presenting--
	}
}

// addedUses returns, by cluster, how many more hosts use it, if the number has changed.
func (r *renderer) addedUses() map[string]int {
	counts := map[string]int{}
	for _, host := range r.dropped {
		for _, name := range host.clusters {
			counts[name]--
		}
	}
	for _, host := range r.added {
		for _, name := range host.clusters {
			counts[name]++
		}
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// listClusters fills the lists of clusters, endpoints and names from the set.
func (r *Resources) listClusters() {
	lookedUp := map[string]routing.Backend{}
	all := r.clusterSet.all
	r.Clusters, r.Endpoints = make([]*clusterv3.Cluster, 0, len(all)+1), make([]EndpointsOf, 0, len(all))
	for _, cluster := range all {
		r.Clusters = append(r.Clusters, cluster.Cluster)
		b := &cluster.content.Backend
		if discovery := cluster.GetType(); discovery == clusterv3.Cluster_EDS {
			r.Endpoints = append(r.Endpoints, EndpointsOf{Cluster: cluster.Name, Service: b.Service, Import: b.Import, PortName: b.PortName, Family: b.Family})
		} else if discovery == clusterv3.Cluster_STRICT_DNS {
			lookedUp[b.Service.String()] = cluster.backend()
		}
	}
	limitEndpoints(r.Endpoints)
	for _, service := range slices.Sorted(maps.Keys(lookedUp)) {
		r.ByName = append(r.ByName, lookedUp[service])
	}
}

// addCollector adds the cluster for spans. With the same settings, it is the last one.
func (r *Resources) addCollector(last *Resources) {
	switch {
	case r.Telemetry.Tracing == nil:
	case last != nil:
		r.Clusters = append(r.Clusters, last.Clusters[len(last.Clusters)-1])
	default:
		r.Clusters = append(r.Clusters, collectorCluster(r.Telemetry.Tracing))
	}
}

// clustersOf returns the names of the clusters that routes use, each once.
func clustersOf(routes []*routev3.Route) []string {
	var names []string
	add := func(name string) {
		if name != "" && name != unresolvedCluster && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, route := range routes {
		action := route.GetRoute()
		add(action.GetCluster())
		for _, weighted := range action.GetWeightedClusters().GetClusters() {
			add(weighted.Name)
		}
		for _, mirror := range action.GetRequestMirrorPolicies() {
			add(mirror.Cluster)
		}
	}
	return names
}
