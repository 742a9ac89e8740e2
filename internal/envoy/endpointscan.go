package envoy

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// scan reads the addresses in the EndpointSlices of one Service. It reads each address
// once, and only as many as the clusters need.
type scan struct {
	slices     []*scannedSlice // by name
	isReserved func(ip string) bool
}

// scannedSlice is an EndpointSlice and what a scan has read from it.
type scannedSlice struct {
	*discoveryv1.EndpointSlice
	// ports are the port numbers by the names that clusters use.
	ports map[string]int32
	// read are the addresses that have been read, by endpoint state.
	read [endpointStates]readAddresses
}

// readAddresses are the first addresses from the endpoints in one state.
type readAddresses struct {
	// ips are the canonical addresses. It contains an empty text for each address that no
	// cluster uses.
	ips []string
	// endpoint and address are the indexes at which reading continues.
	endpoint, address int
}

// endpointState says whether an endpoint gets requests.
type endpointState int

const (
	stateReady endpointState = iota
	// stateTerminating means that the endpoint still serves while it terminates.
	stateTerminating
	// stateUnready means that the endpoint gets no requests.
	stateUnready
	endpointStates int = iota
)

func newScan(clusters []EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(ip string) bool) *scan {
	names := make(map[string]bool, len(clusters))
	for _, e := range clusters {
		names[e.PortName] = true
	}
	s := &scan{isReserved: isReserved}
	for _, slice := range endpointSlices {
		if ports := portsOf(slice, names); len(ports) > 0 {
			s.slices = append(s.slices, &scannedSlice{EndpointSlice: slice, ports: ports})
		}
	}
	slices.SortStableFunc(s.slices, func(a, b *scannedSlice) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// portsOf returns the valid TCP port numbers in the slice for the names. The first port with
// a name counts.
func portsOf(slice *discoveryv1.EndpointSlice, names map[string]bool) map[string]int32 {
	ports := map[string]int32{}
	for i := range slice.Ports {
		p := &slice.Ports[i]
		name := ptr.Deref(p.Name, "")
		if p.Port == nil || !routing.IsPort(*p.Port) || !names[name] || ptr.Deref(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
			continue
		}
		if _, ok := ports[name]; !ok {
			ports[name] = *p.Port
		}
	}
	return ports
}

// endpoints returns the endpoints for a cluster up to its limit, and whether there are
// more.
func (s *scan) endpoints(e EndpointsOf) (found []address, more bool) {
	found, more = s.inState(e, stateReady)
	if len(found) > 0 {
		return found, more
	}
	found, moreTerminating := s.inState(e, stateTerminating)
	return found, more || moreTerminating
}

// inState returns the endpoints for a cluster in one state.
func (s *scan) inState(e EndpointsOf, state endpointState) (found []address, more bool) {
	seen, toRead := map[address]bool{}, e.maxRead()
	for _, slice := range s.slices {
		port, ok := slice.ports[e.PortName]
		if !ok || slice.AddressType != s.addressType(e) {
			continue
		}
		for i := 0; ; i++ {
			ip, ok := slice.ip(state, i, s.isReserved)
			if !ok {
				break
			}
			a := address{ip, port}
			isNew := ip != "" && !seen[a]
			if toRead == 0 || isNew && e.Limit > 0 && len(found) == e.Limit {
				return found, true
			}
			toRead--
			if isNew {
				seen[a], found = true, append(found, a)
			}
		}
	}
	return found, false
}

// maxRead returns how many addresses may be read for the cluster. It exceeds the limit,
// because EndpointSlices can repeat addresses for a while.
func (e EndpointsOf) maxRead() int {
	if e.Limit == 0 {
		return math.MaxInt
	}
	return 2*e.Limit + 100
}

// ip returns the address with the index among the endpoints in the state. It is empty if
// no cluster uses it. The index is at most the count of addresses read so far.
func (s *scannedSlice) ip(state endpointState, index int, isReserved func(ip string) bool) (ip string, ok bool) {
	read := &s.read[state]
	if index < len(read.ips) {
		return read.ips[index], true
	}
	for ; read.endpoint < len(s.Endpoints); read.endpoint, read.address = read.endpoint+1, 0 {
		e := &s.Endpoints[read.endpoint]
		if stateOf(e) != state || read.address == len(e.Addresses) {
			continue
		}
		ip = routing.CanonicalIP(e.Addresses[read.address])
		if ip != "" && routing.RefusedAddress(ip, isReserved) != "" {
			ip = ""
		}
		read.ips = append(read.ips, ip)
		read.address++
		return ip, true
	}
	return "", false
}

func stateOf(e *discoveryv1.Endpoint) endpointState {
	switch {
	case ptr.Deref(e.Conditions.Ready, true):
		return stateReady
	case ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false):
		return stateTerminating
	default:
		return stateUnready
	}
}

// addressType returns the address type of the EndpointSlices with the cluster's endpoints.
// IPv4 is the default. A ServiceImport need not name its IP families, so that it has IPv6
// if none of its EndpointSlices has IPv4.
func (s *scan) addressType(e EndpointsOf) discoveryv1.AddressType {
	isIPv4 := func(slice *scannedSlice) bool { return slice.AddressType == discoveryv1.AddressTypeIPv4 }
	if e.Family == corev1.IPv6Protocol || e.Import && e.Family == "" && !slices.ContainsFunc(s.slices, isIPv4) {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
