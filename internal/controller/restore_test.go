package controller

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// newRestoredTunnel is a Tunnel that was restored from a backup without its status, and
// whose tunnel exists at Cloudflare.
func newRestoredTunnel(t *testing.T, change func(*v1alpha1.Tunnel)) *harness {
	t.Helper()
	object := newTunnel("shared", "")
	change(object)
	h := newConnectorHarness(t, object)
	h.createUnmanagedTunnel("west.infra.shared")
	return h
}

// A Tunnel may be restored before its Gateway: without a record of the Gateway's
// UID it waits one hour.
func TestRestoredTunnelWaitsForItsGateway(t *testing.T) {
	h := newRestoredTunnel(t, func(*v1alpha1.Tunnel) {})
	h.delete(h.gateway())
	h.reconcileFor(59 * time.Minute)
	h.wantCalls()
	if len(h.cloud.LiveTunnels()) != 1 || h.tunnelObject() == nil {
		t.Fatalf("left are %+v and %+v", h.cloud.LiveTunnels(), h.tunnelObject())
	}
	t.Run("that comes", func(t *testing.T) {
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
		t.Errorf("left are %+v and %+v", h.cloud.LiveTunnels(), h.tunnelObject())
	}
}

// A Tunnel of another cluster is blocked with its Gateway and without: nothing is
// asked of Cloudflare, and no connectors run.
func TestTunnelOfAnotherClusterIsBlocked(t *testing.T) {
	for name, without := range map[string]bool{"with its Gateway": false, "without its Gateway": true} {
		t.Run(name, func(t *testing.T) {
			h := newRestoredTunnel(t, func(o *v1alpha1.Tunnel) { o.Spec.ClusterUID, o.Status.GatewayUID = "other", "shared-1" })
			if without {
				h.delete(h.gateway())
			}
			h.reconcileFor(2 * time.Hour)
			h.wantCalls()
			h.wantKinds()
			h.wantReady(v1alpha1.TunnelBlocked, tunnel.ReasonOtherCluster)
			if without {
				return
			}
			h.delete(h.tunnelObject())
			h.reconcileFor(30 * time.Second)
			if h.servedHostname() != "a.example.com" || len(h.cloud.LiveTunnels()) != 1 {
				t.Errorf("after the object was deleted, tunnel %s serves %q", h.tunnelID(), h.servedHostname())
			}
		})
	}
}
