package envoy

import (
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// clusterSet contains the clusters for a table. It never changes.
type clusterSet struct {
	byName    map[string]*namedCluster
	byContent map[clusterContent]*clusterv3.Cluster
	// uses counts the hosts that use a cluster, by its name.
	uses map[string]int
	// presents reports whether Envoy presents the client certificate to one of the clusters.
	presents bool
}

// find returns the cluster with the content, or nil.
func (s *clusterSet) find(content clusterContent) *clusterv3.Cluster {
	if s == nil {
		return nil
	}
	return s.byContent[content]
}

// addClusters adds the clusters that the hosts use, by name. If they are those of the last
// resources, it adds the same lists.
func (r *renderer) addClusters(resources, last *Resources) {
	if last == nil || !r.reuses {
		r.dropped = nil
		resources.clusterSet = newClusterSet(r.uses(map[string]int{}), r.clusters, nil)
		resources.listClusters()
		resources.addCollector(nil)
		return
	}
	before := last.clusterSet
	uses := r.uses(maps.Clone(before.uses))
	if len(uses) == len(before.uses) && !r.addsClusters(before) {
		set := *before
		set.uses = uses
		resources.clusterSet = &set
		resources.Clusters, resources.Endpoints, resources.ByName, resources.bySource = last.Clusters, last.Endpoints, last.ByName, last.bySource
		return
	}
	resources.clusterSet = newClusterSet(uses, r.clusters, before)
	resources.listClusters()
	resources.addCollector(last)
}

// addsClusters reports whether an added host uses a cluster that the set does not contain.
func (r *renderer) addsClusters(before *clusterSet) bool {
	return slices.ContainsFunc(r.added, func(h *renderedHost) bool {
		return slices.ContainsFunc(h.clusters, func(name string) bool { return before.uses[name] == 0 })
	})
}

// uses adds the clusters that hosts use to the counts before.
func (r *renderer) uses(counts map[string]int) map[string]int {
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
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n <= 0 })
	return counts
}

// newClusterSet returns the clusters in uses, which are new or in the set before.
func newClusterSet(uses map[string]int, added *clusters, before *clusterSet) *clusterSet {
	set := &clusterSet{uses: uses, byName: make(map[string]*namedCluster, len(uses)), byContent: make(map[clusterContent]*clusterv3.Cluster, len(uses))}
	add := func(c *namedCluster) {
		if uses[c.Name] > 0 {
			set.byName[c.Name], set.byContent[c.content] = c, c.Cluster
			set.presents = set.presents || c.content.presents
		}
	}
	if before != nil {
		for _, c := range before.byName {
			add(c)
		}
	}
	for _, c := range added.byKey {
		add(c)
	}
	return set
}

// listClusters fills the lists of clusters, endpoints and names from the set.
func (r *Resources) listClusters() {
	lookedUp := map[string]routing.Backend{}
	for _, name := range slices.Sorted(maps.Keys(r.clusterSet.byName)) {
		cluster := r.clusterSet.byName[name]
		r.Clusters = append(r.Clusters, cluster.Cluster)
		b := cluster.backend
		if discovery := cluster.GetType(); discovery == clusterv3.Cluster_EDS {
			r.Endpoints = append(r.Endpoints, EndpointsOf{Cluster: name, Service: b.Service, Import: b.Import, PortName: b.PortName, Family: b.Family})
		} else if discovery == clusterv3.Cluster_STRICT_DNS {
			lookedUp[b.Service.String()] = b
		}
	}
	limitEndpoints(r.Endpoints)
	r.bySource = groupBySource(r.Endpoints)
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
