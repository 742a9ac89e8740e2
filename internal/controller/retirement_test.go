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
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestRetirementDeletesTheObjectLast(t *testing.T) {
	// The controller records the deletion before the first destructive API request. All
	// requests share one slot in the API request budget, and the object is deleted
	// last.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.SetConnected(h.tunnelID(), true)
	h.cloud.Crash(h.tunnelID())
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	h.cloud.ResetCalls()
	h.drainWrites()
	h.accounts.bySource = map[credentials.Source]*openAccount{}
	h.accounts.connect = func(string, string) (provider.Provider, error) { return deletionChecker{h.cloud, h}, nil }
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Tunnel" && w.verb == "delete" && len(h.cloud.LiveTunnels()) > 0 {
			t.Error("the object was deleted before the tunnel")
		}
		return true, nil
	}
	h.reconcileFor(30 * time.Second)
	if h.tunnelObject() != nil {
		t.Fatalf("the Tunnel %+v was not deleted", h.tunnelObject())
	}
	calls := h.cloud.Calls()
	for _, call := range calls {
		if call.Priority != provider.PriorityDeletion || call.Reservation == nil || call.Reservation != calls[0].Reservation {
			t.Errorf("%s has a different slot or priority than the first call", call.Op)
		}
	}
	h.wantCalls(fakeprovider.OpConnections, fakeprovider.OpTunnel, fakeprovider.OpDisconnect, fakeprovider.OpDeleteTunnel)
}

// deletionChecker fails the test if a destructive request comes before the deletion is
// recorded.
type deletionChecker struct {
	provider.Provider
	harness *harness
}

func (p deletionChecker) check() {
	if object := p.harness.tunnelObject(); object == nil || !object.Status.Deleting {
		p.harness.t.Error("a destructive request was made before the deletion was recorded")
	}
}

// Disconnect implements provider.Provider.
func (p deletionChecker) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	p.check()
	return p.Provider.Disconnect(ctx, id, connector)
}

// DeleteTunnel implements provider.Provider.
func (p deletionChecker) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	p.check()
	return p.Provider.DeleteTunnel(ctx, id)
}

func TestRetirementRemovesStatusEntries(t *testing.T) {
	// The controller removes its status entries from routes. A failure to do so does not
	// delay the retirement.
	parents := func(h *harness) int {
		route := newRoute()
		if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(route), route); err != nil {
			t.Fatal(err)
		}
		return len(route.Status.Parents)
	}
	h := newHarness(t)
	h.reconcileFor(time.Second)
	if parents(h) != 1 {
		t.Fatal("the route has no status entry")
	}
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	if parents(h) != 1 {
		t.Error("the status entry was removed before the end of the delay")
	}
	h.reconcileFor(5 * time.Second)
	if parents(h) != 0 {
		t.Error("the status entry was not removed")
	}
}

var errRefused = errors.New("refused")

func errorUnless(ok bool) error {
	if ok {
		return nil
	}
	return errRefused
}

func TestBlockedDeletionIsReported(t *testing.T) {
	// The Tunnel remains while its deletion is blocked, and reports the reason.
	for name, test := range map[string]struct {
		prevent, allow func(*harness)
		want           conditions.Reason
	}{
		"a connector that the controller does not run": {
			func(h *harness) { h.cloud.SetConnected(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetConnected(h.tunnelID(), false) }, conditions.ReasonConnectorsConnected,
		},
		"private network routes": {
			func(h *harness) { h.cloud.SetRoutes(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetRoutes(h.tunnelID(), false) }, conditions.ReasonPrivateRoutes,
		},
		"a tunnel that became locally managed": {
			func(h *harness) { h.cloud.SetLocal(h.tunnelID(), true) },
			func(h *harness) { h.cloud.SetLocal(h.tunnelID(), false) }, conditions.ReasonLocallyManaged,
		},
		"no API token": {
			func(h *harness) { h.accounts.defaults.Token = "" },
			func(h *harness) { h.accounts.defaults.Token = "token" }, conditions.ReasonCredentialsMissing,
		},
		"an API token of another account": {
			func(h *harness) { h.accounts.defaults.Account = "other" },
			func(h *harness) { h.accounts.defaults.Account = fakeprovider.AccountID }, conditions.ReasonWrongAccount,
		},
		"a paused Gateway": {
			func(h *harness) {
				h.create(newGateway("shared", "a.example.com"))
				h.annotate(v1alpha1.PausedAnnotation, "true")
				h.reconcileFor(time.Second)
				h.delete(h.gateway())
			},
			func(h *harness) {
				object := h.tunnelObject()
				h.change(object.Namespace, object.Name, object, func() { object.Spec.Paused = false })
			}, conditions.ReasonPaused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.reconcileFor(time.Second)
			h.delete(h.gateway())
			test.prevent(h)
			h.reconcileFor(5 * time.Minute)
			h.wantReady(v1alpha1.TunnelBlocked, test.want)
			if len(h.cloud.LiveTunnels()) != 1 {
				t.Fatal("the tunnel was deleted")
			}
			if got := h.metric("gateway_missing_timestamp_seconds"); got < 0 {
				t.Error("the metric gateway_missing_timestamp_seconds is absent")
			}
			test.allow(h)
			h.reconcileFor(2 * time.Minute)
			if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
				t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", h.cloud.LiveTunnels(), h.tunnelObject())
			}
			h.reconcileOnce()
			h.wantMetrics(map[string]float64{"gateway_missing_timestamp_seconds": -1, "pushes_total": -1})
		})
	}
}

func TestRetainedTunnelServesARecreatedGateway(t *testing.T) {
	// A retained tunnel and its object remain, without connectors and without an alert. The
	// tunnel serves the Gateway again when it is recreated.
	h := newConnectorHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyRetain)}
	})
	h.reconcileFor(time.Second)
	id := h.tunnelID()
	h.delete(h.gateway())
	h.reconcileFor(time.Hour)
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
	h.wantMetrics(map[string]float64{"gateway_missing_timestamp_seconds": -1})
	if h.requeueAfter != 0 || h.deployment() != nil || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("requeue after %s, Deployment %+v, tunnels %+v; want 0, none and one tunnel", h.requeueAfter, h.deployment(), h.cloud.LiveTunnels())
	}
	recreated := newGateway("shared", "b.example.com")
	recreated.UID = "shared-2"
	h.create(recreated)
	h.reconcileFor(time.Minute)
	if h.tunnelID() != id || h.servedHostname() != "b.example.com" || h.deployment() == nil {
		t.Errorf("tunnel %s serves %s", h.tunnelID(), h.servedHostname())
	}
}

func TestGatewayRecreatedDuringTheDeletionWaitsForIt(t *testing.T) {
	// A Gateway that is recreated while its tunnel is being deleted waits for the deletion.
	// It keeps the tunnel if the deletion has failed.
	for name, test := range map[string]struct {
		fail       func(*harness)
		sameTunnel bool
	}{
		"with an error":        {func(h *harness) { h.cloud.Fail(fakeprovider.OpDeleteTunnel, errReset) }, true},
		"with a lost response": {func(h *harness) { h.cloud.FailAfter(fakeprovider.OpDeleteTunnel, errReset) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.reconcileFor(time.Second)
			id := h.tunnelID()
			h.delete(h.gateway())
			h.reconcileFor(29 * time.Second)
			test.fail(h)
			for len(h.cloud.Calls(fakeprovider.OpDeleteTunnel)) == 0 {
				h.advance(time.Second)
				h.reconcileOnce()
			}
			h.drainEvents()
			h.create(newGateway("shared", "b.example.com"))
			h.reconcileOnce()
			h.wantProgrammed(metav1.ConditionFalse, "Pending", "is deleting the tunnel")
			h.reconcileFor(2 * time.Minute)
			h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
			if remaining := h.cloud.LiveTunnels(); len(remaining) != 1 || (h.tunnelID() == id) != test.sameTunnel || h.servedHostname() != "b.example.com" {
				t.Errorf("tunnel %s serves %s; the tunnels are %+v", h.tunnelID(), h.servedHostname(), remaining)
			}
			for _, e := range h.drainEvents() {
				if strings.Contains(e, "Drift") {
					t.Errorf("got event %q, want no drift event", e)
				}
			}
		})
	}
}

func TestNewCredentialsAreUsedImmediately(t *testing.T) {
	// The controller uses a new API token immediately, without waiting for the backoff.
	h := newHarness(t)
	h.accounts.defaults = credentials.Default{Account: fakeprovider.AccountID}
	h.reconcileFor(time.Minute)
	h.wantCalls()
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "token")
	h.accounts.defaults.Token = "token"
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if c := condition(h.tunnelObject(), conditions.TypeTunnelCredentialsValid); c.Status != metav1.ConditionTrue {
		t.Errorf("CredentialsValid is %+v, want True", c)
	}
	h.cloud.Fail(fakeprovider.OpConfigure, provider.ErrUnauthorized)
	h.setHostname("b.example.com")
	h.reconcileFor(500 * time.Millisecond)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "rejects the API token")
	h.accounts.defaults.Token = "another"
	h.cloud.ResetCalls()
	h.reconcileFor(100 * time.Millisecond) // without waiting for the backoff
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func TestCanceledReconcileReportsNothing(t *testing.T) {
	// A canceled reconcile writes no conditions and emits no events.
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Tunnel" && w.subresource == "status" {
			cancel()
			return false, ctx.Err()
		}
		return true, nil
	}
	if _, err := h.Reconcile(ctx, h.key); err != nil {
		t.Errorf("got error %v, want nil", err)
	}
	if conditions := h.gateway().Status.Conditions; len(conditions) > 0 {
		t.Errorf("the Gateway has conditions %+v, want none", conditions)
	}
	if events := h.drainEvents(); len(events) > 0 {
		t.Errorf("got events %q, want none", events)
	}
}
