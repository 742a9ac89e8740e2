package state_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// BenchmarkLoad measures the time per ListenerSet on a Gateway. It must grow by no more
// than 1.3 times from 1,000 to 10,000 ListenerSets.
func BenchmarkLoad(b *testing.B) {
	for _, cluster := range []struct {
		name    string
		backend func(i int) types.NamespacedName
	}{
		{"ListenerSets", func(i int) types.NamespacedName {
			return types.NamespacedName{Namespace: fmt.Sprintf("backend-%d", i), Name: "web"}
		}},
		{"Services-of-namespace", func(i int) types.NamespacedName {
			return types.NamespacedName{Namespace: "backend", Name: fmt.Sprintf("web-%d", i)}
		}},
	} {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/objects=%d", cluster.name, n), func(b *testing.B) { benchmarkLoad(b, n, cluster.backend) })
		}
	}
}

func benchmarkLoad(b *testing.B, n int, backend func(i int) types.NamespacedName) {
	reader, err := state.NewMemory(tenants(n, backend), state.Indexes(controllerName))
	if err != nil {
		b.Fatal(err)
	}
	loader := newLoader(reader)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loader.Load(b.Context(), state.GatewayKey("infra", "shared")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
}

// tenants returns a Gateway, and a ListenerSet and a route in each of n namespaces.
// Each route's backend is a headless Service with a named port in another namespace.
func tenants(n int, backendOf func(i int) types.NamespacedName) []client.Object {
	objects := []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName}},
		&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"}, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "tunnel",
			AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
		}},
	}
	for i := range n {
		tenant, backend := fmt.Sprintf("tenant-%d", i), backendOf(i)
		web := metav1.ObjectMeta{Namespace: backend.Namespace, Name: backend.Name, Labels: map[string]string{discoveryv1.LabelServiceName: backend.Name}}
		route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "site"}}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Kind: new(gatewayv1.Kind("ListenerSet")), Name: "site"}}
		route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Namespace: new(gatewayv1.Namespace(backend.Namespace)), Name: gatewayv1.ObjectName(backend.Name), Port: new(gatewayv1.PortNumber(80))},
		}}}}}
		objects = append(objects, route,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}},
			&gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "site"}, Spec: gatewayv1.ListenerSetSpec{
				ParentRef: gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace("infra")), Name: "shared"},
				Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
			}},
			&gatewayv1beta1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: backend.Namespace, Name: tenant}},
			&corev1.Service{ObjectMeta: web, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
			}},
			&discoveryv1.EndpointSlice{ObjectMeta: web},
		)
	}
	return objects
}
