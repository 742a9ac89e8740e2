package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

const (
	namespace      = "bench"
	controllerName = "tunnelgateway.dev/controller"
	// creators is how many objects are created concurrently.
	creators = 16
)

var gatewayKey = types.NamespacedName{Namespace: namespace, Name: "gateway"}

// createObjects creates the GatewayClass, the Gateway, the Services and the routes.
func (b *bed) createObjects(ctx context.Context) error {
	spec := gatewayv1.GatewaySpec{GatewayClassName: "bench", Listeners: []gatewayv1.Listener{{
		Name: "all", Hostname: ptr.To(gatewayv1.Hostname("*.example.com")), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
	}}}
	class := gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "bench", Namespace: ptr.To[gatewayv1.Namespace](cluster.ControllerNamespace),
	}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: "bench"}, Spec: b.settings()},
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: class},
		&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gatewayKey.Name}, Spec: spec},
	} {
		if err := b.kube.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	for i := range b.routes() {
		b.forwards = append(b.forwards, i%b.services())
	}
	services := make([]*corev1.Service, b.services())
	var creating errgroup.Group
	creating.SetLimit(creators)
	for i := range services {
		services[i] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName(i)},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		creating.Go(func() error { return b.kube.Create(ctx, services[i]) })
	}
	for i := range b.routes() {
		creating.Go(func() error { return b.kube.Create(ctx, b.route(i)) })
	}
	if err := creating.Wait(); err != nil {
		return err
	}
	for _, service := range services {
		b.addresses[service.Name+"."+namespace+".svc.cluster.local"] = service.Spec.ClusterIP
		creating.Go(func() error { return b.kube.Create(ctx, onlyPod(service)) })
	}
	return creating.Wait()
}

// onlyPod returns an EndpointSlice with one pod, which has the address of the Service.
func onlyPod(service *corev1.Service) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{service.Spec.ClusterIP}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](80)}},
	}
}

// settings returns the GatewayClass settings. One connector is enough for two cores. A
// [cloudflaredEdge] supports only HTTP/2.
func (b *bed) settings() v1alpha1.TunnelConfigurationSpec {
	return v1alpha1.TunnelConfigurationSpec{
		DataPlane: ptr.To(b.DataPlane), Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](1), Protocol: ptr.To(v1alpha1.ProtocolHTTP2)},
		Limits: &v1alpha1.Limits{
			RulesPerTunnel:       ptr.To[int32](2 * maxHostnames),
			ConfigurationUpdates: &v1alpha1.ConfigurationUpdates{Burst: ptr.To[int32](1000)},
		},
	}
}

// route returns a route that sends the requests for its hostnames to its Service.
func (b *bed) route(i int) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("route-%d", i)}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(gatewayKey.Name)}}
	for h := i * b.PerRoute; h < min((i+1)*b.PerRoute, b.Hostnames); h++ {
		route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(hostname(h)))
	}
	route.Spec.Rules = forwardTo(serviceName(b.forwards[i]))
	return route
}

// forwardTo returns rules that send all of a route's requests to the Service.
func forwardTo(service string) []gatewayv1.HTTPRouteRule {
	return []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: ptr.To[int32](80)},
	}}}}}
}

func hostname(i int) string { return fmt.Sprintf("host-%d.example.com", i) }

func serviceName(i int) string { return fmt.Sprintf("service-%d", i) }

// answer returns the response to a request for the hostname.
func (b *bed) answer(hostname int) string { return b.addressOf(b.forwards[hostname/b.PerRoute]) }

// addressOf returns a Service's address.
func (b *bed) addressOf(service int) string {
	return b.addresses[serviceName(service)+"."+namespace+".svc.cluster.local"]
}
