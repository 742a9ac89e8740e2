package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// The objects' names. The namespace has the run's prefix as its name.
const (
	name           = "e2e"
	controllerName = "tunnelgateway.dev/controller"
	stable, canary = "stable", "canary" // the Services
	servicePort    = 8080
)

// The hostnames' first words, behind the prefix.
const (
	webHost   = "web"   // has a listener for each scheme
	plainHost = "plain" // has one listener for both schemes
	grpcHost  = "grpc"
)

// host returns one of the run's hostnames. The certificate that Cloudflare issues for every zone
// covers only one level below the zone.
func (b *bed) host(word string) string { return b.prefix + "-" + word + "." + b.zone }

func (b *bed) hosts() []string { return []string{b.host(webHost), b.host(plainHost), b.host(grpcHost)} }

// gatewayKey is the Gateway's name.
func (b *bed) gatewayKey() client.ObjectKey { return client.ObjectKey{Namespace: b.prefix, Name: name} }

// createObjects creates the objects, and starts the Services' pods.
func (b *bed) createObjects(ctx context.Context) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: b.prefix, Annotations: map[string]string{hostnames.Annotation: strings.Join(b.hosts(), ", ")},
		}},
		&v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: name}, Spec: b.settings()},
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{
			ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
				Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: name, Namespace: new(gatewayv1.Namespace(cluster.ControllerNamespace)),
			},
		}},
	}
	for _, service := range []string{stable, canary} {
		objects = append(objects, &corev1.Service{
			ObjectMeta: b.meta(service), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: servicePort}}},
		})
	}
	for _, object := range append(objects, b.gateway(), b.redirect(), b.web(), b.plain(), b.grpc()) {
		if err := b.kube.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	for _, service := range []string{stable, stable, canary} {
		if err := b.startPod(ctx, service); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the class's settings. There is one connector if all connectors have the
// same ports.
func (b *bed) settings() v1alpha1.TunnelConfigurationSpec {
	connector := &v1alpha1.Connector{Replicas: new(int32(1))}
	if !b.sharesPorts {
		connector.Replicas = new(int32(2))
	}
	if b.simulator != nil { // which notices at once that connectors change
		connector.ReadyDelay, connector.GracePeriod = new(v1alpha1.Delay("0s")), new(v1alpha1.Duration("3s"))
	}
	return v1alpha1.TunnelConfigurationSpec{
		DataPlane: new(v1alpha1.DataPlaneEnvoy), Connector: connector,
		Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
		DNS:       &v1alpha1.DNS{Mode: new(v1alpha1.DNSManage), Zones: []v1alpha1.DNSZone{{Name: b.zone}}},
	}
}

func (b *bed) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.prefix, Name: name}
}

// The listeners' names.
const (
	webHTTP, webHTTPS, plainListener, grpcListener = "web-http", "web-https", "plain", "grpc"
)

func (b *bed) gateway() *gatewayv1.Gateway {
	listener := func(name gatewayv1.SectionName, word string, port gatewayv1.PortNumber, protocol gatewayv1.ProtocolType) gatewayv1.Listener {
		return gatewayv1.Listener{Name: name, Hostname: new(gatewayv1.Hostname(b.host(word))), Port: port, Protocol: protocol}
	}
	return &gatewayv1.Gateway{ObjectMeta: b.meta(name), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: name, Listeners: []gatewayv1.Listener{
			listener(webHTTP, webHost, 80, gatewayv1.HTTPProtocolType),
			listener(webHTTPS, webHost, 443, gatewayv1.HTTPSProtocolType),
			listener(plainListener, plainHost, 80, gatewayv1.HTTPProtocolType),
			listener(grpcListener, grpcHost, 443, gatewayv1.HTTPSProtocolType),
		},
	}}
}

// parent returns a route's reference to a listener.
func parent(listener gatewayv1.SectionName) gatewayv1.CommonRouteSpec {
	return gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: name, SectionName: &listener}}}
}

// redirectStatus differs from the status with which the zone's setting always_use_https
// redirects.
const redirectStatus = 302

func (b *bed) redirect() *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: b.meta("redirect"), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: parent(webHTTP), Rules: []gatewayv1.HTTPRouteRule{{Filters: []gatewayv1.HTTPRouteFilter{{
			Type:            gatewayv1.HTTPRouteFilterRequestRedirect,
			RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Scheme: new("https"), StatusCode: new(redirectStatus)},
		}}}},
	}}
}

// web returns the route whose weights change.
func (b *bed) web() *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: b.meta(webHost), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: parent(webHTTPS), Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{
			{BackendRef: backend(stable, 1)}, {BackendRef: backend(canary, 0)},
		}}},
	}}
}

func (b *bed) plain() *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: b.meta(plainHost), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: parent(plainListener), Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: backend(stable, 1)}}}},
	}}
}

func (b *bed) grpc() *gatewayv1.GRPCRoute {
	return &gatewayv1.GRPCRoute{ObjectMeta: b.meta(grpcHost), Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: parent(grpcListener), Rules: []gatewayv1.GRPCRouteRule{{BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: backend(stable, 1)}}}},
	}}
}

func backend(service gatewayv1.ObjectName, weight int32) gatewayv1.BackendRef {
	return gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: service, Port: new(gatewayv1.PortNumber(servicePort))}, Weight: &weight,
	}
}
