package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// withSecondGateway calls do while the harness reconciles Gateway infra/second.
func (h *harness) withSecondGateway(do func()) {
	before := h.key
	h.key = state.GatewayKey("infra", "second")
	defer func() { h.key = before }()
	do()
}

// createUnmanagedTunnel creates a tunnel at Cloudflare that belongs to no Gateway.
func (h *harness) createUnmanagedTunnel(name string) provider.TunnelID {
	h.t.Helper()
	created, err := h.cloud.CreateTunnel(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	h.cloud.ResetCalls()
	return created.ID
}

func TestAdoptedTunnelIsNeitherCreatedNorDeleted(t *testing.T) {
	// The controller records the claim before the first API call, and neither creates nor
	// deletes the adopted tunnel.
	h := newHarness(t)
	id := h.createUnmanagedTunnel("by hand")
	h.adopt(string(id), false)
	recorded := ""
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Tunnel" && recorded == "" && w.subresource == "status" {
			recorded = "after the first call"
			if len(h.cloud.Calls()) == 0 {
				recorded = "before the first call"
			}
		}
		return true, nil
	}
	h.reconcileFor(time.Second)
	if recorded != "before the first call" {
		t.Errorf("the claim was recorded %s", recorded)
	}
	h.wantCalls(fakeprovider.OpTunnel, fakeprovider.OpConfiguration, fakeprovider.OpConfigure, fakeprovider.OpToken)
	h.wantEvent("TunnelAdopted")
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	h.delete(h.gateway())
	h.reconcileFor(3 * time.Minute)
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Error("the adopted tunnel was deleted")
	}
}

func TestTakeoverRequiresPermission(t *testing.T) {
	// The controller replaces an existing configuration only if takeover is set.
	h := newHarness(t)
	id := h.createUnmanagedTunnel("by hand")
	h.cloud.SetConfiguration(id, unmanagedConfiguration("old.example.com"))
	h.adopt(string(id), false)
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "takeover")
	h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonTakeoverRequired)
	if h.servedHostname() != "old.example.com" {
		t.Error("the configuration was replaced without takeover")
	}
	h.adopt(string(id), true)
	h.reconcileFor(time.Second)
	h.wantEvent("TakenOver")
	if h.servedHostname() != "a.example.com" {
		t.Error("the configuration was not replaced despite takeover")
	}
}

func TestFirstGatewayKeepsAnAdoptedTunnel(t *testing.T) {
	// If two Gateways adopt the same tunnel, the first one keeps it until its Tunnel is
	// deleted.
	second := newGateway("second", "b.example.com")
	h := newHarness(t, second)
	id := h.createUnmanagedTunnel("by hand")
	h.adopt(string(id), true)
	h.reconcileFor(time.Second)
	h.withSecondGateway(func() {
		h.reconcileFor(time.Minute)
		h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonTunnelInUse)
		h.wantProgrammed(metav1.ConditionFalse, "Pending", "Another Gateway uses the tunnel")
		if message := h.programmedCondition().Message; strings.Contains(message, "shared") {
			t.Errorf("the condition names the other Gateway: %s", message)
		}
	})
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s, want a.example.com", h.servedHostname())
	}
	h.cloud.ResetCalls()
	h.reconcileFor(time.Minute)
	h.wantCalls() // the second Gateway does not affect the first one

	object := h.tunnelObject()
	h.delete(h.gateway())
	h.reconcileFor(3 * time.Minute)
	keys, err := (watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}).fromTunnel(t.Context(), object)
	wantKeys(t, keys, err, "second", "shared")
	h.delete(h.tunnelObject()) // an administrator deletes the retained Tunnel
	h.withSecondGateway(func() {
		h.reconcileFor(time.Second)
		if h.tunnelID() != id || len(h.cloud.LiveTunnels()) != 1 {
			t.Errorf("the second Gateway has tunnel %s, want %s", h.tunnelID(), id)
		}
	})
}

func TestConcurrentClaimsAreSerialized(t *testing.T) {
	// While one Gateway claims a tunnel, another Gateway's claim waits until the first
	// claim is recorded.
	second := newGateway("second", "b.example.com")
	h := newHarness(t, second)
	id := h.createUnmanagedTunnel("by hand")
	h.adopt(string(id), true)
	concurrent := false
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Tunnel" && w.verb == "update" && w.name == "infra.shared" && !concurrent {
			concurrent = true
			if _, err := h.Reconcile(context.Background(), state.GatewayKey("infra", "second")); err != nil {
				t.Error(err)
			}
		}
		return true, nil
	}
	h.reconcileFor(time.Second)
	if !concurrent {
		t.Fatal("the second Gateway was not reconciled during the claim")
	}
	h.withSecondGateway(func() {
		if object := h.tunnelObject(); object.Status.TunnelID != "" {
			t.Errorf("the second Gateway recorded tunnel %s during the claim", object.Status.TunnelID)
		}
		h.reconcileFor(time.Minute)
		h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonTunnelInUse)
	})
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s, want a.example.com", h.servedHostname())
	}
}

func TestClaimFindsARivalThatTheCacheLacks(t *testing.T) {
	// A claim finds a rival that is missing in the cache, because it lists the Tunnels from
	// the API server.
	older := withExisting(newTunnel("older", ""), "")
	h := newHarness(t, newGateway("older", "b.example.com"))
	id := h.createUnmanagedTunnel("by hand")
	h.freezeCache()
	older.Spec.Existing.ID, older.Status = string(id), v1alpha1.TunnelStatus{TunnelID: string(id), Configuration: v1alpha1.ConfigurationRecord{Hash: "x"}}
	older.CreationTimestamp = metav1.NewTime(startTime.Add(-time.Hour))
	older.UID = "a" // for equal creation timestamps, the lower UID has precedence
	h.create(older)
	h.adopt(string(id), true)
	h.reconcileOnce()
	h.wantCalls()
	h.unfreezeCache()
	h.reconcileFor(time.Minute)
	h.wantCalls()
	h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonTunnelInUse)
}

func TestTunnelOfAnotherControllerIsNotChanged(t *testing.T) {
	// The controller never changes a tunnel that another controller's Tunnel records.
	other := newTunnel("elsewhere", "")
	other.Spec.ControllerName = "example.com/other"
	other.CreationTimestamp = metav1.NewTime(startTime.Add(time.Hour)) // it keeps the tunnel although it is younger
	h := newHarness(t)
	id := h.createUnmanagedTunnel("by hand")
	other.Status.TunnelID = string(id)
	h.create(other)
	h.adopt(string(id), true)
	h.reconcileFor(time.Minute)
	h.wantCalls()
	h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonTunnelInUse)
	h.delete(h.gateway())
	h.reconcileFor(3 * time.Minute)
	h.wantCalls()
}

func TestTunnelOfAnotherGatewayIsNotAdopted(t *testing.T) {
	// A Gateway cannot adopt the tunnel that the controller created for another Gateway.
	h := newHarness(t, newGateway("second", "b.example.com"))
	h.reconcileFor(time.Second)
	id := h.tunnelID()
	h.withSecondGateway(func() {
		h.adopt(string(id), true)
		h.reconcileFor(time.Minute)
		if got := len(h.cloud.Calls(fakeprovider.OpConfigure)); got != 1 {
			t.Errorf("the tunnel was configured %d times, want 1", got)
		}
		if ready := condition(h.tunnelObject(), conditions.TypeTunnelReady); ready.Status != metav1.ConditionFalse {
			t.Errorf("Ready of the second Gateway's Tunnel is %+v, want False", ready)
		}
	})
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s, want a.example.com", h.servedHostname())
	}
}

func TestOnlyTheGatewaysOwnTunnelObjectIsUsed(t *testing.T) {
	// The controller does not use a Tunnel object whose spec names another Gateway or
	// controller.
	for name, change := range map[string]func(*v1alpha1.Tunnel){
		"Gateway":    func(o *v1alpha1.Tunnel) { o.Spec.Gateway.Name = "other" },
		"controller": func(o *v1alpha1.Tunnel) { o.Spec.ControllerName = "example.com/other" },
	} {
		t.Run(name, func(t *testing.T) {
			object := newTunnel("shared", "")
			change(object)
			h := newHarness(t, object)
			h.reconcileFor(time.Minute)
			h.wantCalls()
			h.wantProgrammed(metav1.ConditionFalse, "Pending", object.Name)
			if addresses := h.gateway().Status.Addresses; len(addresses) > 0 {
				t.Errorf("the Gateway has addresses %+v, want none", addresses)
			}
		})
	}
}

func TestRecordedTunnelServesUntilItsObjectIsDeleted(t *testing.T) {
	// If the configuration names another tunnel, the recorded tunnel serves until its
	// Tunnel object is deleted.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	id := h.tunnelID()
	other := h.createUnmanagedTunnel("by hand")
	h.adopt(string(other), true)
	h.setHostname("b.example.com")
	h.reconcileFor(time.Minute)
	h.wantProgrammed(metav1.ConditionFalse, "SettingsNotApplied", "tunnel.existing")
	if h.tunnelID() != id || h.servedHostname() != "b.example.com" {
		t.Errorf("tunnel %s serves %s, want tunnel %s and b.example.com", h.tunnelID(), h.servedHostname(), id)
	}
	h.delete(h.tunnelObject())
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if h.tunnelID() != other || len(h.cloud.LiveTunnels()) != 2 {
		t.Errorf("the Gateway has tunnel %s of %+v, want %s of two", h.tunnelID(), h.cloud.LiveTunnels(), other)
	}
}
