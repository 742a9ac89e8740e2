package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// newRulesHarness returns a harness whose Gateway is served by ingress rules, with
// connectors.
func newRulesHarness(t *testing.T) *harness {
	t.Helper()
	h := newConnectorHarness(t)
	h.reconcileFor(time.Minute)
	h.rollOut()
	h.reconcileFor(time.Minute)
	h.cloud.ResetCalls()
	h.drainEvents()
	return h
}

// selectDataPlane sets the data plane in the GatewayClass settings.
func (h *harness) selectDataPlane(plane v1alpha1.DataPlane) {
	h.t.Helper()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.DataPlane = &plane })
}

// wantDataPlane checks which data plane and phase the Tunnel records, and whether the
// tunnel's configuration leads to Envoy.
func (h *harness) wantDataPlane(plane v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase, leadsToEnvoy bool) {
	h.t.Helper()
	status := h.tunnelObject().Status
	if got := ptr.Deref(status.DataPlaneChange, v1alpha1.DataPlaneChange{}).Phase; status.DataPlane != plane || got != phase {
		h.t.Errorf("the Tunnel records %s in phase %q, want %s in phase %q", status.DataPlane, got, plane, phase)
	}
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	got := slices.ContainsFunc(configuration.Ingress, func(r provider.IngressRule) bool { return strings.HasPrefix(r.Service, "http://127.0.0.1:") })
	if got != leadsToEnvoy {
		h.t.Errorf("the rules lead to Envoy: %t, want %t (%+v)", got, leadsToEnvoy, configuration.Ingress)
	}
}

// wantRunsEnvoy checks whether the Deployment has Envoy.
func (h *harness) wantRunsEnvoy(want bool) {
	h.t.Helper()
	if got := connector.HasEnvoy(&corev1.Pod{Spec: h.deployment().Spec.Template.Spec}); got != want {
		h.t.Errorf("the Deployment has Envoy: %t, want %t", got, want)
	}
}

// wantNoPush checks that the configuration was not written since the last ResetCalls.
func (h *harness) wantNoPush() {
	h.t.Helper()
	for _, call := range h.cloud.Calls() {
		if call.Op == fakeprovider.OpConfigure {
			h.t.Error("the configuration of the tunnel was written")
		}
	}
}

// The tunnel leads to Envoy only when every pod has an Envoy with the routes.
func TestDataPlaneChangesToEnvoy(t *testing.T) {
	h := newRulesHarness(t)
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneAddingEnvoy, false)
	h.wantRunsEnvoy(true)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if served(envoy.Whole(envoy.ListenerOpen, h.xds.last(t).Resources.Routes)) != "a.example.com" {
		t.Error("the routes were not published before Envoy serves")
	}
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "False Pending"); problem != "" {
		t.Error(problem)
	}

	h.rollOut()
	h.xds.unacknowledged = true
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneAddingEnvoy, false)
	if message := h.dataPlaneMessage(); !strings.Contains(message, "every connected Envoy has acknowledged") {
		t.Errorf("the message of DataPlaneReady is %q", message)
	}

	h.setHostname("b.example.com")
	h.reconcileFor(time.Minute)
	if got := h.servedHostname(); got != "b.example.com" {
		t.Errorf("during the change, the ingress rules serve %q, want b.example.com", got)
	}

	h.xds.unacknowledged = false
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneEnvoy, "", true)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "True Ready"); problem != "" {
		t.Error(problem)
	}
}

// A pod that cannot be scheduled stops the change before the tunnel's configuration
// changes.
func TestUnschedulablePodStopsTheChangeToEnvoy(t *testing.T) {
	h := newRulesHarness(t)
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.cloud.ResetCalls()
	h.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "new", Labels: connector.Selector(h.tunnelObject())},
		Spec:       corev1.PodSpec{InitContainers: h.deployment().Spec.Template.Spec.InitContainers},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available",
		}}},
	})
	h.reconcileFor(5 * time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneAddingEnvoy, false)
	if message := h.dataPlaneMessage(); !strings.Contains(message, "Pod new is not ready: Unschedulable (0/1 nodes are available).") {
		t.Errorf("the message of DataPlaneReady is %q", message)
	}
	h.wantNoPush()
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// The rules replace the configuration before the connectors lose their Envoy.
func TestDataPlaneChangesToIngressRules(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollOut()
	h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)
	h.wantRunsEnvoy(false)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "none"); problem != "" {
		t.Error(problem)
	}
	if len(h.xds.removed) > 0 {
		t.Error("the streams of the Envoys ended before the rollout")
	}

	h.rollOut()
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, "", false)
	if !slices.Contains(h.xds.removed, "infra/shared") {
		t.Error("the Gateway still has a publication")
	}
}

// The connectors stop only when the ingress rules serve the Gateway.
func TestConnectorsRunUntilEnvoyIsNotNeeded(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollOut()
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DataPlane, s.Connector = nil, &v1alpha1.Connector{Enabled: ptr.To(false)}
	})
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneEnvoy, "", true)
	h.wantRunsEnvoy(true)

	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)
	if h.deployment() != nil {
		t.Error("the connectors still run")
	}
	h.stopPods()
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, "", false)
}

// Envoy keeps serving while the Gateway's rules exceed the limits of ingress rules.
func TestLimitsPreventTheChangeToIngressRules(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollOut()
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = nil })
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {
		rule := route.Spec.Rules[0]
		route.Spec.Hostnames = []gatewayv1.Hostname{"a.example.com", "b.example.com"}
		rule.Matches = nil
		for _, path := range []string{"/a", "/b"} {
			rule.Matches = append(rule.Matches, gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchExact), Value: &path}})
		}
		route.Spec.Rules = slices.Repeat([]gatewayv1.HTTPRouteRule{rule}, 300)
	})
	h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneEnvoy, "", true)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "False LimitExceeded"); problem != "" {
		t.Error(problem)
	}
	if message := h.dataPlaneMessage(); !strings.Contains(message, "needs 1200 ingress rules, but limits.rulesPerTunnel of the GatewayClass is 1000") {
		t.Errorf("the message of DataPlaneReady is %q", message)
	}
	h.wantMetrics(map[string]float64{"data_plane_limit_exceeded": 1})

	h.change("infra", "web", route, func() { route.Spec.Rules = route.Spec.Rules[:1] })
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)
}

// A paused Gateway's Envoys follow its routes, so their certificates are renewed.
func TestCertificatesOfAPausedGatewayAreRenewed(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileFor(time.Minute)
	h.identities.written = nil // the certificate is due
	h.reconcileOnce()
	if !slices.Contains(h.identities.written, h.tunnelObject().UID) {
		t.Error("the certificate was not renewed")
	}
}

// If a certificate cannot be renewed, the reconcile fails, but writes the statuses all
// the same.
func TestFailedRenewalDoesNotPreventStatuses(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileFor(time.Minute)
	h.identities.written, h.identities.err = nil, errors.New("the Secret belongs to something else")
	h.xds.state.Late = true
	if _, err := h.Reconcile(t.Context(), h.key); !errors.Is(err, h.identities.err) {
		t.Errorf("the error is %v, want %v", err, h.identities.err)
	}
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "False Pending"); problem != "" {
		t.Error(problem)
	}
}

// A change that is reversed before the switch never writes the configuration.
func TestReversedChangeKeepsTheRules(t *testing.T) {
	h := newRulesHarness(t)
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)
	h.rollOut()
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, "", false)
	h.wantNoPush()
	h.wantRunsEnvoy(false)
}

// Terminating pods count: they serve requests until they end.
func TestTerminatingPodsDelayTheEndOfARollout(t *testing.T) {
	const version = "1"
	withEnvoy := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{connector.TokenVersionAnnotation: version}}}
	withEnvoy.Spec.InitContainers = []corev1.Container{{Name: "envoy"}}
	terminating, withoutEnvoy, outdated := *withEnvoy.DeepCopy(), *withEnvoy.DeepCopy(), *withEnvoy.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{Time: startTime}
	withoutEnvoy.DeletionTimestamp, withoutEnvoy.Spec.InitContainers = terminating.DeletionTimestamp, nil
	outdated.Annotations[connector.TokenVersionAnnotation] = "0"
	for name, test := range map[string]struct {
		pods                    []corev1.Pod
		rolledOut               bool
		withEnvoy, withoutEnvoy int
	}{
		"two pods":                        {[]corev1.Pod{withEnvoy, withEnvoy}, true, 2, 0},
		"a terminating pod":               {[]corev1.Pod{withEnvoy, terminating}, false, 2, 0},
		"a terminating pod without Envoy": {[]corev1.Pod{withEnvoy, withoutEnvoy}, false, 1, 1},
		"a pod with an earlier token":     {[]corev1.Pod{withEnvoy, outdated}, false, 2, 0},
	} {
		found := tunnel.Connectors{RolledOut: true}
		describePods(&found, test.pods, version)
		if found.RolledOut != test.rolledOut || found.WithEnvoy != test.withEnvoy || found.WithoutEnvoy != test.withoutEnvoy {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}
