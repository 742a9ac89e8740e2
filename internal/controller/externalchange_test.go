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
func TestExternalChangeIsReverted(t *testing.T) {
	h := newServedHarness(t)
	h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("foreign.example.com"))
	h.reconcileFor(driftInterval)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
	h.wantEvent("DriftRepaired")
	h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "drift_fights_total": 0, "pushes_total": 2})
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s", h.servedHostname())
	}
	if h.requeueAfter > time.Minute {
		t.Errorf("the configuration is read again in %s only, although it may be changed again", h.requeueAfter)
	}
}

// After three changes within ten minutes the controller stops writing, also after
// a restart, until the Gateway was paused.
func TestContestedConfigurationIsNotWritten(t *testing.T) {
	h := newServedHarness(t)
	for range 3 {
		h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("foreign.example.com"))
		h.reconcileFor(driftInterval)
		h.wantEvent("DriftRepaired")
		h.reconcileFor(driftInterval / 2)
	}
	if h.tunnelObject().Status.Contested {
		t.Fatal("changes that are more than ten minutes apart count together")
	}
	for _, within := range []time.Duration{driftInterval, 2 * time.Minute, 2 * time.Minute} {
		h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("foreign.example.com"))
		h.reconcileFor(within)
	}
	h.wantEvent("DriftContested")
	h.wantMetrics(map[string]float64{"drift_fights_total": 1})
	for _, restart := range []bool{false, true} {
		if restart {
			h.restart()
		}
		h.setHostname("b.example.com")
		h.cloud.ResetCalls()
		h.reconcileFor(driftInterval)
		if len(h.cloud.Calls(fakeprovider.OpConfigure)) > 0 {
			t.Errorf("the configuration was written, after a restart: %t", restart)
		}
		h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonContested)
		h.wantProgrammed(metav1.ConditionFalse, "Pending", "pause the Gateway")
	}
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileFor(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if h.servedHostname() != "b.example.com" || h.tunnelObject().Status.Contested {
		t.Errorf("the tunnel serves %s", h.servedHostname())
	}
}

// An external change is reported once, however often its repair fails, and a
// repair counts when it is made.
func TestFailingRepairIsReportedOnce(t *testing.T) {
	for name, err := range map[string]error{"the API is away": errReset, "the API asks to wait": rateLimited(time.Second), "the budget is spent": budgetDeferred(time.Second)} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("foreign.example.com"))
			h.cloud.Fail(fakeprovider.OpConfigure, err, err, err)
			h.reconcileFor(driftInterval + time.Minute)
			reported := 0
			for _, e := range h.drainEvents() {
				if strings.Contains(e, "DriftRepaired") {
					reported++
				}
			}
			if reported != 1 || h.tunnelObject().Status.Contested || h.servedHostname() != "a.example.com" {
				t.Errorf("the change was reported %d times, and the tunnel serves %s", reported, h.servedHostname())
			}
			h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "pushes_total": 2})
		})
	}
}

// A paused Gateway's configuration is read and not written, also after a restart.
func TestPausedGatewayIsNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		hostname string
		status   metav1.ConditionStatus
	}{
		"whose configuration is in effect": {"a.example.com", metav1.ConditionTrue},
		"whose configuration has changed":  {"b.example.com", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.annotate(v1alpha1.PausedAnnotation, "true")
			h.setHostname(test.hostname)
			for range 2 {
				h.reconcileFor(time.Second)
				if c := h.programmedCondition(); c.Status != test.status || !strings.Contains(c.Message, "paused") {
					t.Errorf("Programmed is %+v", c)
				}
				h.wantMetrics(map[string]float64{"gateway_paused": 1, "oldest_change_timestamp_seconds": -1})
				h.restart()
			}
			if h.servedHostname() != "a.example.com" || !h.tunnelObject().Spec.Paused {
				t.Errorf("the tunnel serves %s", h.servedHostname())
			}
			h.cloud.ResetCalls()
			h.reconcileFor(time.Hour)
			if len(h.cloud.Calls(fakeprovider.OpConfigure, fakeprovider.OpToken)) > 0 {
				t.Error("a paused Gateway's tunnel was changed")
			}
		})
	}
}

// A write whose answer was lost, or one of a process that has ended, may arrive
// after a newer one. It is looked for and reverted, and counts as no external
// change.
func TestLateWriteIsReverted(t *testing.T) {
	late := provider.Configuration{}
	for name, begin := range map[string]func(*harness){
		"and was given up": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.setHostname("late.example.com")
			h.reconcileOnce()
			h.advance(time.Second)
		},
		"of a process that has ended": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.setHostname("late.example.com")
			h.reconcileOnce()
			h.restart()
		},
		"of a process that has ended after the next write": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.setHostname("late.example.com")
			h.reconcileOnce()
			h.advance(time.Second)
			h.setHostname("b.example.com")
			h.reconcileOnce()
			h.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.setHostname("late.example.com") // what it would be
			h.reconcileFor(time.Second)
			late, _ = h.cloud.Document(h.tunnelID())
			h.setHostname("a.example.com")
			h.reconcileFor(time.Minute)

			begin(h)
			h.setHostname("b.example.com")
			h.reconcileFor(3 * time.Second)
			if h.servedHostname() != "b.example.com" {
				t.Fatalf("the tunnel serves %s", h.servedHostname())
			}
			h.drainEvents()
			h.cloud.SetConfiguration(h.tunnelID(), late)
			h.reconcileFor(provider.CallTimeout + 2*time.Second)
			if h.servedHostname() != "b.example.com" {
				t.Errorf("the late configuration stays: %s", h.servedHostname())
			}
			for _, e := range h.drainEvents() {
				if strings.Contains(e, "Drift") {
					t.Errorf("event %q", e)
				}
			}
		})
	}
}
