package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// countWrites returns the number of configuration writes since the previous check.
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
	// Within five minutes, the controller writes the configuration at most 35 times, however
	// often an object changes. A later change waits at most 20 seconds, and no time once the
	// bucket has refilled.
	h := newServedHarness(t)
	h.flap(5 * time.Minute)
	if writes := h.countWrites(); writes > 35 || writes < 33 {
		t.Errorf("the controller wrote the configuration %d times, want at most 35 and not much less", writes)
	}
	h.setHostname("last.example.com")
	h.reconcileFor(20 * time.Second)
	if h.servedHostname() != "last.example.com" {
		t.Errorf("20 seconds after the change, the tunnel serves %s", h.servedHostname())
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
	until := h.wallTime.Add(h.requeueAfter).Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "the controller writes the latest changes at "+until+".")
	h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonConfigurationThrottled)
	h.reconcileFor(20 * time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "is in effect.")
	h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonServing)
}
