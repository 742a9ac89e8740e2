package envoy

import (
	"cmp"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// EndpointsOf is a cluster whose addresses are the addresses of a Service's pods.
type EndpointsOf struct {
	// Cluster is the name of the cluster.
	Cluster string
	Service types.NamespacedName
	// PortName is the name of the Service's port.
	PortName string
	// Family is the first IP family of the Service, or empty when its manifest names none.
	Family corev1.IPFamily
	// Limit is the maximum number of endpoints, or 0 for no limit.
	Limit int
}

// The limits on endpoints. One EndpointSlice can have 1,000 addresses and 100 ports, and each
// endpoint of a cluster takes memory of every Envoy.
const (
	// MaxEndpointsPerNamespace is the maximum number of endpoints of all clusters for the Services
	// of one namespace. The clusters share it equally.
	MaxEndpointsPerNamespace = 10_000
	// MinEndpointsPerCluster is the number of endpoints that each cluster can have, even if they
	// exceed MaxEndpointsPerNamespace together.
	MinEndpointsPerCluster = 10
)

// limitEndpoints sets the limit of each cluster. It depends only on the clusters of the same
// namespace.
func limitEndpoints(all []EndpointsOf) {
	clusters := map[string]int{}
	for _, e := range all {
		clusters[e.Service.Namespace]++
	}
	for i := range all {
		all[i].Limit = max(MinEndpointsPerCluster, MaxEndpointsPerNamespace/clusters[all[i].Service.Namespace])
	}
}

// Assignments are the endpoints of clusters, by the name of the cluster.
type Assignments map[string]*endpointv3.ClusterLoadAssignment

// Assign returns the endpoints of all clusters in [Resources.Endpoints]. endpointSlices
// returns the EndpointSlices of a Service.
func (r *Resources) Assign(endpointSlices func(service types.NamespacedName) []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) Assignments {
	assignments := make(Assignments, len(r.Endpoints))
	for _, e := range r.Endpoints {
		assignments[e.Cluster], _ = Assign(e, endpointSlices(e.Service), isReserved)
	}
	return assignments
}

// IsEmpty reports whether the cluster has no endpoints.
func (a Assignments) IsEmpty(cluster string) bool { return len(a[cluster].GetEndpoints()) == 0 }

// address is an address and port of a pod.
type address struct {
	ip   string
	port int32
}

// Assign returns the endpoints of a cluster from the EndpointSlices of its Service: the ready
// endpoints, or, when none is ready, the endpoints that still serve while they terminate.
// omitted is the number of endpoints above the limit: those with the last addresses.
// isReserved reports canonical addresses that no Service may lead to, such as the addresses of
// the connectors' own pods: the owner of a Service can write its EndpointSlices.
func Assign(e EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) (assignment *endpointv3.ClusterLoadAssignment, omitted int) {
	ready, terminating := map[address]struct{}{}, map[address]struct{}{}
	for _, slice := range endpointSlices {
		if slice.AddressType != addressType(e.Family) {
			continue
		}
		port, ok := portOf(slice, e.PortName)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			collect(&slice.Endpoints[i], port, isReserved, ready, terminating)
		}
	}
	if len(ready) == 0 {
		ready = terminating
	}
	assignment = &endpointv3.ClusterLoadAssignment{ClusterName: e.Cluster}
	if len(ready) == 0 {
		return assignment, 0
	}
	all := slices.SortedFunc(maps.Keys(ready), func(a, b address) int { return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.port, b.port)) })
	if e.Limit > 0 && len(all) > e.Limit {
		all, omitted = all[:e.Limit], len(all)-e.Limit
	}
	var endpoints []*endpointv3.LbEndpoint
	for _, a := range all {
		endpoints = append(endpoints, lbEndpoint(a.ip, a.port))
	}
	assignment.Endpoints = []*endpointv3.LocalityLbEndpoints{{LbEndpoints: endpoints}}
	return assignment, omitted
}

// addressType returns the type of slices for a family. IPv4 is the default.
func addressType(family corev1.IPFamily) discoveryv1.AddressType {
	if family == corev1.IPv6Protocol {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// portOf returns the number of the port with the name.
func portOf(slice *discoveryv1.EndpointSlice, name string) (int32, bool) {
	for _, p := range slice.Ports {
		isTCP := ptr.Deref(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP
		if isTCP && ptr.Deref(p.Name, "") == name && p.Port != nil {
			return *p.Port, true
		}
	}
	return 0, false
}

// collect adds the addresses of an endpoint to the ready or the terminating addresses.
func collect(e *discoveryv1.Endpoint, port int32, isReserved func(string) bool, ready, terminating map[address]struct{}) {
	isReady := ptr.Deref(e.Conditions.Ready, true)
	stillServes := ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false)
	for _, text := range e.Addresses {
		ip := routing.CanonicalIP(text)
		switch {
		case ip == "", isReserved(ip):
		case isReady:
			ready[address{ip, port}] = struct{}{}
		case stillServes:
			terminating[address{ip, port}] = struct{}{}
		}
	}
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
