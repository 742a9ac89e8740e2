package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// countWrites counts configuration writes since the previous check.
func (h *harness) countWrites() int {
	writes := 0
	for _, call := range h.cloud.Calls() {
		if call.Op == fakeprovider.OpConfigure {
			writes++
		}
	}
	h.cloud.ResetCalls()
	return writes
}

// flap changes the Gateway twice per second for the duration.
func (h *harness) flap(duration time.Duration) {
	h.t.Helper()
	hostnames := []string{"b.example.com", "c.example.com", "d.example.com"}
	for i := range int(duration / (500 * time.Millisecond)) {
		h.setHostname(hostnames[i%len(hostnames)])
		h.reconcileFor(500 * time.Millisecond)
	}
}

func TestFlappingObjectCausesFewWrites(t *testing.T) {
	// Within five minutes, the controller writes the configuration at most 115 times,
	// however often an object changes: 80 times completely, and 35 times without the
	// rules that one namespace revokes. A later change waits at most 5 seconds, and no
	// time once the bucket has refilled.
	h := newServedHarness(t)
	h.flap(5 * time.Minute)
	if writes := h.countWrites(); writes > 115 || writes < 105 {
		t.Errorf("the controller wrote the configuration %d times, want at most 115 and not much less", writes)
	}
	h.setHostname("last.example.com")
	h.reconcileFor(5 * time.Second)
	if h.servedHostname() != "last.example.com" {
		t.Errorf("5 seconds after the change, the tunnel serves %s", h.servedHostname())
	}
	h.reconcileFor(7 * time.Minute)
	h.countWrites()
	h.flap(10 * time.Second)
	if writes := h.countWrites(); writes < 9 {
		t.Errorf("the controller wrote the configuration %d times within ten seconds, want one write per second", writes)
	}
}

func TestConditionsReportTheWaitForAToken(t *testing.T) {
	h := newServedHarness(t)
	h.flap(time.Minute)
	h.countWrites()
	h.setHostname("last.example.com")
	h.reconcileOnce()
	if h.requeueAfter <= 0 || h.requeueAfter > throttledPace {
		t.Errorf("the next reconcile is in %s, want at most %s", h.requeueAfter, throttledPace)
	}
	h.advance(h.requeueAfter)
	h.reconcileOnce()
	h.wantCalls()
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "(20 writes, and one more every 5s), so the controller writes the latest changes at 2026-11-22T12:01:")
	h.wantReady(v1alpha1.TunnelServing, conditions.ReasonConfigurationThrottled)
	h.reconcileFor(5 * time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "is in effect.")
	h.wantReady(v1alpha1.TunnelServing, conditions.ReasonServing)
}

func routeOf(namespace, path string) *gatewayv1.HTTPRoute {
	route := newRoute()
	route.Namespace = namespace
	route.Spec.ParentRefs[0].Namespace = ptr.To(gatewayv1.Namespace("infra"))
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
		Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: &path,
	}}}
	return route
}

func TestEventAndMetricsNameTheNamespaceThatKeepsChanging(t *testing.T) {
	h := newHarness(t, namespaceObject("team-a"), namespaceObject("team-b"), routeOf("team-a", "/a"), routeOf("team-b", "/b"))
	h.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}}
	})
	h.reconcileFor(5 * time.Second)
	h.drainEvents()
	flap := func(namespace string, times int, gap time.Duration) {
		for i := range times {
			route := &gatewayv1.HTTPRoute{}
			h.change(namespace, "web", route, func() {
				route.Spec.Rules[0].Matches[0].Path.Value = ptr.To([]string{"/x", "/y"}[i%2])
				route.Generation++
			})
			h.reconcileFor(gap)
		}
	}
	flap("team-b", 2, time.Second)
	flap("team-a", 61, time.Second)
	h.wantMetrics(map[string]float64{
		"configuration_changes_total team-a": 38, "configuration_changes_total team-b": 2, "pushes_total": 41, "configuration_throttled": 1,
	})
	var warnings []string
	for _, e := range h.drainEvents() {
		if strings.Contains(e, "ConfigurationThrottled") {
			warnings = append(warnings, e)
		}
	}
	want := "Warning ConfigurationThrottled The controller wrote the configuration of the tunnel 28 times within 10 minutes, " +
		"so limits.configurationUpdates now delays each change by up to 5s. Namespaces whose objects changed: team-a (25), team-b (2)."
	if diff := cmp.Diff([]string{want}, warnings); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
	flap("team-a", 301, 2*time.Second)
	if repeated := strings.Count(strings.Join(h.drainEvents(), "\n"), "ConfigurationThrottled"); repeated != 1 {
		t.Errorf("the event was repeated %d times within ten minutes, want once", repeated)
	}
	h.reconcileFor(time.Minute)
	h.wantMetrics(map[string]float64{"configuration_throttled": 0})
}

func TestRepeatedWritesHaveNoContributors(t *testing.T) {
	// A failed write counts once for the namespace that changed. Repeating it, and
	// reverting an external change, count for no namespace.
	h := newServedHarness(t)
	h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: errors.New("502")})
	h.setHostname("b.example.com")
	h.reconcileFor(time.Minute)
	h.cloud.SetConfiguration(h.tunnelID(), provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:418"}}})
	h.reconcileFor(driftInterval)
	if writes := h.countWrites(); writes != 3 {
		t.Errorf("the controller wrote the configuration %d times, want 3", writes)
	}
	h.wantMetrics(map[string]float64{"configuration_changes_total infra": 1})
}
