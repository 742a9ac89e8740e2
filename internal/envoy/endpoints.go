package envoy

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndpointsOf is a cluster whose addresses are pod addresses.
type EndpointsOf struct {
	Cluster string
	Service types.NamespacedName
	// Import reports whether Service is the name of a ServiceImport.
	Import bool
	// PortName is the name of the Service port.
	PortName string
	// Family is the first IP family of the Service, or empty when its manifest names
	// none.
	Family corev1.IPFamily
	// Limit is how many endpoints the cluster may have, or 0 for no limit.
	Limit int
}

// Source names the Service or ServiceImport whose EndpointSlices contain the endpoints.
func (e EndpointsOf) Source() EndpointSource { return EndpointSource{e.Service, e.Import} }

// EndpointSource is a Service or a ServiceImport. Both can have the same name.
type EndpointSource struct {
	types.NamespacedName
	Import bool
}

// String returns the name, and which kind it is unless it is a Service.
func (s EndpointSource) String() string {
	if s.Import {
		return "ServiceImport " + s.NamespacedName.String()
	}
	return s.NamespacedName.String()
}

// The limits on endpoints. One EndpointSlice can have 1,000 addresses and 100 ports, and
// each endpoint takes memory in every Envoy.
const (
	// MaxEndpointsPerNamespace limits the endpoints in all clusters for Services in one
	// namespace. The clusters share it equally.
	MaxEndpointsPerNamespace = 10_000
	// MinEndpointsPerCluster is how many endpoints each cluster can always have, even if
	// they exceed MaxEndpointsPerNamespace together.
	MinEndpointsPerCluster = 10
)

// limitEndpoints sets the limit for each cluster. It depends only on the clusters for the
// same namespace.
func limitEndpoints(all []EndpointsOf) {
	clusters := map[string]int{}
	inOne := func(e EndpointsOf) string { return e.Service.Namespace }
	for run := range runs(all, inOne) {
		clusters[inOne(run[0])] += len(run)
	}
	for run := range runs(all, inOne) {
		limit := EndpointLimit(clusters[inOne(run[0])])
		for i := range run {
			run[i].Limit = limit
		}
	}
}

// runs returns the parts of the list whose elements have the same key.
func runs[T any, K comparable](all []T, key func(T) K) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && key(all[n]) == key(all[0]) {
				n++
			}
			if !yield(all[:n:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// EndpointLimit returns the limit for each cluster in a namespace with so many clusters,
// at least one.
func EndpointLimit(clusters int) int {
	return max(MinEndpointsPerCluster, MaxEndpointsPerNamespace/clusters)
}

// Assignment has the endpoints for one cluster.
type Assignment = endpointv3.ClusterLoadAssignment

// EqualAssignments reports whether both have the same endpoints.
func EqualAssignments(a, b *Assignment) bool { return proto.Equal(a, b) }

// Assignments are by cluster name.
type Assignments map[string]*Assignment

// Assign returns the endpoints for all clusters in [Resources.Endpoints]. endpointSlices
// returns the EndpointSlices of a Service or ServiceImport.
func (r *Resources) Assign(endpointSlices func(EndpointSource) []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) Assignments {
	assignments := make(Assignments, len(r.Endpoints))
	for clusters := range BySource(r.Endpoints) {
		found, _ := Assign(clusters, endpointSlices(clusters[0].Source()), isReserved)
		maps.Copy(assignments, found)
	}
	return assignments
}

// BySource returns the clusters of each Service or ServiceImport in a list that is sorted by
// name.
func BySource(all []EndpointsOf) iter.Seq[[]EndpointsOf] { return runs(all, EndpointsOf.Source) }

// AllEndpoints returns [Resources.Endpoints], or nil for nil resources.
func (r *Resources) AllEndpoints() []EndpointsOf {
	if r == nil {
		return nil
	}
	return r.Endpoints
}

// HasEndpoints reports whether [Resources.Endpoints] has the cluster. It is false for nil
// resources.
func (r *Resources) HasEndpoints(cluster string) bool {
	all := r.AllEndpoints()
	i := position(all, cluster, EndpointsOf.cluster)
	return i < len(all) && all[i].Cluster == cluster
}

// EndpointsFrom returns those of [Resources.Endpoints] whose addresses are from the Service or
// ServiceImport. Nil resources have none.
func (r *Resources) EndpointsFrom(source EndpointSource) []EndpointsOf {
	var found []EndpointsOf
	for _, e := range withPrefix(r.AllEndpoints(), clusterPrefix(source), EndpointsOf.cluster) {
		if e.Source() == source {
			found = append(found, e)
		}
	}
	return found
}

func (e EndpointsOf) cluster() string { return e.Cluster }

// EndpointsNotIn returns the elements of a list that another one does not contain. Both are
// sorted by name.
func EndpointsNotIn(other, all []EndpointsOf) []EndpointsOf {
	if len(all) == len(other) && (len(all) == 0 || &all[0] == &other[0]) {
		return nil
	}
	var missing []EndpointsOf
	for _, e := range all {
		for len(other) > 0 && other[0].Cluster < e.Cluster {
			other = other[1:]
		}
		if len(other) == 0 || other[0] != e {
			missing = append(missing, e)
		}
	}
	return missing
}

// IsEmpty reports whether the cluster has no endpoints.
func (a Assignments) IsEmpty(cluster string) bool { return len(a[cluster].GetEndpoints()) == 0 }

// address is the address and port of a pod.
type address struct {
	ip   string
	port int32
}

// Assign returns endpoints for the clusters of one Service from its EndpointSlices: the
// ready endpoints, or, when none is ready, the endpoints that still serve while they
// terminate. limited are the clusters that do not get all of these because of their
// limit: they get the first endpoints from the first EndpointSlices by name. They leave out
// the addresses that no backend may have; see [routing.RefusedAddress], which also describes
// isReserved.
//
// How many addresses are read depends on the cluster limits, and not on the
// EndpointSlices.
func Assign(clusters []EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) (assignments Assignments, limited map[string]bool) {
	assignments, limited = make(Assignments, len(clusters)), map[string]bool{}
	s := newScan(clusters, endpointSlices, isReserved)
	for _, e := range clusters {
		found, more := s.endpoints(e)
		if more {
			limited[e.Cluster] = true
		}
		assignments[e.Cluster] = newAssignment(e.Cluster, found)
	}
	return assignments, limited
}

// newAssignment returns the addresses in a fixed order.
func newAssignment(cluster string, addresses []address) *Assignment {
	assignment := &Assignment{ClusterName: cluster}
	if len(addresses) == 0 {
		return assignment
	}
	slices.SortFunc(addresses, func(a, b address) int { return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.port, b.port)) })
	endpoints := make([]*endpointv3.LbEndpoint, len(addresses))
	for i, a := range addresses {
		endpoints[i] = lbEndpoint(a.ip, a.port)
	}
	assignment.Endpoints = []*endpointv3.LocalityLbEndpoints{{LbEndpoints: endpoints}}
	return assignment
}

func lbEndpoint(ip string, port int32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: socketAddress(ip, uint32(port)), //nolint:gosec // a port
	}}}
}

func socketAddress(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
