package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

const (
	domain    = "example.com"
	namespace = "team" // of the Gateways and their routes
	// audience is the AUD tag of the application for the hostnames "admin", which is not
	// managed.
	audience = "admin"
)

// planes are the data planes by Gateway. Each Gateway has a GatewayClass and a
// TunnelConfiguration with its name.
var planes = map[string]v1alpha1.DataPlane{"rules": v1alpha1.DataPlaneIngressRules, "envoy": v1alpha1.DataPlaneEnvoy}

// The labels of hostnames. The hostname of a Gateway is <label>.<gateway>.example.com.
const (
	openLabel  = "www"   // needs no token
	adminLabel = "admin" // protected by the settings, which both versions know
	staffLabel = "staff" // protected by an AccessPolicy, which the earlier version need not know
	// Routes for these hostnames are created while the versions change.
	upgradedLabel, rolledBackLabel = "upgraded", "rolledback"
)

func hostname(label, gateway string) string { return label + "." + gateway + "." + domain }

// createObjects creates the objects that the earlier version serves.
func (b *bed) createObjects(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: backendOn}}}}
	permitted := ""
	for gateway := range planes {
		permitted += ", *." + gateway + "." + domain
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Annotations: map[string]string{"tunnelgateway.dev/hostnames": permitted[2:]}}}, service,
	}
	for gateway, plane := range planes {
		objects = append(objects, settingsOf(gateway, plane), classOf(gateway), gatewayOf(gateway), routeTo(openLabel, gateway), routeTo(adminLabel, gateway))
		if plane == v1alpha1.DataPlaneEnvoy {
			objects = append(objects, otherRoutes(gateway)...)
		}
	}
	if err := b.create(ctx, objects...); err != nil {
		return err
	}
	return b.create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{service.Spec.ClusterIP}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](backendOn)}},
	})
}

func (b *bed) create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := b.kube.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// settingsOf returns settings with only the fields that every tested version knows.
func settingsOf(gateway string, plane v1alpha1.DataPlane) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: gateway}, Spec: v1alpha1.TunnelConfigurationSpec{
		DataPlane: &plane, Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](2)},
		Hostnames: &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)},
		ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: v1alpha1.EveryPort, Hostname: hostname(adminLabel, gateway),
			Access: &v1alpha1.Access{Required: true, TeamName: ptr.To(teamName), AUDTags: []v1alpha1.AUDTag{audience}},
		}},
	}}
}

// newerSettings are the settings that the present version adds for applications.
func newerSettings() *v1alpha1.AccessApplications {
	return &v1alpha1.AccessApplications{
		Applications: ptr.To(v1alpha1.ApplicationsManaged), TeamName: ptr.To(teamName), OpeningDelay: ptr.To(v1alpha1.Duration("5s")),
		Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: policyID}},
	}
}

func classOf(gateway string) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: gateway}, Spec: gatewayv1.GatewayClassSpec{
		ControllerName: "tunnelgateway.dev/controller", ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: gateway, Namespace: ptr.To[gatewayv1.Namespace](release),
		},
	}}
}

// gatewayOf returns a Gateway whose open listener has a wildcard: the protected hostnames are
// below it.
func gatewayOf(gateway string) *gatewayv1.Gateway {
	listener := func(name, host string) gatewayv1.Listener {
		return gatewayv1.Listener{Name: gatewayv1.SectionName(name), Hostname: ptr.To(gatewayv1.Hostname(host)), Port: 80, Protocol: gatewayv1.HTTPProtocolType}
	}
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gateway}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(gateway), Listeners: []gatewayv1.Listener{
			listener("open", hostname("*", gateway)), listener(adminLabel, hostname(adminLabel, gateway)), listener(staffLabel, hostname(staffLabel, gateway)),
		},
	}}
}

// routeTo returns a route from a hostname to the backend.
func routeTo(label, gateway string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: label + "-" + gateway}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(gateway)}}},
		Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(hostname(label, gateway))},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: ptr.To[gatewayv1.PortNumber](backendOn)},
		}}}}},
	}}
}

// otherRoutes returns routes with so many hostnames that their Envoy routes are in several
// RouteConfigurations.
func otherRoutes(gateway string) []client.Object {
	const routes, hostnames = 40, 16
	all := make([]client.Object, routes)
	for i := range all {
		route := routeTo(fmt.Sprint("other-", i), gateway)
		route.Spec.Hostnames = nil
		for h := range hostnames {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(hostname(fmt.Sprintf("other-%d-%d", i, h), gateway)))
		}
		all[i] = route
	}
	return all
}

// policyFor returns the AccessPolicy for the hostname "staff" of a Gateway.
func policyFor(gateway string) *v1alpha1.AccessPolicy {
	return &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gateway}, Spec: v1alpha1.AccessPolicySpec{
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
			LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: "Gateway", Name: gatewayv1.ObjectName(gateway)},
			SectionName:                ptr.To[gatewayv1.SectionName](staffLabel),
		}},
		Policies: []v1alpha1.PolicyName{"employees"},
	}}
}
