package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestStaleCacheDoesNotCauseASecondTunnel(t *testing.T) {
	// The controller does not create a second tunnel if its cache does not contain the
	// Tunnel yet, even after a restart.
	for name, restart := range map[string]bool{"in the same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.freezeCache()
			h.reconcileOnce()
			if restart {
				h.restart()
			}
			h.advance(time.Second)
			h.reconcileFor(time.Second)
			if got := len(h.cloud.Calls(fakeprovider.OpCreateTunnel)); got != 1 {
				t.Errorf("%d tunnels were created, want 1", got)
			}
			if got := h.countTunnelWrites("create"); got != 1 {
				t.Errorf("%d Tunnel objects were created, want 1", got)
			}
			id := h.tunnelID()
			h.unfreezeCache()
			h.reconcileFor(time.Second)
			if h.tunnelID() != id || h.servedHostname() != "a.example.com" {
				t.Errorf("tunnel %s serves %q, want tunnel %s and a.example.com", h.tunnelID(), h.servedHostname(), id)
			}
		})
	}
}

func TestStaleCacheDoesNotOverwriteTheRecord(t *testing.T) {
	// A cache with an earlier version of the Tunnel does not make the controller overwrite
	// the record.
	h := newHarness(t)
	for range 3 { // the number of steps until the tunnel serves; the cache lags behind each
		h.freezeCache()
		h.reconcileOnce()
		h.restart()
		h.advance(time.Second)
	}
	h.reconcileFor(20 * time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if got := len(h.cloud.Calls(fakeprovider.OpCreateTunnel)); got != 1 {
		t.Errorf("%d tunnels were created, want 1", got)
	}
}

func TestGatewayMissingOnlyInTheCacheKeepsItsTunnel(t *testing.T) {
	// A Gateway that is missing only in the cache keeps its tunnel.
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	g := h.gateway()
	h.delete(g)
	h.freezeCache()
	g.ResourceVersion = ""
	h.create(g)
	h.reconcileFor(10 * time.Minute)
	if len(h.cloud.LiveTunnels()) != 1 || h.deployment() == nil {
		t.Errorf("the tunnels are %+v and the Deployment is %+v, want one of each", h.cloud.LiveTunnels(), h.deployment())
	}
	if missing := h.tunnelObject().Status.MissingSince; missing != nil {
		t.Errorf("the Tunnel reports its Gateway as missing since %s", missing)
	}
}

func TestGatewayRecreatedBeforeADestructiveStepKeepsItsTunnel(t *testing.T) {
	// A Gateway that is created again right before a destructive step keeps its tunnel,
	// even if the cache does not contain it.
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	g := h.gateway()
	h.delete(g)
	h.reconcileFor(29 * time.Second)
	h.advance(10 * time.Second)
	h.cloud.ResetCalls()
	h.freezeCache() // the cache does not contain the Gateway
	reads := 0
	h.gateways.inScope = func(string) bool { // called before each read of a Gateway
		if reads++; reads == 2 {
			recreated := newGateway("shared", "a.example.com")
			recreated.UID = "shared-2"
			h.create(recreated)
		}
		return true
	}
	h.reconcileOnce()
	if h.wantCalls(); reads < 2 {
		t.Fatal("the Gateway was not read again before the first destructive step")
	}
	h.unfreezeCache()
	h.reconcileFor(time.Second)
	if h.deployment() == nil || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the tunnels are %+v and the Deployment is %+v, want one of each", h.cloud.LiveTunnels(), h.deployment())
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func TestDeletedTunnelInAStaleCacheIsIgnored(t *testing.T) {
	// A deleted Tunnel that is still in the cache does not cause further reconciles.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	h.freezeCache()
	h.reconcileFor(time.Minute)
	if h.tunnelObject() != nil || len(h.cloud.LiveTunnels()) != 0 {
		t.Fatalf("the Tunnel %+v and the tunnels %+v were not deleted", h.tunnelObject(), h.cloud.LiveTunnels())
	}
	if h.requeueAfter != 0 {
		t.Errorf("the controller reconciles the deleted Tunnel again in %s", h.requeueAfter)
	}
}

func TestConcurrentChangeOfTheTunnelTakesEffect(t *testing.T) {
	// If an administrator changes the Tunnel concurrently, the controller reads it
	// again and respects the change.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	h.freezeCache()
	object := &v1alpha1.Tunnel{}
	h.change(controllerNamespace, h.tunnelObject().Name, object, func() { object.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
	h.reconcileFor(time.Minute)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Fatal("the tunnel was deleted despite deletion policy Retain")
	}
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
}

func (h *harness) countTunnelWrites(verb string) int {
	n := 0
	for _, w := range h.drainWrites() {
		if w.verb == verb && w.kind == "Tunnel" {
			n++
		}
	}
	return n
}
