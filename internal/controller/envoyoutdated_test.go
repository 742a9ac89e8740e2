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
// Gateway, and contains the newest ones of all others.
func TestPublicationAssignsOnlyNewServices(t *testing.T) {
	h := newLargeHarness(t, v1alpha1.DataPlaneEnvoy, 5)
	var assigned []string
	h.envoys.assign = func(clusters []envoy.EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(string) bool) (envoy.Assignments, map[string]bool) {
		assigned = append(assigned, clusters[0].Service.Name)
		return envoy.Assign(clusters, endpointSlices, isReserved)
	}
	others := []string{"web", routeName(0), routeName(2), routeName(3), routeName(4)}
	all := append(slices.Clone(others), routeName(1))
	for _, step := range []struct {
		name, backend string
		moves         map[string]string
		assigned      []string
		services      []string
		addresses     map[string]string
	}{
		{"the route leads to a Service that another route uses", routeName(0), nil, nil, others, map[string]string{routeName(3): "10.1.0.1"}},
		{"it leads to its own Service again", routeName(1), nil, []string{routeName(1)}, all, map[string]string{routeName(1): "10.1.0.1"}},
		{"both Services move", routeName(0), map[string]string{routeName(1): "10.1.0.2", routeName(3): "10.1.0.3"}, nil, others, map[string]string{routeName(3): "10.1.0.3"}},
		{"a Service moves that is not used", routeName(1), map[string]string{routeName(1): "10.1.0.4"}, []string{routeName(1)}, all, map[string]string{routeName(1): "10.1.0.4", routeName(3): "10.1.0.3"}},
	} {
		for service, address := range step.moves {
			h.move(service, address)
		}
		assigned = nil
		route := &gatewayv1.HTTPRoute{}
		h.change("infra", routeName(1), route, func() {
			route.Generation++
			route.Spec.Rules[0].BackendRefs[0].Name = gatewayv1.ObjectName(step.backend)
		})
		if reconciles := h.reconcileQueued(); reconciles != 1 {
			t.Errorf("%s: %d reconciles, want 1", step.name, reconciles)
		}
		if diff := cmp.Diff(step.assigned, assigned); diff != "" {
			t.Errorf("%s: the Services whose endpoints are assigned differ (-want +got):\n%s", step.name, diff)
		}
		h.wantEndpoints(step.name, step.services, step.addresses)
	}
}

// move changes the address of the Service's only pod.
func (h *harness) move(service, address string) {
	h.t.Helper()
	slice := &discoveryv1.EndpointSlice{}
	h.change("infra", service, slice, func() { slice.Endpoints[0].Addresses = []string{address} })
	h.waitForCache(slice)
	for _, f := range h.envoys.fromEndpointSlice(h.t.Context(), slice) {
		if err := h.envoys.publishEndpoints(h.t.Context(), f); err != nil {
			h.t.Fatal(err)
		}
	}
}

// wantEndpoints checks which Services the last publication has and follows, and the addresses of
// some.
func (h *harness) wantEndpoints(step string, services []string, addresses map[string]string) {
	h.t.Helper()
	published := addressesOf(h.xds.last(h.t).Assignments)
	for _, service := range services {
		if _, ok := published[service]; !ok || len(published) != len(services) {
			h.t.Errorf("%s: published the Services %v, want %v", step, published, services)
		}
		if following := len(h.memories.followersOf(serviceSource("infra", service))); following != 1 {
			h.t.Errorf("%s: %d Gateways follow %s, want 1", step, following, service)
		}
	}
	for service, want := range addresses {
		if published[service] != want {
			h.t.Errorf("%s: the Service %s has the address %q, want %q", step, service, published[service], want)
		}
	}
	if following := len(h.memories.followers.bySource); following != len(services) {
		h.t.Errorf("%s: %d Services are followed, want %d", step, following, len(services))
	}
}

// addressesOf returns the address of each Service, or "" if it has none.
func addressesOf(all envoy.Assignments) map[string]string {
	addresses := map[string]string{}
	for cluster, a := range all {
		service := strings.Split(cluster, ".")[2]
		addresses[service] = ""
		for _, locality := range a.GetEndpoints() {
			addresses[service] = locality.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
		}
	}
	return addresses
}
