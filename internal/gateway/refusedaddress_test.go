package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

func sliceWith(name string, addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}},
	}
}

func many(count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
	}
	return all
}

func TestRefusedAddressOfAnEndpointSlice(t *testing.T) {
	isReserved := func(ip string) bool { return ip == "10.244.0.9" }
	names := sliceWith("a", "127.0.0.1")
	names.AddressType = discoveryv1.AddressTypeFQDN
	for name, test := range map[string]struct {
		slice *discoveryv1.EndpointSlice
		want  string
	}{
		"none":                        {sliceWith("a"), ""},
		"pods":                        {sliceWith("a", "10.0.0.1", "10.0.0.2"), ""},
		"loopback":                    {sliceWith("a", "10.0.0.1", "127.0.0.1"), "contains 127.0.0.1, a loopback address"},
		"a connector as IPv6":         {sliceWith("a", "::ffff:10.244.0.9"), "contains 10.244.0.9, the address of a connector or of the controller"},
		"text":                        {sliceWith("a", "not an address", "localhost"), ""},
		"names":                       {names, ""},
		"the limit":                   {sliceWith("a", many(maxAddressesPerSlice)...), ""},
		"over the limit":              {sliceWith("a", many(maxAddressesPerSlice+1)...), "contains more than 1000 addresses, which the controller does not check"},
		"over the limit and loopback": {sliceWith("a", append(many(maxAddressesPerSlice), "127.0.0.1")...), "contains more than 1000 addresses, which the controller does not check"},
	} {
		if got := RefusedAddress(test.slice, isReserved); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// resolverFor returns a resolver for Envoy and the Service team/web with the EndpointSlices.
func resolverFor(endpointSlices ...*discoveryv1.EndpointSlice) (*backendResolver, func(kind string) *Problem) {
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	s := &Snapshot{
		Gateway:        &gatewayv1.Gateway{},
		Services:       byname.From(map[types.NamespacedName]*corev1.Service{name: {Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}}}}}),
		EndpointSlices: byname.From(map[types.NamespacedName][]*discoveryv1.EndpointSlice{name: endpointSlices}),
		Reserved:       map[string]bool{"10.244.0.9": true},
	}
	r := newBackendResolver(s, newGrants(nil), "", routing.Capabilities{
		Protocols: []routing.Protocol{routing.ProtocolHTTP}, FollowsEndpoints: true, NeedsClusterIP: true,
	}, v1alpha1.BackendsService)
	return &r, func(kind string) *Problem {
		_, problem := r.resolve(gatewayv1.BackendObjectReference{Name: "web", Port: new(gatewayv1.PortNumber(80))}, &Route{Kind: kind, NamespacedName: name})
		return problem
	}
}

// A Service whose ClusterIP can lead to a connector does not resolve. The message names the
// first EndpointSlice, so that their order does not change it.
func TestConnectorBehindAClusterIP(t *testing.T) {
	endpointSlices := []*discoveryv1.EndpointSlice{sliceWith("c", "127.0.0.1"), sliceWith("b", "10.244.0.9"), sliceWith("a", "10.0.0.1")}
	for range 2 {
		_, resolve := resolverFor(endpointSlices...)
		problem := resolve(routing.KindHTTPRoute)
		if problem == nil || !strings.Contains(problem.Message, "its EndpointSlice b contains 10.244.0.9, the address of a connector") {
			t.Errorf("the reference resolves, or the message is wrong: %+v", problem)
		}
		// Envoy gets the endpoints and leaves out the address.
		if problem := resolve(routing.KindGRPCRoute); problem != nil {
			t.Errorf("a GRPCRoute does not resolve: %+v", problem)
		}
		slices.Reverse(endpointSlices)
	}
	if _, resolve := resolverFor(sliceWith("a", "10.0.0.1")); resolve(routing.KindHTTPRoute) != nil {
		t.Error("a Service without such an address does not resolve")
	}
}

// A tenant decides how many addresses an EndpointSlice has. One decision reads at most
// 1,000 of each, once, however many references there are.
func TestCheckingAddressesIsCheap(t *testing.T) {
	endpointSlices := make([]*discoveryv1.EndpointSlice, 50)
	for i := range endpointSlices {
		endpointSlices[i] = sliceWith(fmt.Sprint(i), many(60_000)...)
	}
	r, resolve := resolverFor(endpointSlices...)
	read := 0
	r.isReserved = func(string) bool { read++; return false }
	for range 10_000 {
		if resolve(routing.KindHTTPRoute) == nil {
			t.Fatal("the reference resolves")
		}
	}
	if most := 50 * maxAddressesPerSlice; read > most {
		t.Errorf("10,000 references read %d addresses, want at most %d", read, most)
	}
}

// BenchmarkRefusedAddresses checks the addresses of one build: 5,000 Services with 3 pods
// each, and 500 Services with 100 pods each.
func BenchmarkRefusedAddresses(b *testing.B) {
	for _, size := range []struct{ services, pods int }{{5000, 3}, {500, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size.services, size.pods), func(b *testing.B) {
			s := &Snapshot{Gateway: &gatewayv1.Gateway{}, Reserved: map[string]bool{"10.244.0.9": true}}
			for i := range size.services {
				name := types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}
				s.EndpointSlices.Set(name, []*discoveryv1.EndpointSlice{sliceWith(name.Name, many(size.pods)...)})
			}
			for b.Loop() {
				r := newBackendResolver(s, newGrants(nil), "", routing.Capabilities{}, "")
				for name := range s.EndpointSlices.All() {
					if r.refusedSlice(name) != nil {
						b.Fatal("an address is refused")
					}
				}
			}
		})
	}
}
