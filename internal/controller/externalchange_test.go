package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// A change by somebody else is reverted at the next read.
func TestExternalChange(t *testing.T) {
	h := servedHarness(t)
	h.cloud.SetConfiguration(h.tunnelID(), otherConfiguration("foreign.example.com"))
	h.settle(driftInterval)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
	h.wantEvent("DriftRepaired")
	h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "drift_fights_total": 0, "pushes_total": 2})
	if h.served() != "a.example.com" {
		t.Errorf("the tunnel serves %s", h.served())
	}
	if h.again > time.Minute {
		t.Errorf("the configuration is read again in %s only, although it may be changed again", h.again)
	}
}

// After three changes within ten minutes the controller stops writing, also after
// a restart, until the Gateway was paused.
func TestConfigurationIsContested(t *testing.T) {
	h := servedHarness(t)
	for range 3 {
		h.cloud.SetConfiguration(h.tunnelID(), otherConfiguration("foreign.example.com"))
		h.settle(driftInterval)
		h.wantEvent("DriftRepaired")
		h.settle(driftInterval / 2)
	}
	if h.tunnelObject().Status.Contested {
		t.Fatal("changes that are more than ten minutes apart count together")
	}
	for _, within := range []time.Duration{driftInterval, 2 * time.Minute, 2 * time.Minute} {
		h.cloud.SetConfiguration(h.tunnelID(), otherConfiguration("foreign.example.com"))
		h.settle(within)
	}
	h.wantEvent("DriftContested")
	h.wantMetrics(map[string]float64{"drift_fights_total": 1})
	for _, restart := range []bool{false, true} {
		if restart {
			h.restart()
		}
		h.serve("b.example.com")
		h.cloud.ResetCalls()
		h.settle(driftInterval)
		if len(h.cloud.Calls(fakeprovider.OpConfigure)) > 0 {
			t.Errorf("the configuration was written, after a restart: %t", restart)
		}
		h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonContested)
		h.wantProgrammed(metav1.ConditionFalse, "Pending", "pause the Gateway")
	}
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.settle(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.settle(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if h.served() != "b.example.com" || h.tunnelObject().Status.Contested {
		t.Errorf("the tunnel serves %s", h.served())
	}
}

// An external change is reported once, however often its repair fails, and a
// repair counts when it is made.
func TestExternalChangeThatCannotBeReverted(t *testing.T) {
	for name, err := range map[string]error{"the API is away": errReset, "the API asks to wait": limited(time.Second), "the budget is spent": budget(time.Second)} {
		t.Run(name, func(t *testing.T) {
			h := servedHarness(t)
			h.cloud.SetConfiguration(h.tunnelID(), otherConfiguration("foreign.example.com"))
			h.cloud.Fail(fakeprovider.OpConfigure, err, err, err)
			h.settle(driftInterval + time.Minute)
			reported := 0
			for _, e := range h.takeEvents() {
				if strings.Contains(e, "DriftRepaired") {
					reported++
				}
			}
			if reported != 1 || h.tunnelObject().Status.Contested || h.served() != "a.example.com" {
				t.Errorf("the change was reported %d times, and the tunnel serves %s", reported, h.served())
			}
			h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "pushes_total": 2})
		})
	}
}

// A paused Gateway's configuration is read and not written, also after a restart.
func TestPausedGateway(t *testing.T) {
	for name, test := range map[string]struct {
		hostname string
		status   metav1.ConditionStatus
	}{
		"whose configuration is in effect": {"a.example.com", metav1.ConditionTrue},
		"whose configuration has changed":  {"b.example.com", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			h := servedHarness(t)
			h.annotate(v1alpha1.PausedAnnotation, "true")
			h.serve(test.hostname)
			for range 2 {
				h.settle(time.Second)
				if c := h.programmed(); c.Status != test.status || !strings.Contains(c.Message, "paused") {
					t.Errorf("Programmed is %+v", c)
				}
				h.wantMetrics(map[string]float64{"gateway_paused": 1, "oldest_change_timestamp_seconds": -1})
				h.restart()
			}
			if h.served() != "a.example.com" || !h.tunnelObject().Spec.Paused {
				t.Errorf("the tunnel serves %s", h.served())
			}
			h.cloud.ResetCalls()
			h.settle(time.Hour)
			if len(h.cloud.Calls(fakeprovider.OpConfigure, fakeprovider.OpToken)) > 0 {
				t.Error("a paused Gateway's tunnel was changed")
			}
		})
	}
}

// A write whose answer was lost, or one of a process that has ended, may arrive
// after a newer one. It is looked for and reverted, and counts as no external
// change.
func TestWriteThatArrivesLate(t *testing.T) {
	late := provider.Configuration{}
	for name, begin := range map[string]func(*harness){
		"and was given up": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.serve("late.example.com")
			h.reconcileOnce()
			h.advance(time.Second)
		},
		"of a process that has ended": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.serve("late.example.com")
			h.reconcileOnce()
			h.restart()
		},
		"of a process that has ended after the next write": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.serve("late.example.com")
			h.reconcileOnce()
			h.advance(time.Second)
			h.serve("b.example.com")
			h.reconcileOnce()
			h.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := servedHarness(t)
			h.serve("late.example.com") // what it would be
			h.settle(time.Second)
			late, _ = h.cloud.StoredConfiguration(h.tunnelID())
			h.serve("a.example.com")
			h.settle(time.Minute)

			begin(h)
			h.serve("b.example.com")
			h.settle(3 * time.Second)
			if h.served() != "b.example.com" {
				t.Fatalf("the tunnel serves %s", h.served())
			}
			h.takeEvents()
			h.cloud.SetConfiguration(h.tunnelID(), late)
			h.settle(provider.CallTimeout + 2*time.Second)
			if h.served() != "b.example.com" {
				t.Errorf("the late configuration stays: %s", h.served())
			}
			for _, e := range h.takeEvents() {
				if strings.Contains(e, "Drift") {
					t.Errorf("event %q", e)
				}
			}
		})
	}
}
