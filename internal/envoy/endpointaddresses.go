package envoy

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// EndpointAddresses are the endpoints of a Service port as "address:port", by state.
type EndpointAddresses struct {
	Ready []string `json:"ready"`
	// Terminating are endpoints that still serve while they terminate. They get requests
	// while no endpoint is ready.
	Terminating []string `json:"terminating"`
	// Unready are the other endpoints. They get no requests.
	Unready []string `json:"unready"`
}

// AddressesOf returns all endpoints of the backend in its Service's EndpointSlices.
func AddressesOf(b routing.Backend, endpointSlices []*discoveryv1.EndpointSlice) EndpointAddresses {
	e := EndpointsOf{PortName: b.PortName, Family: b.Family}
	s := newScan([]EndpointsOf{e}, endpointSlices, func(string) bool { return false })
	inState := func(state endpointState) []string {
		found, _ := s.inState(e, state)
		texts := make([]string, len(found))
		for i, a := range found {
			// The scan returns valid addresses only.
			texts[i] = netip.AddrPortFrom(netip.MustParseAddr(a.ip), uint16(a.port)).String() //nolint:gosec // a port
		}
		return texts
	}
	return EndpointAddresses{inState(stateReady), inState(stateTerminating), inState(stateUnready)}
}

// ClusterIPOf returns the ClusterIP to which Envoy connects for a backend of the entry, or
// "" when it connects to the pods or looks up the Service's name.
func ClusterIPOf(t *routing.Table, e *routing.Entry, b routing.Backend) string {
	c := newClusters(t, nil)
	if discovery, address := discoveryOf(b, c.connection(e, b)); discovery == clusterv3.Cluster_STATIC {
		return address
	}
	return ""
}
