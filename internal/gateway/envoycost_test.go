package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// renderedCost is what the Envoy resources cost.
type renderedCost struct{ size, origins, clusters int }

// costOfTenant returns what a tenant costs whose routes are as change makes them: one
// route for every name below example.com, and 60 routes for 16 names each.
func costOfTenant(t *testing.T, change func(c *tenantCluster, wide *gatewayv1.HTTPRoute)) renderedCost {
	t.Helper()
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	c.addWildcardRoute("team", 20, "")
	wide := c.HTTPRoutes[0]
	c.addHostnames("team", 60)
	c.Services.Set(types.NamespacedName{Namespace: "team", Name: "web"}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}},
	}})
	change(c, wide)
	table := gateway.Build(c.Snapshot, envoyOptions()).Table
	r := envoy.Render(table)
	cost := renderedCost{size: proto.Size(envoy.Whole(envoy.ListenerOpen, r.Routes)), clusters: len(r.Clusters)}
	for _, host := range table.Hosts() {
		for _, e := range host.Entries {
			if e.Action.CORS != nil {
				cost.origins += len(e.Action.CORS.AllowOrigins)
			}
		}
	}
	return cost
}

// A route's values are repeated for each hostname, so that one 1.3 MB object with a
// wildcard would otherwise become a 1.0 GB table, for which the controller and Envoy have
// no memory.
func TestLargeValuesAreLimited(t *testing.T) {
	for name, change := range map[string]func(c *tenantCluster, wide *gatewayv1.HTTPRoute){
		"headers of matches": func(_ *tenantCluster, wide *gatewayv1.HTTPRoute) {
			for i := range wide.Spec.Rules[0].Matches {
				for j := range 16 {
					wide.Spec.Rules[0].Matches[i].Headers = append(wide.Spec.Rules[0].Matches[i].Headers, gatewayv1.HTTPHeaderMatch{
						Name: gatewayv1.HTTPHeaderName(fmt.Sprintf("x-%d", j)), Value: strings.Repeat("v", 4096),
					})
				}
			}
		},
		"changed headers": func(_ *tenantCluster, wide *gatewayv1.HTTPRoute) {
			filter := &gatewayv1.HTTPHeaderFilter{}
			for j := range 16 {
				filter.Set = append(filter.Set, gatewayv1.HTTPHeader{Name: gatewayv1.HTTPHeaderName(fmt.Sprintf("x-%d", j)), Value: strings.Repeat("v", 4096)})
			}
			wide.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: filter}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if size := costOfTenant(t, change).size; size > 64<<20 {
				t.Errorf("the table has %d bytes, want at most 64 MiB", size)
			}
		})
	}
}

// If a route needs many rules because of its values, its status says so.
func TestLongValuesAreReported(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	filter := &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: "x-long", Value: strings.Repeat("v", 4096)}}}
	c.addRoute("team", "", 1, "").Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: filter}}
	setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(3))})
	rejected := gateway.Build(c.Snapshot, envoyOptions()).Routes[0].Parents[0].Rejected
	if rejected == nil || !strings.Contains(rejected.Message, "needs 5 Envoy routes") || !strings.Contains(rejected.Message, "Use fewer hostnames, matches and long values") {
		t.Errorf("the route is rejected with %+v", rejected)
	}
}

// Envoy compiles an expression of some KiB for each allowed origin with a wildcard, once
// for each route.
func TestOriginsAreLimited(t *testing.T) {
	cost := costOfTenant(t, func(_ *tenantCluster, wide *gatewayv1.HTTPRoute) {
		cors := &gatewayv1.HTTPCORSFilter{}
		for i := range 64 {
			cors.AllowOrigins = append(cors.AllowOrigins, gatewayv1.CORSOrigin(fmt.Sprintf("https://*.o%d.example.com", i)))
		}
		wide.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterCORS, CORS: cors}}
	})
	if cost.origins > 40_000 {
		t.Errorf("the routes have %d origins, want at most 40,000", cost.origins)
	}
}

// A route can have 16 backends and 16 mirrors in each rule, and Envoy needs 18 KiB for
// each Service port.
func TestBackendsAreLimited(t *testing.T) {
	cost := costOfTenant(t, func(c *tenantCluster, _ *gatewayv1.HTTPRoute) {
		setLimits(c.Snapshot, v1alpha1.Limits{RulesPerTunnel: new(int32(2000))})
		service := c.Services.Value(types.NamespacedName{Namespace: "team", Name: "web"})
		for port := range int32(16 * 1000) {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", port), Port: 1000 + port})
		}
		c.HTTPRoutes = nil
		for i := range 1000 {
			route := c.addRoute("team", "", 1, "")
			route.Spec.Rules[0].BackendRefs = nil
			for j := range 16 {
				backend := webBackend()[0]
				backend.Port = new(gatewayv1.PortNumber(1000 + 16*i + j))
				route.Spec.Rules[0].BackendRefs = append(route.Spec.Rules[0].BackendRefs, backend)
			}
		}
	})
	if cost.clusters > 2000 || cost.clusters < 1900 {
		t.Errorf("there are %d clusters, want about the limit of 2000", cost.clusters)
	}
}

// Every Service port is a cluster with all its endpoints, so that few objects could
// otherwise make Envoy keep millions.
func TestEndpointsAreLimited(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
	c.addNamespace("team", "")
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	c.Services.Set(name, service)
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range 1000 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/256, i%256)}})
	}
	for i := range 100 {
		port := corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(1000 + i)}
		service.Spec.Ports = append(service.Spec.Ports, port)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &port.Port})
		c.addRoute("team", "", 1, "").Spec.Rules[0].BackendRefs[0].Port = &port.Port
	}
	resources, endpoints := envoy.Render(gateway.Build(c.Snapshot, envoyOptions()).Table), 0
	assignments := resources.Assign(func(envoy.EndpointSource) []*discoveryv1.EndpointSlice { return []*discoveryv1.EndpointSlice{slice} }, func(string) bool { return false })
	for _, assignment := range assignments {
		for _, locality := range assignment.Endpoints {
			endpoints += len(locality.LbEndpoints)
		}
	}
	if len(assignments) != 100 {
		t.Fatalf("%d clusters have endpoints, want 100", len(assignments))
	}
	if endpoints != envoy.MaxEndpointsPerNamespace {
		t.Errorf("the clusters have %d endpoints, want %d", endpoints, envoy.MaxEndpointsPerNamespace)
	}
}
