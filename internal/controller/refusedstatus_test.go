package controller

import (
	"errors"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// expectedToFail fails the test when the check passes. It marks a known defect.
func expectedToFail(t *testing.T, reason string, check func() error) {
	t.Helper()
	if check() == nil {
		t.Errorf("the check passes, although %s", reason)
	}
}

var errStatusRefused = errors.New("refused by a policy")

// refuseStatus makes the API server refuse the statuses of objects of the kind.
func (h *harness) refuseStatus(kind string) {
	h.injectError = func(w write) (bool, error) {
		refused := w.kind == kind && w.subresource == "status"
		if refused {
			return false, errStatusRefused
		}
		return true, nil
	}
}

func TestRefusedStatusDoesNotFailTheReconcile(t *testing.T) {
	h := newHarness(t)
	h.refuseStatus("HTTPRoute")
	expectedToFail(t, "a status that cannot be written fails the reconcile", func() error {
		_, err := h.Reconcile(t.Context(), h.key)
		return err
	})
	if got := h.programmedCondition().Status; got != "True" {
		t.Errorf("Programmed is %s, want True", got)
	}
	expectedToFail(t, "the metrics are stale", func() error {
		if h.metric("gateway_programmed") != 1 {
			return errors.New("the Gateway has no metrics")
		}
		return nil
	})
	route := &gatewayv1.HTTPRoute{}
	h.injectError = func(write) (bool, error) { return true, nil }
	h.advance(time.Minute)
	h.reconcileOnce()
	h.change("infra", "web", route, func() {})
	if len(route.Status.Parents) != 1 {
		t.Errorf("the route has %d status entries, want 1", len(route.Status.Parents))
	}
}
