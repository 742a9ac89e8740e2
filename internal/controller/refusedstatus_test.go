package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// refuseStatus makes the API server refuse statuses for the kind.
func (h *harness) refuseStatus(kind string) {
	h.injectError = func(w write) (bool, error) {
		if w.kind == kind && w.subresource == "status" {
			return false, errors.New("refused by a policy")
		}
		return true, nil
	}
}

func (h *harness) routeParents() []gatewayv1.RouteParentStatus {
	h.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {})
	return route.Status.Parents
}

// retryStatuses retries unwritten statuses for a minute on the fake clock from
// testing/synctest.
func (h *harness) retryStatuses() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	if err := h.writer.Start(ctx); err != nil {
		h.t.Error(err)
	}
}

func TestRefusedStatusAffectsNothingElse(t *testing.T) {
	// The route's status is refused. The configuration, the metrics and the other
	// statuses are up to date, even after further changes.
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.refuseStatus("HTTPRoute")
		h.recordChange()
		h.reconcileOnce()
		h.wantProgrammed("True", "Programmed", "")
		h.wantMetrics(map[string]float64{
			"gateway_programmed": 1, "unwritten_statuses": 1, "oldest_change_timestamp_seconds": -1, "reconcile_errors_total KubernetesUnavailable": 0,
		})
		h.advance(time.Minute)
		h.setHostname("b.example.com")
		h.annotate(v1alpha1.PausedAnnotation, "true")
		h.reconcileOnce()
		h.wantMetrics(map[string]float64{"gateway_paused": 1, "gateway_programmed": 0, "unwritten_statuses": 1})
		h.annotate(v1alpha1.PausedAnnotation, "false")
		h.advance(time.Minute)
		h.reconcileOnce()
		if got := h.servedHostname(); got != "b.example.com" {
			t.Errorf("the tunnel serves %q, want b.example.com", got)
		}

		h.retryStatuses()
		h.wantEvent("Warning StatusNotWritten The status of this object is out of date, because the controller cannot write it: update status of HTTPRoute infra/web: refused by a policy.")
		h.injectError = func(write) (bool, error) { return true, nil }
		h.retryStatuses()
		if got := h.routeParents(); len(got) != 1 || !conditions.TypeAccepted.IsTrue(got[0].Conditions) {
			t.Errorf("the route has status entries %+v, want one with Accepted=True", got)
		}
		h.wantMetrics(map[string]float64{"unwritten_statuses": -1})
	})
}

func TestRefusedGatewayStatusDoesNotMakeTheMetricsStale(t *testing.T) {
	h := newServedHarness(t)
	h.refuseStatus("Gateway")
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"gateway_paused": 1, "unwritten_statuses": 1, "reconcile_errors_total KubernetesUnavailable": 0})
}

func TestRefusedStatusDoesNotDelayTunnelDeletion(t *testing.T) {
	// The Gateway is deleted, but its entry in the route's status cannot be removed.
	synctest.Test(t, func(t *testing.T) {
		h := newServedHarness(t)
		h.refuseStatus("HTTPRoute")
		h.delete(h.gateway())
		h.reconcileFor(2 * time.Minute)
		h.reconcileOnce()
		if h.tunnelObject() != nil || len(h.cloud.LiveTunnels()) != 0 {
			t.Error("the tunnel still exists")
		}
		h.wantMetrics(map[string]float64{"unwritten_statuses": 1, "pushes_total": -1})
		h.injectError = func(write) (bool, error) { return true, nil }
		h.retryStatuses()
		if got := h.routeParents(); len(got) != 0 {
			t.Errorf("the route has status entries %+v, want none", got)
		}
		h.wantMetrics(map[string]float64{"unwritten_statuses": -1})
	})
}
