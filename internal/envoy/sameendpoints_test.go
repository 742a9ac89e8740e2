package envoy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Clusters with another limit that is not reached get the same endpoints, and no others count as
// the same.
func TestLimitsThatAreNotReachedChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a reproducible test
	same := 0
	for step := range 2000 {
		var list []*discoveryv1.EndpointSlice
		for i := range random.IntN(4) {
			slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}}}
			slice.Name = fmt.Sprint(i)
			for range random.IntN(4) {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses:  []string{fmt.Sprintf("10.0.0.%d", random.IntN(9))},
					Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(random.IntN(3) > 0), Serving: ptr.To(true), Terminating: ptr.To(true)},
				})
			}
			list = append(list, slice)
		}
		a, b := envoy.EndpointsOf{Cluster: "c", Limit: random.IntN(12)}, envoy.EndpointsOf{Cluster: "c", Limit: random.IntN(12)}
		if random.IntN(4) == 0 {
			b.PortName = "other"
		}
		if !a.HasSameEndpoints(b, list) {
			continue
		}
		if a.Limit != b.Limit {
			same++
		}
		assign := func(e envoy.EndpointsOf) *envoy.Assignment {
			found, _ := envoy.Assign([]envoy.EndpointsOf{e}, list, func(string) bool { return false })
			return found["c"]
		}
		if x, y := assign(a), assign(b); !envoy.EqualAssignments(x, y) {
			t.Fatalf("step %d: with the limits %d and %d, the endpoints are %v and %v", step, a.Limit, b.Limit, x, y)
		}
	}
	if same < 100 {
		t.Errorf("%d pairs of clusters with different limits have the same endpoints, want at least 100", same)
	}
}
