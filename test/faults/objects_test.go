package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// employees is the policy of protected hostnames.
var employees = access.Policy{
	ID: "employees-id", Name: "employees", Decision: "allow", Include: []json.RawMessage{json.RawMessage(`{"email_domain":{"domain":"example.com"}}`)},
}

// planes are the Gateways, which have the names of their data planes in lower case, with the
// prefix of their hostnames.
var planes = map[string]v1alpha1.DataPlane{"rules": v1alpha1.DataPlaneIngressRules, "envoy": v1alpha1.DataPlaneEnvoy}

// hostname returns a Gateway's hostname in the zone.
func hostname(plane, name string) string { return plane + "-" + name + ".example.com" }

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// createObjects creates the Gateways, and everything that a visitor asks for.
func (w *world) createObjects() {
	w.Helper()
	w.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra", Annotations: permitted}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: permitted, Labels: map[string]string{"team": "yes"}}},
		&corev1.Secret{ObjectMeta: in(cluster.ControllerNamespace, "cloudflare"), Data: map[string][]byte{"token": []byte(w.token)}},
	)
	w.backend("infra", "web", "10.103.255.1")
	w.backend("team", "team", "10.103.255.2")
	for plane, dataPlane := range planes {
		w.create(newSettings(plane, dataPlane), newClass(plane))
		w.createGateway(plane, plane)
	}
}

// permitted is the annotation of namespaces that may use every hostname.
var permitted = map[string]string{"tunnelgateway.dev/hostnames": "*"}

func newClass(name string) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{
		ControllerName: config.DefaultControllerName,
		ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: name, Namespace: ptr.To(gatewayv1.Namespace(cluster.ControllerNamespace)),
		},
	}}
}

func newSettings(name string, plane v1alpha1.DataPlane) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: in(cluster.ControllerNamespace, name), Spec: v1alpha1.TunnelConfigurationSpec{
		DataPlane: &plane,
		Connector: &v1alpha1.Connector{
			Replicas: ptr.To[int32](1), ReadyDelay: ptr.To(v1alpha1.Delay("0s")), GracePeriod: ptr.To(v1alpha1.Duration("3s")),
			Envoy: &v1alpha1.EnvoyProxy{Concurrency: ptr.To[int32](1)},
		},
		Hostnames: &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)},
		DNS: &v1alpha1.DNS{
			Mode: ptr.To(v1alpha1.DNSManage), Zones: []v1alpha1.DNSZone{{Name: "example.com"}}, DeletionDelay: ptr.To(v1alpha1.Duration("1s")),
		},
		Access: &v1alpha1.AccessApplications{
			Applications: ptr.To(v1alpha1.ApplicationsManaged), TeamName: ptr.To("acme"), OpeningDelay: ptr.To(v1alpha1.Duration("1s")),
			Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "employees-id"}},
		},
		Limits: &v1alpha1.Limits{
			TunnelsPerNamespace: ptr.To[int32](1000), RulesPerTunnel: ptr.To[int32](10000), ListenersPerNamespace: ptr.To[int32](1000),
			ConfigurationUpdates: &v1alpha1.ConfigurationUpdates{Burst: ptr.To[int32](1000), Interval: ptr.To[v1alpha1.Duration]("1s")},
		},
	}}
}

// createGateway creates a Gateway with listeners for an open and a protected hostname and for the
// probe, and a ListenerSet of the team.
func (w *world) createGateway(class, name string) {
	w.Helper()
	g := &gatewayv1.Gateway{ObjectMeta: in("infra", name), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(class),
		AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{
			From: ptr.To(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}},
		}},
	}}
	for _, section := range []string{"open", "admin", "probe"} {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: gatewayv1.SectionName(section), Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname(hostname(name, section))),
		})
		w.create(newRoute("infra", name+"-"+section, "web", sectionOf(name, section)))
	}
	w.create(g, newPolicy(name), newListenerSet(name, name+"-team", hostname(name, "team")), newRoute("team", name+"-team", "team", parentSet(name+"-team")))
}

func sectionOf(gateway, section string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(gateway), Namespace: ptr.To(gatewayv1.Namespace("infra")), SectionName: ptr.To(gatewayv1.SectionName(section))}
}

func parentSet(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: gatewayv1.ObjectName(name)}
}

// newPolicy returns an AccessPolicy that protects the Gateway's listener admin.
func newPolicy(gateway string) *v1alpha1.AccessPolicy {
	return &v1alpha1.AccessPolicy{ObjectMeta: in("infra", gateway+"-admin"), Spec: v1alpha1.AccessPolicySpec{
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
			LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: "Gateway", Name: gatewayv1.ObjectName(gateway)},
			SectionName:                ptr.To(gatewayv1.SectionName("admin")),
		}},
		Policies: []v1alpha1.PolicyName{"employees"},
	}}
}

// newListenerSet returns a ListenerSet of the team with one listener.
func newListenerSet(gateway, name, hostname string) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{ObjectMeta: in("team", name), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(gateway), Namespace: ptr.To(gatewayv1.Namespace("infra"))},
		Listeners: []gatewayv1.ListenerEntry{{
			Name: "web", Hostname: ptr.To(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}},
	}}
}

// newRoute returns an HTTPRoute that sends all requests to the Service.
func newRoute(namespace, name, service string, parents ...gatewayv1.ParentReference) *gatewayv1.HTTPRoute {
	backend := gatewayv1.HTTPBackendRef{}
	backend.Name, backend.Port = gatewayv1.ObjectName(service), ptr.To[gatewayv1.PortNumber](80)
	return &gatewayv1.HTTPRoute{ObjectMeta: in(namespace, name), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: parents},
		Rules:           []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}},
	}}
}

// atPath makes the route's only rule match the path and what is below it.
func atPath(route *gatewayv1.HTTPRoute, path string) *gatewayv1.HTTPRoute {
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
		Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To(path),
	}}}
	return route
}

// backend starts a server that answers with the Service's name, and creates the Service.
func (w *world) backend(namespace, name, address string) {
	w.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "80"))
	w.must(err)
	server := &http.Server{Handler: http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { // #nosec G112 -- only the data planes connect
		_, _ = io.WriteString(writer, name)
	})}
	go func() { _ = server.Serve(listener) }()
	w.Cleanup(func() { _ = server.Close() })
	w.create(
		&corev1.Service{ObjectMeta: in(namespace, name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		},
	)
}

// bulk returns routes of both planes for one hostname each, with different paths.
func bulk(count int) (routes []*gatewayv1.HTTPRoute) {
	for i := range count {
		plane := []string{"rules", "envoy"}[i%2]
		route := atPath(newRoute("infra", fmt.Sprintf("bulk-%s-%03d", plane, i), "web", sectionOf(plane, "probe")), fmt.Sprintf("/bulk-%d", i))
		route.Labels = map[string]string{"bulk": "yes"}
		routes = append(routes, route)
	}
	return routes
}
