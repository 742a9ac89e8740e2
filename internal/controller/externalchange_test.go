package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestExternalChangeIsReverted(t *testing.T) {
	// The controller reverts an external change at the next drift check.
	h := newServedHarness(t)
	h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("other.example.com"))
	h.reconcileFor(driftInterval)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
	h.wantEvent("DriftRepaired")
	h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "drift_fights_total": 0, "pushes_total": 2})
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s, want a.example.com", h.servedHostname())
	}
	if h.requeueAfter > time.Minute {
		t.Errorf("the next drift check after a repair is in %s, want at most 1m", h.requeueAfter)
	}
}

func TestContestedConfigurationIsNotWritten(t *testing.T) {
	// After three external changes within ten minutes the controller stops writing, even
	// after a restart. It resumes after the Gateway has been paused.
	h := newServedHarness(t)
	for range 3 {
		h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("other.example.com"))
		h.reconcileFor(driftInterval)
		h.wantEvent("DriftRepaired")
		h.reconcileFor(driftInterval / 2)
	}
	if h.tunnelObject().Status.Contested {
		t.Fatal("the Tunnel is contested although the changes were more than ten minutes apart")
	}
	for _, duration := range []time.Duration{driftInterval, 2 * time.Minute, 2 * time.Minute} {
		h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("other.example.com"))
		h.reconcileFor(duration)
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
			t.Errorf("the configuration was written (after a restart: %t)", restart)
		}
		h.wantReady(v1alpha1.TunnelServing, conditions.ReasonContested)
		h.wantProgrammed(metav1.ConditionFalse, "Pending", "pause the Gateway")
	}
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileFor(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if h.servedHostname() != "b.example.com" || h.tunnelObject().Status.Contested {
		t.Errorf("the tunnel serves %s, want b.example.com", h.servedHostname())
	}
}

func TestFailingRepairIsReportedOnce(t *testing.T) {
	// The controller reports an external change once even if the repair fails
	// repeatedly, and counts the repair only when it succeeds.
	for name, err := range map[string]error{"the API is unavailable": errReset, "the API rate limit is reached": rateLimited(time.Second), "the request budget is exhausted": budgetDeferred(time.Second)} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("other.example.com"))
			h.cloud.Fail(fakeprovider.OpConfigure, err, err, err)
			h.reconcileFor(driftInterval + time.Minute)
			reported := 0
			for _, e := range h.drainEvents() {
				if strings.Contains(e, "DriftRepaired") {
					reported++
				}
			}
			if reported != 1 || h.tunnelObject().Status.Contested || h.servedHostname() != "a.example.com" {
				t.Errorf("the change was reported %d times and the tunnel serves %s, want 1 and a.example.com", reported, h.servedHostname())
			}
			h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "pushes_total": 2})
		})
	}
}

func TestPausedGatewayIsNotWritten(t *testing.T) {
	// The controller reads but never writes a paused Gateway's configuration, even
	// after a restart.
	for name, test := range map[string]struct {
		hostname string
		status   metav1.ConditionStatus
	}{
		"with the current configuration": {"a.example.com", metav1.ConditionTrue},
		"with a pending change":          {"b.example.com", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.annotate(v1alpha1.PausedAnnotation, "true")
			h.setHostname(test.hostname)
			for range 2 {
				h.reconcileFor(time.Second)
				if c := h.programmedCondition(); c.Status != test.status || !strings.Contains(c.Message, "paused") {
					t.Errorf("Programmed is %+v, want %s and a message about the pause", c, test.status)
				}
				h.wantMetrics(map[string]float64{"gateway_paused": 1, "oldest_change_timestamp_seconds": -1})
				h.restart()
			}
			if h.servedHostname() != "a.example.com" || !h.tunnelObject().Spec.Paused {
				t.Errorf("the tunnel serves %s, want a.example.com", h.servedHostname())
			}
			h.cloud.ResetCalls()
			h.reconcileFor(time.Hour)
			if len(h.cloud.Calls(fakeprovider.OpConfigure, fakeprovider.OpToken)) > 0 {
				t.Error("the tunnel of a paused Gateway was changed")
			}
		})
	}
}

func TestLateWriteIsReverted(t *testing.T) {
	// A write that timed out or belongs to an earlier process may arrive after a newer one.
	// The controller reverts the late write and does not count it as an external change.
	late := provider.Configuration{}
	for name, write := range map[string]func(*harness){
		"after a timeout": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.setHostname("late.example.com")
			h.reconcileOnce()
			h.advance(time.Second)
		},
		"after a restart": func(h *harness) {
			h.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			h.setHostname("late.example.com")
			h.reconcileOnce()
			h.restart()
		},
		"after another write and a restart": func(h *harness) {
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
			h.setHostname("late.example.com") // to get the late write's configuration
			h.reconcileFor(time.Second)
			late, _ = h.cloud.StoredConfiguration(h.tunnelID())
			h.setHostname("a.example.com")
			h.reconcileFor(time.Minute)

			write(h)
			h.setHostname("b.example.com")
			h.reconcileFor(3 * time.Second)
			if h.servedHostname() != "b.example.com" {
				t.Fatalf("the tunnel serves %s, want b.example.com", h.servedHostname())
			}
			h.drainEvents()
			h.cloud.SetConfiguration(h.tunnelID(), late)
			h.reconcileFor(provider.CallTimeout + 2*time.Second)
			if h.servedHostname() != "b.example.com" {
				t.Errorf("the late write was not reverted: the tunnel serves %s", h.servedHostname())
			}
			for _, e := range h.drainEvents() {
				if strings.Contains(e, "Drift") {
					t.Errorf("got event %q, want no drift event", e)
				}
			}
		})
	}
}
