package controller

import (
	"context"
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// assigner assigns endpoints to one Service's clusters. [envoy.Assign] implements it.
type assigner func(clusters []envoy.EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) (envoy.Assignments, map[string]bool)

// endpointsRead has the EndpointSlices for Services at one time.
type endpointsRead struct {
	// number orders the reads for one publication: a later read has a higher number.
	number   int64
	services []serviceRead
	// reserved are the addresses to which no Service may lead.
	reserved map[string]bool
}

// serviceRead has one Service's EndpointSlices and clusters.
type serviceRead struct {
	clusters       []envoy.EndpointsOf
	endpointSlices []*discoveryv1.EndpointSlice
}

// readEndpoints reads the clusters' EndpointSlices from the cache, which does no I/O.
// The caller has locked p.mu, so that a read's number orders it by the age of its
// content.
func (e *envoys) readEndpoints(ctx context.Context, p *publication, clusters []envoy.EndpointsOf) (endpointsRead, error) {
	p.reads++
	read, err := e.readSlices(ctx, clusters)
	read.number = p.reads
	return read, err
}

// readSlices reads the clusters' EndpointSlices from the cache.
func (e *envoys) readSlices(ctx context.Context, clusters []envoy.EndpointsOf) (read endpointsRead, err error) {
	if len(clusters) == 0 {
		return read, nil
	}
	if read.reserved, err = state.ReservedAddresses(ctx, e.reader, e.namespace, e.podIPs); err != nil {
		return read, err
	}
	for ofOne := range envoy.BySource(clusters) {
		found, err := state.Endpoints(ctx, e.reader, ofOne[0].Service, ofOne[0].Import)
		if err != nil {
			return read, err
		}
		read.services = append(read.services, serviceRead{ofOne, found})
	}
	return read, nil
}

// assignment has one cluster's endpoints.
type assignment struct {
	cluster   envoy.EndpointsOf
	endpoints *envoy.Assignment
	// read is the number of the read that contains the endpoints, or 0 before the first
	// one.
	read int64
	// limited reports whether the cluster has more endpoints than Envoy gets.
	limited bool
}

// assign returns the clusters' endpoints. The caller must not have locked a mutex.
func (r endpointsRead) assign(assign assigner) []assignment {
	var all []assignment
	for _, s := range r.services {
		found, limited := assign(s.clusters, s.endpointSlices, func(ip string) bool { return r.reserved[ip] })
		for _, cluster := range s.clusters {
			all = append(all, assignment{cluster, found[cluster.Cluster], r.number, limited[cluster.Cluster]})
		}
	}
	return all
}

// covers reports whether the endpoints are those for the cluster, which can have another limit
// than before.
func (a assignment) covers(cluster envoy.EndpointsOf) bool {
	if a.endpoints == nil {
		return false
	}
	if a.cluster == cluster {
		return true
	}
	count := 0
	for _, locality := range a.endpoints.GetEndpoints() {
		count += len(locality.GetLbEndpoints())
	}
	a.cluster.Limit = cluster.Limit
	return a.cluster == cluster && !a.limited && count <= cluster.Limit
}

// expect adds the next publication's clusters, and returns those whose endpoints must be read.
// [envoys.publishEndpoints] keeps the other clusters' endpoints current.
func (p *publication) expect(next *envoy.Resources) (outdated []envoy.EndpointsOf) {
	changed := next.Endpoints
	if !p.hasOtherLimits {
		changed = envoy.EndpointsNotIn(p.resources.AllEndpoints(), next.Endpoints)
	}
	for _, cluster := range changed {
		known, ok := p.assigned[cluster.Cluster]
		isCovered := known.covers(cluster)
		if isCovered || !ok {
			known.cluster = cluster
			p.assigned[cluster.Cluster] = known
		}
		if !isCovered {
			outdated = append(outdated, cluster)
		}
	}
	p.next, p.hasOtherLimits = next, false
	return outdated
}

// keep keeps the assignments for expected and published clusters that are newer than
// the last ones, and returns them.
func (p *publication) keep(ctx context.Context, found []assignment) envoy.Assignments {
	newer := envoy.Assignments{}
	for _, a := range found {
		name := a.cluster.Cluster
		last, ok := p.assigned[name]
		if !ok || a.read <= last.read {
			continue
		}
		if a.limited && !last.limited {
			log.FromContext(ctx).Info("Envoy does not use all endpoints of a Service, because the clusters in its namespace share a limit",
				"service", a.cluster.Service, "port", a.cluster.PortName, "used", a.cluster.Limit)
		}
		if last.endpoints != nil && envoy.EqualAssignments(last.endpoints, a.endpoints) {
			a.endpoints = last.endpoints // the server recognizes it
		} else {
			p.markNewer(name)
		}
		p.hasOtherLimits = p.hasOtherLimits || a.cluster != last.cluster
		p.assigned[name], newer[name] = a, a.endpoints
	}
	return newer
}

// markNewer records that a cluster may have newer endpoints than in the last publication.
func (p *publication) markNewer(cluster string) {
	switch {
	case p.published == nil:
	case p.newer == nil:
		p.newer = map[string]bool{cluster: true}
	default:
		p.newer[cluster] = true
	}
}

// complete ends the publication in progress. It forgets the endpoints for the clusters in other
// resources, which may be nil, that are not in the last publication, and returns the Services and
// ServiceImports that only these clusters have.
func (p *publication) complete(other *envoy.Resources) (unused []envoy.EndpointSource) {
	p.next = nil
	for _, cluster := range envoy.EndpointsNotIn(p.resources.AllEndpoints(), other.AllEndpoints()) {
		if p.resources.HasEndpoints(cluster.Cluster) {
			continue // with another limit
		}
		delete(p.assigned, cluster.Cluster)
		if len(p.resources.EndpointsFrom(cluster.Source())) == 0 {
			unused = append(unused, cluster.Source())
		}
	}
	return unused
}

// assignments returns the newest endpoints for the resources' clusters. It copies the last publication's
// endpoints, and replaces the outdated ones.
func (p *publication) assignments(resources *envoy.Resources) envoy.Assignments {
	last, next := p.resources.AllEndpoints(), resources.Endpoints
	if p.published == nil {
		last = nil
	}
	dropped, added := envoy.EndpointsNotIn(next, last), envoy.EndpointsNotIn(last, next)
	if p.published != nil && len(dropped)+len(added)+len(p.newer) == 0 {
		return p.published
	}
	all := maps.Clone(p.published)
	if all == nil {
		all = make(envoy.Assignments, len(next))
	}
	for _, cluster := range dropped {
		delete(all, cluster.Cluster)
	}
	for _, cluster := range added {
		all[cluster.Cluster] = p.assigned[cluster.Cluster].endpoints
	}
	for cluster := range p.newer {
		if _, ok := all[cluster]; ok {
			all[cluster] = p.assigned[cluster].endpoints
		}
	}
	return all
}
