package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestLocallyManagedTunnelIsNotChanged(t *testing.T) {
	// The controller never configures or deletes a locally managed tunnel, and runs no
	// connectors for it.
	for name, create := range map[string]func(*harness) provider.TunnelID{
		"that the Gateway adopts": func(h *harness) provider.TunnelID {
			id := h.createUnmanagedTunnel("by hand")
			h.adopt(string(id), true)
			return id
		},
		"with the name of the Gateway's tunnel": func(h *harness) provider.TunnelID { return h.createUnmanagedTunnel("west.infra.shared") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newConnectorHarness(t)
			id := create(h)
			h.cloud.SetLocal(id, true)
			h.reconcileFor(5 * time.Minute)
			h.wantProgrammed(metav1.ConditionFalse, "Pending", "locally managed")
			h.wantKinds()
			if calls := h.cloud.Calls(fakeprovider.OpConfigure, fakeprovider.OpToken, fakeprovider.OpDeleteTunnel); len(calls) > 0 {
				t.Errorf("got calls %+v, want none", calls)
			}
			h.cloud.SetLocal(id, false)
			h.reconcileFor(2 * time.Minute)
			if h.tunnelID() != id || h.servedHostname() != "a.example.com" || h.deployment() == nil {
				t.Errorf("after the migration tunnel %s serves %s", h.tunnelID(), h.servedHostname())
			}
		})
	}
}

func TestTunnelThatBecomesLocallyManagedIsNoLongerWritten(t *testing.T) {
	// The controller stops writing to a tunnel that becomes locally managed.
	h := newServedHarness(t)
	id := h.tunnelID()
	h.cloud.SetLocal(id, true)
	h.reconcileFor(driftInterval)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "locally managed")
	h.cloud.ResetCalls()
	h.setHostname("b.example.com")
	h.reconcileFor(5 * time.Minute)
	if calls := h.cloud.Calls(fakeprovider.OpConfigure, fakeprovider.OpDeleteTunnel); len(calls) > 0 {
		t.Errorf("got calls %+v, want none", calls)
	}
	h.cloud.SetLocal(id, false)
	h.reconcileFor(2 * time.Minute)
	if h.servedHostname() != "b.example.com" {
		t.Errorf("the tunnel serves %s, want b.example.com", h.servedHostname())
	}
}
