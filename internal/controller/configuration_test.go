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

// rateLimited is the error after the API has asked to wait.
func rateLimited(wait time.Duration) error { return &provider.RateLimitedError{RetryAfter: wait} }

// budgetDeferred is the error after the request budget has promised a later slot.
func budgetDeferred(wait time.Duration) error {
	return &provider.RateLimitedError{RetryAfter: wait, Budget: true}
}

// driftInterval is the longest time until the configuration is read again.
const driftInterval = 10 * time.Minute

// served is a harness whose Gateway is served; calls and events are reset.
func newServedHarness(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.reconcileFor(5 * time.Second)
	h.cloud.ResetCalls()
	h.drainEvents()
	return h
}

// The first change is written at once; changes in quick succession are written
// together.
func TestChangesAreWrittenTogether(t *testing.T) {
	h := newHarness(t)
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	for _, hostname := range []string{"b.example.com", "c.example.com", "d.example.com"} {
		h.setHostname(hostname)
		h.reconcileOnce()
		if h.requeueAfter <= 0 || h.requeueAfter > time.Second {
			t.Errorf("the controller comes back in %s", h.requeueAfter)
		}
	}
	h.wantCalls()
	h.advance(h.requeueAfter)
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	if h.servedHostname() != "d.example.com" {
		t.Errorf("the tunnel serves %s", h.servedHostname())
	}
}

// What is about to be written is recorded before.
func TestConfigurationIsRecordedBeforeItIsWritten(t *testing.T) {
	h := newServedHarness(t)
	before := h.tunnelObject().Status.Configuration.Hash
	h.setHostname("b.example.com")
	h.cloud.FailAfter(fakeprovider.OpConfigure, context.DeadlineExceeded)
	h.reconcileOnce()
	record := h.tunnelObject().Status.Configuration
	if record.Hash == before || record.Previous != before {
		t.Errorf("the record is %+v, and the hash before %s", record, before)
	}
}

// A record that cannot be written prevents the write at Cloudflare, and the
// conditions say so.
func TestFailedRecordPreventsTheWrite(t *testing.T) {
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
		t.Errorf("the tunnel serves %s", h.servedHostname())
	}
}

// A restart costs one read and no write; a change at the same time is written.
func TestRestartReadsTheConfigurationOnce(t *testing.T) {
	h := newServedHarness(t)
	h.restart()
	h.reconcileFor(time.Second)
	if call := h.cloud.Calls()[0]; call.Priority != provider.PriorityStart {
		t.Errorf("the read after a start has priority %d", call.Priority)
	}
	h.wantCalls(fakeprovider.OpConfiguration)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	h.restart()
	h.setHostname("b.example.com")
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
	if events := h.drainEvents(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

// A slot that the request budget promises is waited for, without an event, and the
// next change uses it.
func TestControllerWaitsForItsBudgetSlot(t *testing.T) {
	h := newServedHarness(t)
	h.restart()
	h.cloud.Fail(fakeprovider.OpConfiguration, budgetDeferred(20*time.Second))
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration)
	if h.requeueAfter != 20*time.Second {
		t.Errorf("the controller comes back in %s", h.requeueAfter)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "") // as before the restart
	h.advance(5 * time.Second)
	h.reconcileOnce()
	h.wantCalls()
	if h.requeueAfter != 15*time.Second {
		t.Errorf("before the slot the controller comes back in %s", h.requeueAfter)
	}
	h.setHostname("b.example.com") // a change comes before the reads after a start
	h.reconcileOnce()
	if call := h.cloud.Calls()[0]; call.Op != fakeprovider.OpConfiguration || call.Priority != provider.PriorityChange {
		t.Errorf("the first call for the change is %+v", call)
	}
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)

	h.reconcileFor(time.Minute) // it looks for the writes of the earlier process once more
	h.cloud.ResetCalls()
	h.cloud.Fail(fakeprovider.OpConfigure, budgetDeferred(20*time.Second))
	h.setHostname("c.example.com")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	h.advance(5 * time.Second)
	h.setHostname("d.example.com")
	h.reconcileOnce()
	h.wantCalls() // it uses the slot of the change before
	if h.requeueAfter != 15*time.Second {
		t.Errorf("the next change waits %s", h.requeueAfter)
	}
	h.reconcileFor(15 * time.Second)
	h.wantCalls(fakeprovider.OpConfigure)
	if events := h.drainEvents(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

// A read for drift that has to wait delays no change, and the statuses stay.
func TestDelayedDriftCheckDelaysNoChange(t *testing.T) {
	for name, err := range map[string]error{"for the budget": budgetDeferred(40 * time.Second), "for the API": rateLimited(40 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			h := newServedHarness(t)
			h.cloud.Fail(fakeprovider.OpConfiguration, err)
			for len(h.cloud.Calls()) == 0 {
				h.advance(h.requeueAfter + time.Second)
				h.reconcileOnce()
			}
			if call := h.cloud.Calls()[0]; call.Priority != provider.PriorityDrift {
				t.Errorf("the read for drift has priority %d", call.Priority)
			}
			h.wantCalls(fakeprovider.OpConfiguration)
			h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
			if h.requeueAfter != 40*time.Second {
				t.Errorf("the controller comes back in %s", h.requeueAfter)
			}
			h.setHostname("b.example.com")
			h.reconcileOnce()
			if h.servedHostname() != "b.example.com" {
				t.Errorf("the tunnel serves %s", h.servedHostname())
			}
			if events := h.drainEvents(); len(events) > 0 {
				t.Errorf("events %q", events)
			}
		})
	}
}

// A limit of the API is waited for as long as it asks, is reported once, and is no
// failure.
func TestAPIRateLimitIsRespected(t *testing.T) {
	h := newServedHarness(t)
	h.cloud.Fail(fakeprovider.OpConfigure, rateLimited(20*time.Second), rateLimited(5*time.Minute))
	h.setHostname("b.example.com")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfigure)
	if h.requeueAfter != 20*time.Second {
		t.Errorf("the controller comes back in %s", h.requeueAfter)
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
	h.wantCalls(fakeprovider.OpConfigure) // nothing has to be read again
	if h.servedHostname() != "c.example.com" {
		t.Errorf("the tunnel serves %s", h.servedHostname())
	}
	warnings := 0
	for _, e := range h.drainEvents() {
		if strings.Contains(e, "Warning RateLimited") {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("the limit was reported %d times", warnings)
	}
}

// A configuration that Cloudflare rejects is tried again only when it changes or
// after its backoff.
func TestRejectedConfigurationIsRetriedWhenItChanges(t *testing.T) {
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
		t.Errorf("the tunnel serves %s, the calls are %+v", h.servedHostname(), h.cloud.Calls())
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// Failures back off, up to a minute, and the event repeats only with the reason.
func TestFailuresBackOff(t *testing.T) {
	h := newServedHarness(t)
	fails := make([]error, 9)
	for i := range fails {
		fails[i] = errReset
	}
	h.cloud.Fail(fakeprovider.OpConfiguration, fails...)
	h.restart()
	h.setHostname("b.example.com")
	var waits []time.Duration
	for range fails {
		h.reconcileOnce()
		waits = append(waits, h.requeueAfter)
		h.advance(h.requeueAfter)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if waits[i] != want*time.Second {
			t.Errorf("wait %d is %s, want %ds", i, waits[i], want)
		}
	}
	if events := h.drainEvents(); len(events) != 1 || !strings.Contains(events[0], "CloudflareUnavailable") {
		t.Errorf("events %q", events)
	}
	h.reconcileOnce()
	h.wantEvent("Recovered")
	h.wantMetrics(map[string]float64{"reconcile_errors_total CloudflareUnavailable": 9})
}

// A loop that takes long writes the statuses before it ends, without its outcome.
func TestInterimStatusesAreWrittenDuringASlowReconcile(t *testing.T) {
	h := newHarness(t)
	release, written := make(chan struct{}), make(chan struct{})
	h.injectError = func(w write) (bool, error) {
		if w.kind == "Gateway" {
			written <- struct{}{}
		}
		return true, nil
	}
	h.lifecycle.accounts.connect = func(string, string) (provider.Provider, error) { return slowProvider{h.cloud, release}, nil }
	done := make(chan error)
	go func() {
		_, err := h.Reconcile(context.Background(), h.key)
		done <- err
	}()
	<-written // while the tunnel cannot be created
	close(release)
	<-written
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// slowProvider creates a tunnel when it is released.
type slowProvider struct {
	provider.Provider
	release <-chan struct{}
}

// CreateTunnel implements provider.Provider.
func (p slowProvider) CreateTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	<-p.release
	return p.Provider.CreateTunnel(ctx, name)
}
