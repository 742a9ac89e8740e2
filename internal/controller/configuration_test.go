package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// rateLimited is the error when the API rate limit rejects a call.
func rateLimited(wait time.Duration) error { return &provider.RateLimitedError{RetryAfter: wait} }

// budgetDeferred is the error when the API request budget assigns a later slot to a
// call.
func budgetDeferred(wait time.Duration) error {
	return &provider.RateLimitedError{RetryAfter: wait, Budget: true}
}

// driftInterval is the maximum time until the configuration is read again.
const driftInterval = 10 * time.Minute

// newServedHarness returns a harness whose Gateway is served, with empty lists of calls
// and events.
func newServedHarness(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.reconcileFor(5 * time.Second)
	h.cloud.ResetCalls()
	h.drainEvents()
	return h
}

func TestChangesAreWrittenTogether(t *testing.T) {
	// The controller writes the first change immediately and combines the following
	// changes.
	h := newHarness(t)
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	for _, hostname := range []string{"b.example.com", "c.example.com", "d.example.com"} {
		h.setHostname(hostname)
		h.reconcileOnce()
		if h.requeueAfter <= 0 || h.requeueAfter > time.Second {
			t.Errorf("the next reconcile is in %s, want at most 1s", h.requeueAfter)
		}
	}
	h.wantCalls()
	h.advance(h.requeueAfter)
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	if h.servedHostname() != "d.example.com" {
		t.Errorf("the tunnel serves %s, want d.example.com", h.servedHostname())
	}
}

func TestConfigurationIsRecordedBeforeItIsWritten(t *testing.T) {
	// The controller records a configuration's hash before it writes the configuration.
	h := newServedHarness(t)
	before := h.tunnelObject().Status.Configuration.Hash
	h.setHostname("b.example.com")
	h.cloud.FailAfter(fakeprovider.OpConfigure, context.DeadlineExceeded)
	h.reconcileOnce()
	record := h.tunnelObject().Status.Configuration
	if record.Hash == before || record.Previous != before {
		t.Errorf("the record is %+v, want a new hash and the previous hash %s", record, before)
	}
}

func TestFailedRecordPreventsTheWrite(t *testing.T) {
	// If the controller cannot record a configuration, it does not write it, and the
	// conditions report the error.
	h := newServedHarness(t)
	h.setHostname("b.example.com")
	h.injectError = func(w write) (bool, error) { return w.kind != "Tunnel", errorUnless(w.kind != "Tunnel") }
	if _, err := h.Reconcile(t.Context(), h.key); err == nil {
		t.Error("the reconcile succeeded although the Tunnel's status cannot be written")
	}
	h.wantCalls()
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "refused")
	h.wantMetrics(map[string]float64{"reconcile_errors_total KubernetesUnavailable": 2})
	h.injectError = func(write) (bool, error) { return true, nil }
	h.reconcileFor(5 * time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if h.servedHostname() != "b.example.com" {
		t.Errorf("the tunnel serves %s, want b.example.com", h.servedHostname())
	}
}

func TestRestartReadsTheConfigurationOnce(t *testing.T) {
	// After a restart, the controller reads the configuration once and writes it only if it
	// has changed.
	h := newServedHarness(t)
	h.restart()
	h.reconcileFor(time.Second)
	if call := h.cloud.Calls()[0]; call.Priority != provider.PriorityStart {
		t.Errorf("the first read has priority %d, want %d", call.Priority, provider.PriorityStart)
	}
	h.wantCalls(fakeprovider.OpConfiguration)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	h.restart()
	h.setHostname("b.example.com")
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
	if events := h.drainEvents(); len(events) > 0 {
		t.Errorf("got events %q, want none", events)
	}
}

func TestControllerWaitsForItsBudgetSlot(t *testing.T) {
	// The controller waits for its slot in the API request budget without an event. The
	// next change uses the slot.
	h := newServedHarness(t)
	h.restart()
	h.cloud.Fail(fakeprovider.OpConfiguration, budgetDeferred(20*time.Second))
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration)
	if h.requeueAfter != 20*time.Second {
		t.Errorf("the next reconcile is in %s, want 20s", h.requeueAfter)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "") // as before the restart
	h.advance(5 * time.Second)
	h.reconcileOnce()
	h.wantCalls()
	if h.requeueAfter != 15*time.Second {
		t.Errorf("the next reconcile is in %s, want 15s", h.requeueAfter)
	}
	h.setHostname("b.example.com") // a change has a higher priority than the reads after a start
	h.reconcileOnce()
	if call := h.cloud.Calls()[0]; call.Op != fakeprovider.OpConfiguration || call.Priority != provider.PriorityChange {
		t.Errorf("the first call for the change is %+v, want a read with priority %d", call, provider.PriorityChange)
	}
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)

	h.reconcileFor(time.Minute) // the controller checks again for late writes from the earlier process
	h.cloud.ResetCalls()
	h.cloud.Fail(fakeprovider.OpConfigure, budgetDeferred(20*time.Second))
	h.setHostname("c.example.com")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	h.advance(5 * time.Second)
	h.setHostname("d.example.com")
	h.reconcileOnce()
	h.wantCalls() // the change uses the previous change's slot
	if h.requeueAfter != 15*time.Second {
		t.Errorf("the next change waits %s, want 15s", h.requeueAfter)
	}
	h.reconcileFor(15 * time.Second)
	h.wantCalls(fakeprovider.OpConfigure)
	if events := h.drainEvents(); len(events) > 0 {
		t.Errorf("got events %q, want none", events)
	}
}

func TestDelayedDriftCheckDelaysNoChange(t *testing.T) {
	// A delayed drift check does not delay changes or affect the statuses.
	for name, err := range map[string]error{"by the request budget": budgetDeferred(40 * time.Second), "by the API rate limit": rateLimited(40 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.cloud.Fail(fakeprovider.OpConfiguration, err)
			for len(h.cloud.Calls()) == 0 {
				h.advance(h.requeueAfter + time.Second)
				h.reconcileOnce()
			}
			if call := h.cloud.Calls()[0]; call.Priority != provider.PriorityDrift {
				t.Errorf("the drift check has priority %d, want %d", call.Priority, provider.PriorityDrift)
			}
			h.wantCalls(fakeprovider.OpConfiguration)
			h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
			if h.requeueAfter != 40*time.Second {
				t.Errorf("the next reconcile is in %s, want 40s", h.requeueAfter)
			}
			h.setHostname("b.example.com")
			h.reconcileOnce()
			if h.servedHostname() != "b.example.com" {
				t.Errorf("the tunnel serves %s, want b.example.com", h.servedHostname())
			}
			if events := h.drainEvents(); len(events) > 0 {
				t.Errorf("got events %q, want none", events)
			}
		})
	}
}

func TestAPIRateLimitIsRespected(t *testing.T) {
	// The controller waits as long as the API rate limit requires. It reports the rate
	// limit once.
	h := newServedHarness(t)
	h.cloud.Fail(fakeprovider.OpConfigure, rateLimited(20*time.Second), rateLimited(5*time.Minute))
	h.setHostname("b.example.com")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	if h.requeueAfter != 20*time.Second {
		t.Errorf("the next reconcile is in %s, want 20s", h.requeueAfter)
	}
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "rate limit")
	h.advance(5 * time.Second)
	h.setHostname("c.example.com")
	h.reconcileOnce()
	h.wantCalls()
	h.reconcileFor(16 * time.Second)
	h.wantCalls(fakeprovider.OpConfigure)
	h.reconcileFor(4 * time.Minute)
	h.wantCalls()
	h.reconcileFor(2 * time.Minute)
	h.wantCalls(fakeprovider.OpConfigure) // without reading the configuration again
	if h.servedHostname() != "c.example.com" {
		t.Errorf("the tunnel serves %s, want c.example.com", h.servedHostname())
	}
	warnings := 0
	for _, e := range h.drainEvents() {
		if strings.Contains(e, "Warning RateLimited") {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("the rate limit was reported %d times, want 1", warnings)
	}
}

func TestRejectedConfigurationIsRetriedWhenItChanges(t *testing.T) {
	// The controller retries a rejected configuration only after the backoff or when the
	// configuration changes.
	h := newServedHarness(t)
	h.cloud.Fail(fakeprovider.OpConfigure, &provider.InvalidError{Message: "a rule is not valid"})
	h.setHostname("b.example.com")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	h.wantProgrammed(metav1.ConditionFalse, "Pending", "a rule is not valid")
	h.wantMetrics(map[string]float64{"reconcile_errors_total ConfigurationRejected": 1})
	h.advance(500 * time.Millisecond)
	h.reconcileOnce()
	h.wantCalls()
	h.setHostname("c.example.com")
	h.reconcileOnce()
	if h.servedHostname() != "c.example.com" {
		t.Errorf("the tunnel serves %s after the calls %+v, want c.example.com", h.servedHostname(), h.cloud.Calls())
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func TestFailuresBackOff(t *testing.T) {
	// The backoff grows to one minute. The controller emits one event for all failures with
	// the same reason.
	h := newServedHarness(t)
	failures := make([]error, 9)
	for i := range failures {
		failures[i] = errReset
	}
	h.cloud.Fail(fakeprovider.OpConfiguration, failures...)
	h.restart()
	h.setHostname("b.example.com")
	var waits []time.Duration
	for range failures {
		h.reconcileOnce()
		waits = append(waits, h.requeueAfter)
		h.advance(h.requeueAfter)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if waits[i] != want*time.Second {
			t.Errorf("backoff %d is %s, want %ds", i, waits[i], want)
		}
	}
	if events := h.drainEvents(); len(events) != 1 || !strings.Contains(events[0], "CloudflareUnavailable") {
		t.Errorf("got events %q, want one CloudflareUnavailable event", events)
	}
	h.reconcileOnce()
	h.wantEvent("Recovered")
	h.wantMetrics(map[string]float64{"reconcile_errors_total CloudflareUnavailable": 9})
}

func TestInterimStatusesAreWrittenDuringASlowReconcile(t *testing.T) {
	// A slow reconcile writes interim statuses before it ends.
	h := newHarness(t)
	release, written := make(chan struct{}), make(chan struct{})
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Gateway" {
			written <- struct{}{}
		}
		return true, nil
	}
	h.accounts.connect = func(string, string) (provider.Provider, error) { return slowProvider{h.cloud, release}, nil }
	done := make(chan error)
	go func() {
		_, err := h.Reconcile(context.Background(), h.key)
		done <- err
	}()
	<-written // while CreateTunnel blocks
	close(release)
	<-written
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// slowProvider blocks CreateTunnel until it is released.
type slowProvider struct {
	provider.Provider
	release <-chan struct{}
}

// CreateTunnel implements provider.Provider.
func (p slowProvider) CreateTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	<-p.release
	return p.Provider.CreateTunnel(ctx, name)
}
