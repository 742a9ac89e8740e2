package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// protect makes the GatewayClass require Access for the hostnames.
func (h *harness) protect(hostnames ...string) {
	h.changeConfiguration(func(spec *v1alpha1.TunnelConfigurationSpec) {
		spec.ListenerConfigurations = nil
		for _, hostname := range hostnames {
			spec.ListenerConfigurations = append(spec.ListenerConfigurations, v1alpha1.ListenerConfiguration{
				ProtocolPort: v1alpha1.EveryPort, Hostname: hostname,
				Access: &v1alpha1.Access{Required: true, TeamName: ptr.To("example"), AUDTags: []v1alpha1.AUDTag{"tag"}},
			})
		}
	})
}

func (h *harness) countWarnings(reason string) int {
	count := 0
	for _, event := range h.drainEvents() {
		if strings.HasPrefix(event, "Warning "+reason+" ") {
			count++
		}
	}
	return count
}

func TestAWarningCausesOneEventForEachMessage(t *testing.T) {
	// The Gateway gets an event about a hostname that is protected only in part, again
	// when the hostnames change, but not at every reconcile.
	h := newHarness(t)
	h.setHostname("*.example.com")
	h.protect("admin.example.com")
	want := func(description string, count int) {
		t.Helper()
		h.reconcileFor(warningInterval)
		if got := h.countWarnings("AccessBypass"); got != count {
			t.Errorf("%s: got %d events, want %d", description, got, count)
		}
	}
	want("a gap", 1)
	want("the same gap", 0)
	h.protect("admin.example.com", "internal.example.com")
	want("another gap", 1)
	h.protect("*.example.com")
	want("no gap", 0)
	h.protect("admin.example.com", "internal.example.com")
	want("the gap again", 1)
}

func TestFrequentChangesOfAWarningCauseFewEvents(t *testing.T) {
	h := newHarness(t)
	h.setHostname("*.example.com")
	for i := range 20 {
		h.protect([]string{"admin.example.com", "internal.example.com"}[i%2])
		h.reconcileFor(time.Second)
	}
	if got := h.countWarnings("AccessBypass"); got != 1 {
		t.Errorf("got %d events in less than %s, want 1", got, warningInterval)
	}
}

func TestAnUnusedEntryCausesAnEvent(t *testing.T) {
	h := newHarness(t)
	h.protect("admin.example.org")
	h.reconcileFor(time.Second)
	if got := h.countWarnings("UnusedListenerConfiguration"); got != 1 {
		t.Errorf("got %d events, want 1", got)
	}
	h.setHostname("admin.example.org")
	h.reconcileFor(2 * warningInterval)
	for _, c := range h.gateway().Status.Conditions {
		if strings.Contains(c.Message, "no effect") {
			t.Errorf("the condition %s still contains the warning: %s", c.Type, c.Message)
		}
	}
}
