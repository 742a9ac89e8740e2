package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// The deletion is recorded before the first call that takes something away, all
// calls share one turn of the request budget, and the object goes last.
func TestRetirement(t *testing.T) {
	h := newHarness(t)
	h.settle(time.Second)
	h.cloud.SetConnected(h.tunnelID(), true)
	h.cloud.Crash(h.tunnelID())
	h.delete(h.gateway())
	h.settle(29 * time.Second)
	h.cloud.ResetCalls()
	h.takeWrites()
	h.lifecycle.accounts.opened = map[credentials.Source]*opened{}
	h.lifecycle.accounts.connect = func(string, string) (provider.Provider, error) { return recordedDeletion{h.cloud, h}, nil }
	h.fault = func(w write) (bool, error) {
		if w.kind == "Tunnel" && w.verb == "delete" && len(h.cloud.LiveTunnels()) > 0 {
			t.Error("the object is deleted before the tunnel")
		}
		return true, nil
	}
	h.settle(30 * time.Second)
	if h.tunnelObject() != nil {
		t.Fatalf("left is %+v", h.tunnelObject())
	}
	calls := h.cloud.Calls()
	for _, call := range calls {
		if call.Priority != provider.PriorityDeletion || call.Reservation == nil || call.Reservation != calls[0].Reservation {
			t.Errorf("%s has another turn or priority than the first call", call.Op)
		}
	}
	h.wantCalls(fakeprovider.OpConnections, fakeprovider.OpTunnel, fakeprovider.OpDisconnect, fakeprovider.OpDeleteTunnel)
}

// recordedDeletion fails the test when something is taken away before that is
// recorded.
type recordedDeletion struct {
	provider.Provider
	h *harness
}

func (p recordedDeletion) check() {
	if object := p.h.tunnelObject(); object == nil || !object.Status.Deleting {
		p.h.t.Error("something is taken away before that is recorded")
	}
}

// Disconnect implements provider.Provider.
func (p recordedDeletion) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	p.check()
	return p.Provider.Disconnect(ctx, id, connector)
}

// DeleteTunnel implements provider.Provider.
func (p recordedDeletion) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	p.check()
	return p.Provider.DeleteTunnel(ctx, id)
}

// The entries in the statuses of routes are removed; when they cannot be written,
// nothing else waits for it.
func TestRetirementWithdrawsStatuses(t *testing.T) {
	parents := func(h *harness) int {
		route := newRoute()
		if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(route), route); err != nil {
			t.Fatal(err)
		}
		return len(route.Status.Parents)
	}
	t.Run("that can be written", func(t *testing.T) {
		h := newHarness(t)
		h.settle(time.Second)
		if parents(h) != 1 {
			t.Fatal("the route has no entry")
		}
		h.delete(h.gateway())
		h.settle(29 * time.Second)
		if parents(h) != 1 {
			t.Error("the entry was removed before the delay has passed")
		}
		h.settle(5 * time.Second)
		if parents(h) != 0 {
			t.Error("the route still has an entry")
		}
	})
	t.Run("that cannot be written", func(t *testing.T) {
		h := newHarness(t)
		h.settle(time.Second)
		h.delete(h.gateway())
		h.fault = func(w write) (bool, error) { return w.kind != "HTTPRoute", errorUnless(w.kind != "HTTPRoute") }
		h.settle(29 * time.Second)
		for range 5 { // the last reconciles find no Tunnel, and fail
			_, _ = h.Reconcile(t.Context(), h.key)
			h.advance(5 * time.Second)
		}
		if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
			t.Errorf("left are %+v and %+v", h.cloud.LiveTunnels(), h.tunnelObject())
		}
	})
}

var errRefused = errors.New("refused")

func errorUnless(ok bool) error {
	if ok {
		return nil
	}
	return errRefused
}

// What prevents the deletion shows on the Tunnel, and the Tunnel stays.
func TestTunnelThatCannotBeDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		prevent, allow func(*harness)
		want           tunnel.Reason
	}{
		"a connector that the controller does not run": {
			func(h *harness) { h.cloud.SetConnected(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetConnected(h.tunnelID(), false) }, tunnel.ReasonConnectorsConnected,
		},
		"private network routes": {
			func(h *harness) { h.cloud.SetRoutes(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetRoutes(h.tunnelID(), false) }, tunnel.ReasonPrivateRoutes,
		},
		"a tunnel that became locally managed": {
			func(h *harness) { h.cloud.SetLocal(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetLocal(h.tunnelID(), false) }, tunnel.ReasonLocallyManaged,
		},
		"no API token": {
			func(h *harness) { h.lifecycle.accounts.flags.Token = "" },
			func(h *harness) { h.lifecycle.accounts.flags.Token = "token" }, tunnel.ReasonCredentialsMissing,
		},
		"an API token for another account": {
			func(h *harness) { h.lifecycle.accounts.flags.Account = "other" },
			func(h *harness) { h.lifecycle.accounts.flags.Account = fakeprovider.AccountID }, tunnel.ReasonWrongAccount,
		},
		"the Gateway was paused": {
			func(h *harness) {
				h.create(newGateway("shared", "a.example.com"))
				h.annotate(v1alpha1.PausedAnnotation, "true")
				h.settle(time.Second)
				h.delete(h.gateway())
			},
			func(h *harness) {
				object := h.tunnelObject()
				h.change(object.Namespace, object.Name, object, func() { object.Spec.Paused = false })
			}, tunnel.ReasonPaused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settle(time.Second)
			h.delete(h.gateway())
			test.prevent(h)
			h.settle(5 * time.Minute)
			h.wantReady(v1alpha1.TunnelBlocked, test.want)
			if len(h.cloud.LiveTunnels()) != 1 {
				t.Fatal("the tunnel was deleted")
			}
			if got := h.metric("gateway_missing_timestamp_seconds"); got < 0 {
				t.Error("no metric says since when the Gateway is missing")
			}
			test.allow(h)
			h.settle(2 * time.Minute)
			if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
				t.Errorf("left are %+v and %+v", h.cloud.LiveTunnels(), h.tunnelObject())
			}
			h.reconcileOnce()
			h.wantMetrics(map[string]float64{"gateway_missing_timestamp_seconds": -1, "pushes_total": -1})
		})
	}
}

// A retained tunnel stays with its object, without connectors and without an
// alert, and serves a Gateway that returns.
func TestRetainedTunnel(t *testing.T) {
	h := withConnectors(t)
	h.configure(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyRetain)}
	})
	h.settle(time.Second)
	id := h.tunnelID()
	h.delete(h.gateway())
	h.settle(time.Hour)
	h.wantReady(v1alpha1.TunnelRetained, "Retained")
	h.wantMetrics(map[string]float64{"gateway_missing_timestamp_seconds": -1})
	if h.again != 0 || h.deployment() != nil || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the controller comes back in %s; left are %+v and %+v", h.again, h.deployment(), h.cloud.LiveTunnels())
	}
	again := newGateway("shared", "b.example.com")
	again.UID = "shared-2"
	h.create(again)
	h.settle(time.Minute)
	if h.tunnelID() != id || h.served() != "b.example.com" || h.deployment() == nil {
		t.Errorf("tunnel %s serves %s", h.tunnelID(), h.served())
	}
}

// A Gateway that returns while its tunnel is being deleted waits, and resumes the
// tunnel when the deletion has failed.
func TestGatewayReturnsDuringTheDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*harness)
		same  bool // whether it gets the same tunnel
	}{
		"that failed":           {func(h *harness) { h.cloud.Fail(fakeprovider.OpDeleteTunnel, errReset) }, true},
		"that was not answered": {func(h *harness) { h.cloud.FailAfter(fakeprovider.OpDeleteTunnel, errReset) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settle(time.Second)
			id := h.tunnelID()
			h.delete(h.gateway())
			h.settle(29 * time.Second)
			test.begin(h)
			for len(h.cloud.Calls(fakeprovider.OpDeleteTunnel)) == 0 {
				h.advance(time.Second)
				h.reconcileOnce()
			}
			h.takeEvents()
			h.create(newGateway("shared", "b.example.com"))
			h.reconcileOnce()
			h.wantProgrammed(metav1.ConditionFalse, "Pending", "being deleted")
			h.settle(2 * time.Minute)
			h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
			if left := h.cloud.LiveTunnels(); len(left) != 1 || (h.tunnelID() == id) != test.same || h.served() != "b.example.com" {
				t.Errorf("tunnel %s serves %s; left are %+v", h.tunnelID(), h.served(), left)
			}
			for _, e := range h.takeEvents() {
				if strings.Contains(e, "Drift") {
					t.Errorf("event %q", e)
				}
			}
		})
	}
}

// A token of another account, and a Secret that appears, are used at once.
func TestCredentialsThatAppear(t *testing.T) {
	h := newHarness(t)
	h.lifecycle.accounts.flags = credentials.Default{Account: fakeprovider.AccountID}
	h.settle(time.Minute)
	h.wantCalls()
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "token")
	h.lifecycle.accounts.flags.Token = "token"
	h.settle(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if c := condition(h.tunnelObject(), v1alpha1.TunnelCredentialsValid); c.Status != metav1.ConditionTrue {
		t.Errorf("CredentialsValid is %+v", c)
	}
	h.cloud.Fail(fakeprovider.OpConfigure, provider.ErrUnauthorized)
	h.serve("b.example.com")
	h.settle(500 * time.Millisecond)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "refuses the API token")
	h.lifecycle.accounts.flags.Token = "another"
	h.cloud.ResetCalls()
	h.settle(100 * time.Millisecond) // without waiting for the backoff
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// The process that ends in the middle reports nothing.
func TestReconcileThatIsCancelled(t *testing.T) {
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.fault = func(w write) (bool, error) {
		if w.kind == "Tunnel" && w.subresource == "status" {
			cancel()
			return false, ctx.Err()
		}
		return true, nil
	}
	if _, err := h.Reconcile(ctx, h.key); err != nil {
		t.Errorf("the error is %v", err)
	}
	if conditions := h.gateway().Status.Conditions; len(conditions) > 0 {
		t.Errorf("the Gateway has the conditions %+v", conditions)
	}
	if events := h.takeEvents(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}
