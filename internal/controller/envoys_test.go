package controller

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// dataPlaneReady returns the DataPlaneReady condition's status and reason.
func (h *harness) dataPlaneReady() string {
	h.t.Helper()
	c := meta.FindStatusCondition(h.gateway().Status.Conditions, conditions.TypeDataPlaneReady.String())
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

// want returns a problem if the values differ.
func want(subject, got, wanted string) string {
	if got == wanted {
		return ""
	}
	return subject + " is " + got + ", want " + wanted
}

// setProgrammed returns the Programmed condition's status and reason on ListenerSet
// infra/set.
func (h *harness) setProgrammed() string {
	h.t.Helper()
	set := &gatewayv1.ListenerSet{}
	h.change("infra", "set", set, func() {})
	c := meta.FindStatusCondition(set.Status.Conditions, string(gatewayv1.ListenerSetConditionProgrammed))
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

// A ListenerSet becomes Programmed when Envoys have acknowledged the first
// configuration that contains it, not before.
func TestListenerSetWaitsForAcknowledgement(t *testing.T) {
	h := newEnvoyHarness(t)
	h.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromSame)}}
	})
	h.reconcileOnce()
	h.xds.state.Acknowledged = h.xds.last(t).Sequence
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "set", Generation: 1}}
	set.Spec.ParentRef.Name = "shared"
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{
		Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname("set.example.com")),
	}}
	h.create(set)
	h.reconcileOnce()
	if problem := want("Programmed", h.setProgrammed(), "False Pending"); problem != "" {
		t.Error(problem)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	h.xds.state.Acknowledged = h.xds.last(t).Sequence
	h.reconcileOnce()
	if problem := want("Programmed", h.setProgrammed(), "True Programmed"); problem != "" {
		t.Error(problem)
	}
}

// An Envoy that has just connected does not change the condition.
func TestDataPlaneStaysReadyWhenAnEnvoyConnects(t *testing.T) {
	h := newEnvoyHarness(t)
	h.xds.state.Connected, h.xds.state.Acknowledged = 3, 0
	h.reconcileOnce()
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "True Ready"); problem != "" {
		t.Error(problem)
	}
	h.xds.state.Late = true
	h.reconcileOnce()
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "False Pending"); problem != "" {
		t.Error(problem)
	}
}

// The port for probes serves the metrics if the settings allow it, even after hostnames
// were closed while the Gateway is invalid.
func TestListenersFollowTheSettings(t *testing.T) {
	h := newEnvoyHarness(t)
	wantServed := func(servesMetrics bool) {
		t.Helper()
		if diff := cmp.Diff(envoy.Listeners(envoy.ReadyOptions{Metrics: servesMetrics, IPv6: true}, routing.Telemetry{}), h.xds.last(t).Listeners, protocmp.Transform()); diff != "" {
			t.Errorf("the published listeners differ (-want +got):\n%s", diff)
		}
	}
	wantServed(true)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Connector = &v1alpha1.Connector{Metrics: ptr.To(v1alpha1.MetricsLoopback)}
	})
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileOnce()
	wantServed(false)
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}} })
	h.reconcileFor(maxOpenOfHostnames)
	h.wantListeners("after five minutes", "", "a.example.com", "a.example.com", "")
	wantServed(false)
}

// The listeners and routes follow the settings for metrics, without another bootstrap. A
// metric and the Accepted condition report what is above the bound.
func TestMetricsByRouteFollowTheSettings(t *testing.T) {
	h := newEnvoyHarness(t)
	h.wantMetrics(map[string]float64{"data_plane_ready": 1})
	for _, test := range []struct {
		metrics *v1alpha1.EnvoyMetrics
		labels  bool
	}{
		{&v1alpha1.EnvoyMetrics{By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute}, AllowWorkInProgress: ptr.To(true)}, true},
		{nil, false},
	} {
		h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.Connector = &v1alpha1.Connector{Envoy: &v1alpha1.EnvoyProxy{Metrics: test.metrics}}
		})
		h.reconcileOnce()
		p := h.xds.last(t)
		want := envoy.Listeners(envoy.ReadyOptions{Metrics: true, IPv6: true}, routing.Telemetry{Metrics: test.metrics})
		if diff := cmp.Diff(want, p.Listeners, protocmp.Transform()); diff != "" {
			t.Errorf("the published listeners differ (-want +got):\n%s", diff)
		}
		for _, host := range envoy.Whole(envoy.ListenerOpen, p.Resources.Routes).VirtualHosts {
			for _, route := range host.Routes {
				if got := route.Metadata != nil; got != test.labels {
					t.Errorf("route %s of %s has labels: %t, want %t", route.Name, host.Name, got, test.labels)
				}
			}
		}
		if test.labels {
			h.wantMetrics(map[string]float64{"envoy_uncounted_pairs": 0})
		}
	}
}

// A publication that is not valid is reported, and everything else about the Gateway
// goes on.
func TestInvalidPublicationIsReported(t *testing.T) {
	h := newEnvoyHarness(t)
	h.wantMetrics(map[string]float64{"data_plane_ready": 1, "data_plane_rejected": 0})
	h.xds.err = errors.New("virtual host b.example.com: invalid")
	h.setHostname("b.example.com")
	h.reconcileOnce()
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "False EnvoyRejected"); problem != "" {
		t.Error(problem)
	}
	h.wantMetrics(map[string]float64{"data_plane_ready": 0, "data_plane_rejected": 1})
}

// A Gateway whose new Tunnel has ingress rules no longer has Envoys.
func TestSwitchToIngressRulesForgetsEnvoys(t *testing.T) {
	h := newEnvoyHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.DataPlane = nil })
	h.delete(h.tunnelObject())
	h.reconcileFor(driftInterval / 2)
	if got := h.servedHostname(); got != "a.example.com" {
		t.Errorf("the tunnel serves %q, want a.example.com", got)
	}
	if h.envoys.hasPublished(h.key.NamespacedName) || !slices.Contains(h.xds.removed, "infra/shared") {
		t.Error("the Gateway still has a publication")
	}
}

// After a restart, a hostname that is no longer protected stays on the protected
// listener, to which the tunnel leads its requests.
func TestRestartKeepsMovingHostname(t *testing.T) {
	h := newEnvoyHarness(t)
	h.requireAccess()
	h.reconcileFor(driftInterval / 2)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.ListenerConfigurations = nil })
	h.reconcileFor(driftInterval / 2)
	h.restart()
	h.reconcileOnce()
	for i, p := range h.xds.publications {
		if problem := want(fmt.Sprintf("the protected listener of publication %d", i), served(envoy.Whole(envoy.ListenerProtected, p.Resources.Routes)), "a.example.com"); problem != "" {
			t.Error(problem)
		}
	}
}

// A write that an earlier process recorded did not take effect, and fails again: both
// listeners serve the hostname until Cloudflare has the configuration.
func TestRestartAfterAFailedWriteServesBothListeners(t *testing.T) {
	h := newEnvoyHarness(t)
	h.requireAccess()
	h.reconcileFor(driftInterval / 2)
	h.cloud.Fail(fakeprovider.OpConfigure, errors.New("unavailable"), errors.New("unavailable"), errors.New("unavailable"))
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.ListenerConfigurations = nil })
	h.reconcileOnce()
	h.restart()
	for range 2 {
		h.reconcileOnce()
		p := h.xds.last(t).Resources
		if open, protected := served(envoy.Whole(envoy.ListenerOpen, p.Routes)), served(envoy.Whole(envoy.ListenerProtected, p.Routes)); open != "a.example.com" || protected != "a.example.com" {
			t.Errorf("the listeners serve %q and %q, want a.example.com on both", open, protected)
		}
		h.advance(h.requeueAfter)
	}
	h.reconcileFor(driftInterval / 2)
	if got := served(envoy.Whole(envoy.ListenerProtected, h.xds.last(t).Resources.Routes)); got != "" {
		t.Errorf("after the write, the protected listener serves %q", got)
	}
}

// When a pod has ended, another pod can have its address.
func TestAddressOfEndedConnectorIsNotReserved(t *testing.T) {
	h := newEnvoyHarness(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "connector"},
		Status:     corev1.PodStatus{Phase: corev1.PodFailed, PodIPs: []corev1.PodIP{{IP: "10.244.0.9"}}},
	}
	stripped, err := stripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	h.create(stripped.(*corev1.Pod))
	addresses, err := state.ReservedAddresses(t.Context(), h.kube, controllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	if addresses["10.244.0.9"] {
		t.Error("the address is reserved")
	}
}

// In a dual-stack cluster, the controller's pod has an address of each IP version. A tenant
// can write an EndpointSlice with either.
func TestAllAddressesOfTheControllerAreReserved(t *testing.T) {
	h := newEnvoyHarness(t)
	found, err := h.loader.Load(t.Context(), h.key)
	if err != nil {
		t.Fatal(err)
	}
	read, err := h.envoys.readSlices(t.Context(), []envoy.EndpointsOf{{Cluster: "c", Service: types.NamespacedName{Namespace: "infra", Name: "web"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range []string{"fd00::1", "10.244.9.9"} {
		if !found.Snapshot.Reserved[ip] || !read.reserved[ip] {
			t.Errorf("%s is reserved for decisions: %t, for endpoints: %t", ip, found.Snapshot.Reserved[ip], read.reserved[ip])
		}
	}
}

// Only the certificate for the Tunnel that now serves the Gateway identifies an Envoy.
func TestOnlyTheCurrentTunnelIsIdentified(t *testing.T) {
	h := newEnvoyHarness(t)
	object := h.tunnelObject()
	check := func(situation, gateway string, uid types.UID, want bool) {
		t.Helper()
		if got := h.objects.isCurrent(types.NamespacedName{Namespace: "infra", Name: gateway}, uid); got != want {
			t.Errorf("%s: the identity is current: %t, want %t", situation, got, want)
		}
	}
	check("the Tunnel of the Gateway", "shared", object.UID, true)
	check("an earlier Tunnel", "shared", "uid-of-an-earlier-tunnel", false)
	check("another Gateway", "other", object.UID, false)

	edited := object.DeepCopy()
	edited.Spec.Gateway.Name = "other"
	if err := h.kube.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	check("a Tunnel that names another Gateway", "shared", object.UID, false)
	h.delete(edited)
	check("a deleted Tunnel", "shared", object.UID, false)
}

// A Secret that is in the way of the certificate for a Tunnel's Envoys affects the
// Gateway.
func TestSecretNamedLikeACertificateAffectsTheGateway(t *testing.T) {
	h := newEnvoyHarness(t)
	w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}
	object := h.tunnelObject()
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: connector.IdentitySecretName(object)}}
	keys, err := w.fromSecret(t.Context(), secret)
	wantKeys(t, keys, err, "shared")
	ownedBy(object, secret)
	keys, err = w.fromSecret(t.Context(), secret)
	wantKeys(t, keys, err, "shared")
}
