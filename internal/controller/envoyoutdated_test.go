package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// A publication after a change assigns only the endpoints of Services that are new for the
// Gateway or have other EndpointSlices, and contains all of them.
func TestPublicationAssignsOnlyOutdatedEndpoints(t *testing.T) {
	h := newLargeHarness(t, v1alpha1.DataPlaneEnvoy, 5)
	var assigned []string
	h.envoys.assign = func(clusters []envoy.EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(string) bool) (envoy.Assignments, map[string]bool) {
		assigned = append(assigned, clusters[0].Service.Name)
		return envoy.Assign(clusters, endpointSlices, isReserved)
	}
	moveSlice := func(service, address string) {
		slice := &discoveryv1.EndpointSlice{}
		h.change("infra", service, slice, func() { slice.Endpoints[0].Addresses = []string{address} })
		h.waitForCache(slice)
	}
	for _, step := range []struct {
		name, backend string
		before        func()
		assigned      []string
		services      int
		address       string // of Service r00003
	}{
		{"the route leads to a Service that another route uses", routeName(0), func() {}, nil, 5, "10.1.0.1"},
		{"the route leads to its own Service again", routeName(1), func() {}, []string{routeName(1)}, 6, "10.1.0.1"},
		{"the endpoints of another Service have changed", routeName(0), func() { moveSlice(routeName(3), "10.1.0.2") }, []string{routeName(3)}, 5, "10.1.0.2"},
		{"both", routeName(1), func() { moveSlice(routeName(3), "10.1.0.3") }, []string{routeName(1), routeName(3)}, 6, "10.1.0.3"},
	} {
		step.before()
		route := &gatewayv1.HTTPRoute{}
		assigned = nil
		h.change("infra", routeName(1), route, func() {
			route.Generation++
			route.Spec.Rules[0].BackendRefs[0].Name = gatewayv1.ObjectName(step.backend)
		})
		if reconciles := h.reconcileQueued(); reconciles != 1 {
			t.Errorf("%s: %d reconciles, want 1", step.name, reconciles)
		}
		slices.Sort(assigned)
		if diff := cmp.Diff(step.assigned, assigned); diff != "" {
			t.Errorf("%s: the Services whose endpoints are assigned differ (-want +got):\n%s", step.name, diff)
		}
		published := h.xds.publications[len(h.xds.publications)-1].Assignments
		if len(published) != step.services {
			t.Errorf("%s: %d clusters have endpoints, want %d", step.name, len(published), step.services)
		}
		addresses := map[string]string{}
		for cluster, a := range published {
			service := strings.Split(cluster, ".")[2]
			if isEmpty := len(a.GetEndpoints()) == 0; isEmpty != (service == "web") { // it has no EndpointSlice
				t.Errorf("%s: the Service %s has no endpoints: %t", step.name, service, isEmpty)
			} else if !isEmpty {
				addresses[service] = a.GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
			}
		}
		if got := addresses[routeName(3)]; got != step.address {
			t.Errorf("%s: the Service %s has the address %q, want %q", step.name, routeName(3), got, step.address)
		}
	}
}
