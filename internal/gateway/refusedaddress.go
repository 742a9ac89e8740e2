package gateway

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxAddressesPerSlice limits the addresses of one EndpointSlice that the controller
// checks. The EndpointSlice controller writes at most 1,000, but one EndpointSlice can have
// 100,000.
const maxAddressesPerSlice = 1_000

// RefusedAddress says why an EndpointSlice's addresses must not get requests, such as
// "contains 127.0.0.1, a loopback address", or returns "". The result depends on nothing
// but the addresses and the reserved addresses.
func RefusedAddress(slice *discoveryv1.EndpointSlice, isReserved func(ip string) bool) string {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return "" // neither kube-proxy nor Envoy gets these endpoints
	}
	count := 0
	for i := range slice.Endpoints {
		for _, text := range slice.Endpoints[i].Addresses {
			if count++; count > maxAddressesPerSlice {
				return fmt.Sprintf("contains more than %d addresses, which the controller does not check", maxAddressesPerSlice)
			}
			if refused := refusedIP(text, isReserved); refused != "" {
				return "contains " + refused
			}
		}
	}
	return ""
}

// refusedIP describes an address that no backend may have, or returns "". A text that is not
// an IP address gets no requests.
func refusedIP(text string, isReserved func(ip string) bool) string {
	ip := routing.CanonicalIP(text)
	if ip == "" {
		return ""
	}
	if refused := routing.RefusedAddress(ip, isReserved); refused != "" {
		return ip + ", " + refused
	}
	return ""
}

// isReserved reports whether a canonical address belongs to a connector or to the controller.
func (s *Snapshot) isReserved(ip string) bool { return s.Reserved[ip] }

// refusedSlice returns the problem with a Service whose ClusterIP would lead to an
// address that no backend may have, or nil. It checks each Service once.
func (r backendResolver) refusedSlice(service types.NamespacedName) *Problem {
	problem, ok := r.refused[service]
	if !ok {
		problem = newSliceProblem("Service", service, r.slices.Value(service), r.isReserved)
		r.refused[service] = problem
	}
	return problem
}

// newSliceProblem returns the problem with the first EndpointSlice, by name, that contains an
// address that no backend may have.
func newSliceProblem(kind string, name types.NamespacedName, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) *Problem {
	first, why := "", ""
	for _, slice := range endpointSlices {
		if refused := RefusedAddress(slice, isReserved); refused != "" && (first == "" || slice.Name < first) {
			first, why = slice.Name, refused
		}
	}
	if first == "" {
		return nil
	}
	return routeProblem(conditions.ReasonBackendNotFound,
		"%s %s gets no requests, because its EndpointSlice %s %s. Remove the address from the EndpointSlice", kind, name, first, why)
}
