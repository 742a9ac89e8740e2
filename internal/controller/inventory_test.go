package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// inventory returns an inventory for the controller process.
func (h *harness) inventory() *inventory {
	return newInventory(h.process, Options{Metrics: h.observer.metrics}, func(key state.Key) { h.requeued = append(h.requeued, key.Name) })
}

// takeInventory takes an inventory and compares the Gateways that it requeues.
func (h *harness) takeInventory(i *inventory, requeued ...string) {
	h.t.Helper()
	h.requeued = nil
	if err := i.checkAccounts(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if diff := cmp.Diff(requeued, h.requeued); diff != "" {
		h.t.Errorf("requeued Gateways differ (-want +got):\n%s", diff)
	}
}

func TestInventoryRequeuesGateways(t *testing.T) {
	// An inventory makes one request per account, and finds tunnels that are missing or
	// have lost connectors.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	i := h.inventory()
	h.cloud.SetConnected(h.tunnelID(), true)
	h.cloud.ResetCalls()
	h.takeInventory(i)
	h.wantCalls(fakeprovider.OpTunnels)

	h.cloud.SetConnected(h.tunnelID(), false)
	h.takeInventory(i, "shared")
	h.cloud.ResetCalls()
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpToken) // the token may have been replaced
	h.reconcileFor(time.Second)
	h.wantCalls()

	id := h.tunnelID()
	if err := h.cloud.DeleteTunnel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.takeInventory(i, "shared")
	h.cloud.ResetCalls()
	h.drainEvents()
	h.reconcileFor(20 * time.Second)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	h.wantEvent("TunnelLost")
	h.wantCurrentToken()
	if h.tunnelID() == id {
		t.Error("the tunnel was not replaced")
	}
}

func TestOrphanedTunnelsAreReportedAndKept(t *testing.T) {
	// A tunnel in this installation without a Tunnel object is reported as orphaned
	// when two successive inventories find it. The controller never deletes it.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.SetConnected(h.tunnelID(), true)
	h.createUnmanagedTunnel("by hand")
	orphan := h.createUnmanagedTunnel("west.infra.gone")
	i := h.inventory()
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"account_tunnels": 3, "orphaned_tunnels": 0})
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"account_tunnels": 3, "orphaned_tunnels": 1})
	if len(h.cloud.LiveTunnels()) != 3 {
		t.Error("the controller deleted a tunnel")
	}
	if err := h.cloud.DeleteTunnel(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"account_tunnels": 2, "orphaned_tunnels": 0})
	h.createUnmanagedTunnel("west.infra.gone") // another tunnel with the same name
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"account_tunnels": 3, "orphaned_tunnels": 0})
}

func TestTunnelBeingCreatedIsNotOrphaned(t *testing.T) {
	// A tunnel that its Tunnel object does not record yet is found by its name.
	h := newHarness(t)
	h.cloud.FailAfter(fakeprovider.OpCreateTunnel, errReset)
	h.reconcileOnce()
	i := h.inventory()
	h.takeInventory(i)
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"account_tunnels": 1, "orphaned_tunnels": 0})
}

func TestFailedInventoryDoesNotCount(t *testing.T) {
	// A failed inventory changes nothing and does not count as one of the two
	// inventories.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.SetConnected(h.tunnelID(), true)
	h.createUnmanagedTunnel("west.infra.gone")
	i := h.inventory()
	h.takeInventory(i)
	h.cloud.Fail(fakeprovider.OpTunnels, errReset)
	if err := i.checkAccounts(t.Context()); !errors.Is(err, errReset) {
		t.Errorf("got error %v, want %v", err, errReset)
	}
	h.wantMetrics(map[string]float64{"orphaned_tunnels": 0})
	h.takeInventory(i)
	h.wantMetrics(map[string]float64{"orphaned_tunnels": 1})
}

func TestInventoryWithoutBudgetIsRepeatedAtItsSlot(t *testing.T) {
	// A call that is repeated before its slot gets another slot behind all others, and a call that
	// is repeated later finds its request used up by other calls.
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.reconcileFor(time.Second)
		h.cloud.ResetCalls()
		i := h.inventory()
		i.interval = 30 * time.Second
		h.cloud.Fail(fakeprovider.OpTunnels, &provider.RateLimitedError{RetryAfter: 3 * time.Second, Budget: true})
		ctx, cancel := context.WithTimeout(t.Context(), 34*time.Second) // two intervals take longer
		defer cancel()
		if err := i.Start(ctx); err != nil {
			t.Error(err)
		}
		h.wantCalls(fakeprovider.OpTunnels, fakeprovider.OpTunnels)
	})
}

var errReset = &provider.UnavailableError{Err: errors.New("connection reset")}
