package controller

import (
	"testing"
	"time"

	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// expectedToFail reports an error unless the expectation has failed. The reason explains
// the failure.
func expectedToFail(t *testing.T, reason string, failed bool) {
	t.Helper()
	if !failed {
		t.Errorf("the expectation is met, although it should fail: %s", reason)
	}
}

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
	// often an object changes.
	h := newServedHarness(t)
	h.flap(5 * time.Minute)
	writes := h.countWrites()
	t.Logf("%d writes", writes)
	expectedToFail(t, "each change is written within a second", writes > 35)
}
