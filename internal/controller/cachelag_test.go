package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// A cache that does not have the Tunnel yet makes no second one, also for a new
// process.
func TestStaleCacheDoesNotCauseASecondTunnel(t *testing.T) {
	for name, restart := range map[string]bool{"of the process that created it": false, "of a new process": true} {
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
				t.Errorf("%d tunnels were created", got)
			}
			if got := h.countTunnelWrites("create"); got != 1 {
				t.Errorf("%d Tunnel objects were created", got)
			}
			id := h.tunnelID()
			h.unfreezeCache()
			h.reconcileFor(time.Second)
			if h.tunnelID() != id || h.servedHostname() != "a.example.com" {
				t.Errorf("tunnel %s serves %q", h.tunnelID(), h.servedHostname())
			}
		})
	}
}

// A cache that has an earlier Tunnel does not overwrite the record.
func TestStaleCacheDoesNotOverwriteTheRecord(t *testing.T) {
	h := newHarness(t)
	for range 3 { // as many steps as it takes; the cache then has none of the later ones
		h.freezeCache()
		h.reconcileOnce()
		h.restart()
		h.advance(time.Second)
	}
	h.reconcileFor(20 * time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if got := len(h.cloud.Calls(fakeprovider.OpCreateTunnel)); got != 1 {
		t.Errorf("%d tunnels were created", got)
	}
}

// A Gateway that only the cache does not have keeps its tunnel.
func TestGatewayMissingOnlyInTheCacheKeepsItsTunnel(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	g := h.gateway()
	h.delete(g)
	h.freezeCache()
	g.ResourceVersion = ""
	h.create(g)
	h.reconcileFor(10 * time.Minute)
	if len(h.cloud.LiveTunnels()) != 1 || h.deployment() == nil {
		t.Errorf("left are %+v and %+v", h.cloud.LiveTunnels(), h.deployment())
	}
	if missing := h.tunnelObject().Status.MissingSince; missing != nil {
		t.Errorf("the Gateway is missing since %s", missing)
	}
}

// A Gateway that comes back right before a destructive step keeps its tunnel,
// whatever the cache says.
func TestGatewayRecreatedBeforeADestructiveStepKeepsItsTunnel(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	g := h.gateway()
	h.delete(g)
	h.reconcileFor(29 * time.Second)
	h.advance(10 * time.Second)
	h.cloud.ResetCalls()
	h.freezeCache() // the cache has no Gateway
	reads := 0
	h.lifecycle.gateways.inScope = func(string) bool { // it is asked before each read of a Gateway
		if reads++; reads == 2 {
			again := newGateway("shared", "a.example.com")
			again.UID = "shared-2"
			h.create(again)
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
		t.Errorf("left are %+v and %+v", h.cloud.LiveTunnels(), h.deployment())
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// A cache that still has a Tunnel that was deleted is not believed.
func TestDeletedTunnelInAStaleCacheIsIgnored(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	h.freezeCache()
	h.reconcileFor(time.Minute)
	if h.tunnelObject() != nil || len(h.cloud.LiveTunnels()) != 0 {
		t.Fatalf("left are %+v and %+v", h.tunnelObject(), h.cloud.LiveTunnels())
	}
	if h.requeueAfter != 0 {
		t.Errorf("the controller comes back in %s for a Tunnel that is gone", h.requeueAfter)
	}
}

// A Tunnel that an administrator changes at the same moment is read again: the
// change counts.
func TestConcurrentChangeOfTheTunnelTakesEffect(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	h.freezeCache()
	object := &v1alpha1.Tunnel{}
	h.change(controllerNamespace, h.tunnelObject().Name, object, func() { object.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
	h.reconcileFor(time.Minute)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Fatal("the tunnel was deleted although it is to be retained")
	}
	h.wantReady(v1alpha1.TunnelRetained, "Retained")
}

// countTunnelWrites returns how many writes of that verb concerned Tunnels.
func (h *harness) countTunnelWrites(verb string) int {
	n := 0
	for _, w := range h.drainWrites() {
		if w.verb == verb && w.kind == "Tunnel" {
			n++
		}
	}
	return n
}
