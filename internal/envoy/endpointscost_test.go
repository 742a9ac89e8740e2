package envoy_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// largeService returns the clusters for one Service with 100 ports, and its 20
// EndpointSlices: each has 1,000 endpoints with 85 addresses. Together they are 23.6 MB
// as JSON.
func largeService() (*envoy.Resources, []*discoveryv1.EndpointSlice) {
	const ports, slices, endpoints, addresses = 100, 20, 1000, 85
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	resources := &envoy.Resources{}
	slice := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range ports {
		port := fmt.Sprintf("p%d", i)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port, Port: new(int32(1000 + i))})
		resources.Endpoints = append(resources.Endpoints, envoy.EndpointsOf{
			Cluster: port, Service: name, PortName: port, Limit: envoy.MaxEndpointsPerNamespace / ports,
		})
	}
	all := make([]*discoveryv1.EndpointSlice, slices)
	for i := range all {
		all[i] = slice.DeepCopy()
		all[i].Name = fmt.Sprintf("web-%d", i)
		for j := range endpoints {
			e := discoveryv1.Endpoint{}
			for k := range addresses {
				n := (i*endpoints+j)*addresses + k
				e.Addresses = append(e.Addresses, fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255))
			}
			all[i].Endpoints = append(all[i].Endpoints, e)
		}
	}
	return resources, all
}

// assign returns how many endpoints there are, and how many addresses were read for them.
func assign(r *envoy.Resources, endpointSlices []*discoveryv1.EndpointSlice) (endpoints, read int) {
	assignments := r.Assign(func(envoy.EndpointSource) []*discoveryv1.EndpointSlice { return endpointSlices }, func(string) bool {
		read++
		return false
	})
	for _, a := range assignments {
		for _, locality := range a.Endpoints {
			endpoints += len(locality.LbEndpoints)
		}
	}
	return endpoints, read
}

// A Service owner decides how many addresses its EndpointSlices have.
func TestScanOfEndpointsIsBounded(t *testing.T) {
	r, endpointSlices := largeService()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	endpoints, read := assign(r, endpointSlices)
	runtime.ReadMemStats(&after)
	if endpoints != envoy.MaxEndpointsPerNamespace {
		t.Errorf("%d endpoints, want %d", endpoints, envoy.MaxEndpointsPerNamespace)
	}
	if read > 1000 {
		t.Errorf("%d addresses are read, want each once, and about as many as each port has endpoints", read)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
		t.Errorf("%d bytes are allocated, want at most 64 MiB", allocated)
	}
}

// The limit on addresses also bounds the scan over addresses that no cluster gets: the
// same address again, reserved addresses, and text that is not an address.
func TestScanOfUnusedAddressesIsBounded(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "10.0.9.9", "none"} {
		endpoint := discoveryv1.Endpoint{}
		for range 100 {
			endpoint.Addresses = append(endpoint.Addresses, text)
		}
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}}}
		for range 1000 {
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		read := 0
		_, limited := envoy.Assign([]envoy.EndpointsOf{{Cluster: "c", Limit: 10}}, []*discoveryv1.EndpointSlice{slice, slice}, func(ip string) bool {
			read++
			return ip == "10.0.9.9"
		})
		if read > 200 || !limited["c"] {
			t.Errorf("%d addresses %q are read, and the cluster is limited: %t; want at most 200, and true", read, text, limited["c"])
		}
	}
}

// A cluster above its limit gets the endpoints from the first EndpointSlices by name, in
// any list order. A cluster at its limit gets all.
func TestClustersAboveTheirLimitGetTheFirstEndpointSlices(t *testing.T) {
	endpointSlice := func(name string, ips ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}}}
		s.Name = name
		for _, ip := range ips {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}})
		}
		return s
	}
	a, b := endpointSlice("a", "10.0.0.9", "10.0.0.8"), endpointSlice("b", "10.0.0.1", "10.0.0.9")
	for limit, want := range map[int]string{0: "10.0.0.1 10.0.0.8 10.0.0.9", 1: "10.0.0.9 limited", 2: "10.0.0.8 10.0.0.9 limited", 3: "10.0.0.1 10.0.0.8 10.0.0.9"} {
		for _, list := range [][]*discoveryv1.EndpointSlice{{a, b}, {b, a}} {
			assignments, limited := envoy.Assign([]envoy.EndpointsOf{{Cluster: "c", Limit: limit}}, list, func(string) bool { return false })
			var got []string
			for _, e := range assignments["c"].Endpoints[0].LbEndpoints {
				got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
			if limited["c"] {
				got = append(got, "limited")
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("with the limit %d, the endpoints are %s, want %s", limit, text, want)
			}
		}
	}
}

// BenchmarkAssign measures Assign for a Service with 100 ports and 23.6 MB of
// EndpointSlices. It must take less than 300 ms and 64 MiB.
func BenchmarkAssign(b *testing.B) {
	r, endpointSlices := largeService()
	b.ReportAllocs()
	addresses := 0
	for b.Loop() {
		_, addresses = assign(r, endpointSlices)
	}
	b.ReportMetric(float64(addresses), "addresses/op")
}
