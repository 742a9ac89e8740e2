package controller

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// newEnvoyHarness returns a harness whose Gateway is served by Envoy.
func newEnvoyHarness(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DataPlane, s.Connector = new(v1alpha1.DataPlaneEnvoy), nil
	})
	h.reconcileFor(driftInterval / 2)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	h.cloud.ResetCalls()
	h.drainWrites()
	return h
}

// On the first start, a Gateway's routes are published for its new Tunnel, the tunnel
// leads all requests to Envoy, and the certificate exists before the Deployment.
func TestEnvoyServesNewGateway(t *testing.T) {
	h := newHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DataPlane, s.Connector = new(v1alpha1.DataPlaneEnvoy), nil
	})
	deploymentExists := func() bool {
		return h.kube.Get(t.Context(), connectorKey(h.tunnelObject()), &appsv1.Deployment{}) == nil
	}
	h.identities.before = func() {
		if deploymentExists() {
			t.Error("the Deployment was applied before the certificate was written")
		}
	}
	h.reconcileFor(driftInterval / 2)

	object := h.tunnelObject()
	if object.Status.DataPlane != v1alpha1.DataPlaneEnvoy {
		t.Errorf("the Tunnel records the data plane %q, want Envoy", object.Status.DataPlane)
	}
	p := h.xds.last(t)
	if p.Tunnel != object.UID || p.Sequence == 0 || served(envoy.Whole(envoy.ListenerOpen, p.Resources.Routes)) != "a.example.com" {
		t.Errorf("published %q for Tunnel %q with sequence %d, want a.example.com for %q with another one than 0",
			served(envoy.Whole(envoy.ListenerOpen, p.Resources.Routes)), p.Tunnel, p.Sequence, object.UID)
	}
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	if len(configuration.Ingress) != 1 || configuration.Ingress[0].Service != "http://127.0.0.1:10080" {
		t.Errorf("the tunnel has the rules %+v, want one rule that leads to Envoy", configuration.Ingress)
	}
	if !slices.Contains(h.identities.written, object.UID) || !deploymentExists() {
		t.Errorf("certificates were written for %q, and the Deployment exists: %t; want both", h.identities.written, deploymentExists())
	}
}

// A route change reaches Envoy without a request to Cloudflare.
func TestEnvoyServesChangedRouteWithoutCloudflare(t *testing.T) {
	h := newEnvoyHarness(t)
	h.setPath("/changed")
	h.reconcileOnce()
	h.wantCalls()
	routes := envoy.Whole(envoy.ListenerOpen, h.xds.last(t).Resources.Routes).VirtualHosts[0].Routes
	if len(routes) != 1 || routes[0].GetMatch().GetPath() != "/changed" {
		t.Errorf("published the routes %v, want one route for /changed", routes)
	}
	if h.xds.last(t).WantsAcknowledgement {
		t.Error("the reconcile waits for an acknowledgement")
	}
}

// A route change does not wait for the pause between two configuration writes.
func TestEnvoyServesChangedRouteBetweenWrites(t *testing.T) {
	h := newEnvoyHarness(t)
	h.requireAccess()
	h.reconcileOnce()
	if h.writeDelay(h.key) == 0 {
		t.Fatal("no pause follows the write")
	}
	h.setHostname("b.example.com")
	h.reconcileOnce()
	if got := served(envoy.Whole(envoy.ListenerProtected, h.xds.last(t).Resources.Routes)); got != "b.example.com" {
		t.Errorf("the protected listener serves %q, want b.example.com", got)
	}
}

// A Gateway that is not accepted publishes nothing: its Envoys keep what they have.
func TestEnvoyKeepsRoutesOfRejectedGateway(t *testing.T) {
	h := newEnvoyHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.OriginRequest = &v1alpha1.OriginRequest{CAPool: ptr.To("/ca.pem")}
	})
	published := len(h.xds.publications)
	h.setHostname("b.example.com")
	h.reconcileFor(driftInterval / 2)
	if n := len(h.xds.publications); n != published || len(h.xds.removed) > 0 {
		t.Errorf("published %d times and removed %q, want nothing", n-published, h.xds.removed)
	}
}

// requireAccess makes the GatewayClass require Access for all hostnames.
func (h *harness) requireAccess() {
	h.t.Helper()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.ListenerConfigurations = []v1alpha1.ListenerConfiguration{{
			Hostname: "*.example.com", Access: &v1alpha1.Access{Required: true, TeamName: ptr.To("team"), AUDTags: []v1alpha1.AUDTag{"tag"}},
		}}
	})
}

// When the Tunnel object is deleted by mistake, the routes are published for the new one.
func TestEnvoyServesRecreatedTunnel(t *testing.T) {
	h := newEnvoyHarness(t)
	old := h.tunnelObject()
	h.delete(old)
	h.reconcileFor(driftInterval / 2)
	if got, want := h.xds.last(t).Tunnel, h.tunnelObject().UID; got != want || want == old.UID {
		t.Errorf("published for Tunnel %q, want the new one, %q", got, want)
	}
}

// While the Tunnel retires, its Envoys keep what they have. Their streams end with the
// Tunnel object.
func TestEnvoyServesUntilTunnelIsGone(t *testing.T) {
	h := newEnvoyHarness(t)
	h.delete(h.gateway())
	published := len(h.xds.publications)
	h.reconcileOnce()
	if len(h.xds.removed) > 0 || len(h.xds.publications) > published {
		t.Errorf("removed %q and published %d times before the Tunnel was gone", h.xds.removed, len(h.xds.publications)-published)
	}
	h.reconcileFor(driftInterval / 2)
	if h.tunnelObject() == nil {
		h.reconcileOnce()
	}
	if !slices.Contains(h.xds.removed, "infra/shared") {
		t.Errorf("removed %q, want infra/shared", h.xds.removed)
	}
}

// A Service's endpoints are published without reconciling the Gateway, and never
// contain a connector address.
func TestEnvoyFollowsEndpoints(t *testing.T) {
	h := newEnvoyHarness(t)
	service := &corev1.Service{}
	h.change("infra", "web", service, func() { service.Spec.ClusterIP = corev1.ClusterIPNone })
	h.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "connector"},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.244.0.9"}}},
	})
	h.reconcileOnce()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "infra", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.7"}}, {Addresses: []string{"10.244.0.9"}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
	}
	h.create(slice)
	want := followed{gateway: h.key.NamespacedName, source: envoy.EndpointSource{NamespacedName: client.ObjectKey{Namespace: "infra", Name: "web"}}}
	if found := h.envoys.fromEndpointSlice(t.Context(), slice); len(found) != 1 || found[0] != want {
		t.Fatalf("the EndpointSlice affects %v, want %v", found, want)
	}
	if err := h.envoys.publishEndpoints(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if len(h.xds.endpoints) != 1 {
		t.Fatalf("published endpoints %d times, want once", len(h.xds.endpoints))
	}
	for cluster, assignment := range h.xds.endpoints[0] {
		text := assignment.String()
		if !strings.Contains(text, "10.244.0.7") || strings.Contains(text, "10.244.0.9") {
			t.Errorf("cluster %s has the endpoints %s, want only 10.244.0.7", cluster, text)
		}
	}
	other := slice.DeepCopy()
	other.Labels[discoveryv1.LabelServiceName] = "other"
	if found := h.envoys.fromEndpointSlice(t.Context(), other); len(found) != 0 {
		t.Errorf("the EndpointSlice of another Service affects %v", found)
	}
}
