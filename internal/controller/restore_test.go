package controller

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// newRestoredTunnel returns a harness with a Tunnel that was restored from a backup
// without its status. The tunnel exists at Cloudflare.
func newRestoredTunnel(t *testing.T, change func(*v1alpha1.Tunnel)) *harness {
	t.Helper()
	object := newTunnel("shared", "")
	change(object)
	h := newConnectorHarness(t, object)
	h.createUnmanagedTunnel("west.infra.shared")
	return h
}

func TestRestoredTunnelWaitsForItsGateway(t *testing.T) {
	// A Tunnel may be restored before its Gateway. Without a recorded Gateway UID, the
	// Tunnel waits one hour before it retires.
	h := newRestoredTunnel(t, func(*v1alpha1.Tunnel) {})
	h.delete(h.gateway())
	h.reconcileFor(59 * time.Minute)
	h.wantCalls()
	if len(h.cloud.LiveTunnels()) != 1 || h.tunnelObject() == nil {
		t.Fatalf("the tunnels are %+v and the Tunnel is %+v, want one of each", h.cloud.LiveTunnels(), h.tunnelObject())
	}
	t.Run("when the Gateway is restored", func(t *testing.T) {
		h.create(newGateway("shared", "a.example.com"))
		h.reconcileFor(30 * time.Second)
		if h.servedHostname() != "a.example.com" || len(h.cloud.LiveTunnels()) != 1 {
			t.Errorf("tunnel %s serves %q", h.tunnelID(), h.servedHostname())
		}
	})
}

func TestRestoredTunnelRetiresWithoutAGateway(t *testing.T) {
	h := newRestoredTunnel(t, func(*v1alpha1.Tunnel) {})
	h.delete(h.gateway())
	h.reconcileFor(62 * time.Minute)
	if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
		t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", h.cloud.LiveTunnels(), h.tunnelObject())
	}
}

func TestTunnelOfAnotherClusterIsBlocked(t *testing.T) {
	// Another cluster's Tunnel is blocked, with or without its Gateway. The controller
	// makes no API requests and runs no connectors for it.
	for name, withoutGateway := range map[string]bool{"with its Gateway": false, "without its Gateway": true} {
		t.Run(name, func(t *testing.T) {
			h := newRestoredTunnel(t, func(o *v1alpha1.Tunnel) { o.Spec.ClusterUID, o.Status.GatewayUID = "other", "shared-1" })
			if withoutGateway {
				h.delete(h.gateway())
			}
			h.reconcileFor(2 * time.Hour)
			h.wantCalls()
			h.wantKinds()
			h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonOtherCluster)
			if withoutGateway {
				return
			}
			h.delete(h.tunnelObject())
			h.reconcileFor(30 * time.Second)
			if h.servedHostname() != "a.example.com" || len(h.cloud.LiveTunnels()) != 1 {
				t.Errorf("after the Tunnel was deleted, tunnel %s serves %q, want a.example.com", h.tunnelID(), h.servedHostname())
			}
		})
	}
}
