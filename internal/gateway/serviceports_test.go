package gateway

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A decision resolves each Service port once, and reads the ports in its EndpointSlices
// once, however many backendRefs name them.
func TestEachPortIsResolvedOnce(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	slice := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new("a"), Port: new(int32(8080))}}}
	s := &Snapshot{
		Gateway: &gatewayv1.Gateway{},
		Services: byname.From(map[types.NamespacedName]*corev1.Service{name: {Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{
			{Name: "a", Port: 80, TargetPort: intstr.FromString("a")}, {Name: "b", Port: 81, TargetPort: intstr.FromString("b")},
		}}}}),
		EndpointSlices: byname.From(map[types.NamespacedName][]*discoveryv1.EndpointSlice{name: {slice}}),
	}
	r := newBackendResolver(s, newGrants(nil), "", routing.Capabilities{Protocols: []routing.Protocol{routing.ProtocolHTTP}}, "")
	resolve := func(number gatewayv1.PortNumber) (routing.Backend, *Problem) {
		return r.resolve(gatewayv1.BackendObjectReference{Name: "web", Port: &number}, &Route{NamespacedName: name})
	}
	first, problem := resolve(80)
	if problem != nil || first.Port != 8080 {
		t.Fatalf("port 80 resolves to %+v, %+v", first, problem)
	}
	_, missing := resolve(81)
	if missing == nil {
		t.Fatal("port 81 resolves")
	}
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("a"), Port: new(int32(1))}, {Name: new("b"), Port: new(int32(1))}}
	if again, _ := resolve(80); again != first {
		t.Errorf("port 80 is resolved again, to %+v", again)
	}
	if _, again := resolve(81); again != missing {
		t.Errorf("port 81 is resolved again: %+v", again)
	}
	delete(r.resolved, servicePortKey{name, 80})
	if again, _ := resolve(80); again != first {
		t.Errorf("the EndpointSlices are read again: %+v", again)
	}
}

// The API server does not check the port numbers in EndpointSlices, and cloudflared refuses
// the whole configuration for a URL with a bad one.
func TestPortNumbersOfEndpointSlicesAreChecked(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	for _, number := range []int32{-1, 0, 65536, 70000} {
		slice := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new("a"), Port: &number}}}
		s := &Snapshot{
			Gateway: &gatewayv1.Gateway{},
			Services: byname.From(map[types.NamespacedName]*corev1.Service{name: {Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{
				{Name: "a", Port: 80, TargetPort: intstr.FromString("a")},
			}}}}),
			EndpointSlices: byname.From(map[types.NamespacedName][]*discoveryv1.EndpointSlice{name: {slice}}),
		}
		r := newBackendResolver(s, newGrants(nil), "", routing.Capabilities{Protocols: []routing.Protocol{routing.ProtocolHTTP}}, "")
		backend, problem := r.resolve(gatewayv1.BackendObjectReference{Name: "web", Port: new(gatewayv1.PortNumber(80))}, &Route{NamespacedName: name})
		if problem == nil {
			t.Errorf("number %d resolves to %q", number, backend.URL("cluster.local"))
		}
	}
}

// A reference to a ServiceImport need not have a port.
func TestPortNumbersOfServiceImportsAreChecked(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "web"}
	for _, number := range []int32{-1, 0, 65536} {
		s := &Snapshot{Gateway: &gatewayv1.Gateway{}, ServiceImports: map[types.NamespacedName]*multicluster.ServiceImport{
			name: {Spec: multicluster.ServiceImportSpec{IPs: []string{"10.42.0.1"}, Ports: []multicluster.ServicePort{{Port: number}}}},
		}}
		r := newBackendResolver(s, newGrants(nil), "", routing.Capabilities{Protocols: []routing.Protocol{routing.ProtocolHTTP}}, "")
		ref := gatewayv1.BackendObjectReference{Group: new(gatewayv1.Group(multicluster.GroupName)), Kind: new(gatewayv1.Kind(multicluster.KindServiceImport)), Name: "web"}
		if number != 0 {
			ref.Port = new(gatewayv1.PortNumber(number))
		}
		if backend, problem := r.resolve(ref, &Route{NamespacedName: name}); problem == nil {
			t.Errorf("number %d resolves to %q", number, backend.URL("cluster.local"))
		}
	}
}
