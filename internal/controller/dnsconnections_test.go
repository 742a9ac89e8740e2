package controller

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// countLists returns how often the tunnels were listed since the last call.
func (h *dnsHarness) countLists() int {
	n := len(h.cloud.Calls(fakeprovider.OpTunnels))
	h.cloud.ResetCalls()
	return n
}

func TestConnectorsOfOthersAreFoundAtCloudflare(t *testing.T) {
	h := newDNSHarness(t)
	h.runFor(10 * time.Second)
	h.checkConnections()
	h.runFor(10 * time.Second)
	h.wantRecords()
	h.cloud.SetConnected(h.tunnelID(), true)
	h.runFor(20 * time.Second)
	h.checkConnections()
	h.runFor(10 * time.Second)
	h.wantRecords(managedRecord)

	// Once a connector has been connected, it no longer matters.
	h.cloud.SetConnected(h.tunnelID(), false)
	h.countLists()
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(time.Minute)
	h.checkConnections()
	h.runFor(20 * time.Minute)
	h.wantRecords("b.example.com CNAME west.infra.shared")
	if n := h.countLists(); n != 0 {
		t.Errorf("the tunnels were listed %d times", n)
	}
}

func TestConnectionsAreCheckedLessAndLessOften(t *testing.T) {
	h := newDNSHarness(t)
	h.runFor(10 * time.Second)
	h.countLists()
	for range 120 { // an hour
		h.checkConnections()
		h.advance(connectionInterval)
	}
	if n := h.countLists(); n < 6 || n > 12 {
		t.Errorf("the tunnels were listed %d times in an hour, want about ten", n)
	}
}

func TestConnectionsAreNotCheckedUnnecessarily(t *testing.T) {
	for name, change := range map[string]func(h *dnsHarness){
		"no zone":      func(h *dnsHarness) { h.setDNS(v1alpha1.DNSOff) },
		"another zone": func(h *dnsHarness) { h.setDNS(v1alpha1.DNSManage, "example.net") },
		"mode Observe": func(h *dnsHarness) { h.setDNS(v1alpha1.DNSObserve, "example.com") },
		"own connectors": func(h *dnsHarness) {
			h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector = nil })
		},
		"a paused Gateway": func(h *dnsHarness) { h.annotate(v1alpha1.PausedAnnotation, "true") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newDNSHarness(t)
			h.processDue()
			change(h)
			h.restart()
			h.runFor(10 * time.Second)
			h.countLists()
			h.checkConnections()
			if n := h.countLists(); n != 0 {
				t.Errorf("the tunnels were listed %d times", n)
			}
		})
	}
}
