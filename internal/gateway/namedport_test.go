package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// namedPortsSnapshot has a team's routes with 256 backendRefs each, to ports of one
// headless Service, and EndpointSlices with these ports' numbers. admitted says whether
// the Gateway admits the team.
func namedPortsSnapshot(routes, endpointSlices, portsOfSlice int, admitted bool) *gateway.Snapshot {
	const refs = 256
	s := routesSnapshot()
	s.Namespaces["team"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if admitted {
		s.Gateway.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	}
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	for i := range int32(refs) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: 1000 + i, TargetPort: intstr.FromString(fmt.Sprintf("p%d", i))})
	}
	s.Services.Set(name, service)
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range portsOfSlice {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("p%d", i)), Port: new(int32(i + 1))})
	}
	s.EndpointSlices = byname.Map[[]*discoveryv1.EndpointSlice]{}
	for range endpointSlices {
		s.EndpointSlices.Set(name, append(s.EndpointSlices.Value(name), slice))
	}
	for i := range routes {
		route := httpRoute(routeMeta(fmt.Sprintf("route-%d", i), 0))
		route.Namespace = "team"
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "shared", Namespace: new(gatewayv1.Namespace("platform"))}}
		route.Spec.Rules = nil
		for rule := range refs / 16 {
			var backends []gatewayv1.HTTPBackendRef
			for i := range 16 {
				backend := webBackend()[0]
				backend.Port = new(gatewayv1.PortNumber(1000 + 16*rule + i))
				backends = append(backends, backend)
			}
			route.Spec.Rules = append(route.Spec.Rules, gatewayv1.HTTPRouteRule{BackendRefs: backends})
		}
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	return s
}

// A namespace that no listener admits must not make the controller resolve its backends.
func TestBackendsOfUnadmittedRoutesAreNotResolved(t *testing.T) {
	route := gateway.Build(namedPortsSnapshot(1, 0, 0, false), options).Routes[0]
	if route.Parents[0].Rejected == nil {
		t.Fatal("the route is admitted")
	}
	if route.Unresolved != nil {
		t.Errorf("the backends are resolved: %s", route.Unresolved.Message)
	}
}

// The loader reads Services and ReferenceGrants only for the routes that AdmitsRoute reports.
func TestOnlyAdmittedRoutesNeedServices(t *testing.T) {
	admitted, others := 0, 0
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		want := report(gateway.Build(s, randomOptions), s)
		admits := gateway.AdmitsRoute(s)
		reduced := *s
		reduced.Services = byname.Map[*corev1.Service]{}
		for _, route := range s.HTTPRoutes {
			if !admits(route) {
				others++
				continue
			}
			admitted++
			for _, rule := range route.Spec.Rules {
				for _, ref := range rule.BackendRefs {
					name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))), Name: string(ref.Name)}
					reduced.Services.Set(name, s.Services.Value(name))
				}
			}
		}
		if diff := cmp.Diff(want, report(gateway.Build(&reduced, randomOptions), &reduced)); diff != "" {
			t.Errorf("the statuses differ without the other Services (-want +got):\n%s", diff)
		}
	})
	if admitted < 100 || others < 100 {
		t.Errorf("%d admitted routes and %d others, want more of both", admitted, others)
	}
}

// An EndpointSlice can have 20,000 ports, and a Service any number of EndpointSlices.
func TestPortsOfAServiceAreLimited(t *testing.T) {
	route := gateway.Build(namedPortsSnapshot(1, 50, 20_000, true), options).Routes[0]
	if p := route.Parents[0].Rejected; p != nil && p.Reason != conditions.ReasonUnsupportedValue {
		t.Fatalf("the route is rejected: %s", p.Message)
	}
	want := "the EndpointSlices of headless Service team/web have more than 10000 ports together"
	if p := route.Unresolved; p == nil || p.Reason != conditions.ReasonBackendNotFound || !strings.Contains(p.Message, want) {
		t.Errorf("the backends have the problem %+v, want %s", p, want)
	}
}

// BenchmarkNamedTargetPorts measures Build for ten routes with 256 backendRefs each to a
// Service with 50 EndpointSlices of 20,000 ports. It must take less than 50 ms, whether
// or not a listener admits the routes.
func BenchmarkNamedTargetPorts(b *testing.B) {
	for _, admitted := range []bool{false, true} {
		b.Run(fmt.Sprintf("admitted=%t", admitted), func(b *testing.B) {
			s := namedPortsSnapshot(10, 50, 20_000, admitted)
			b.ReportAllocs()
			for b.Loop() {
				gateway.Build(s, options)
			}
		})
	}
}
