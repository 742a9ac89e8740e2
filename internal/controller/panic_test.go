package controller

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// panickingProvider panics after it has written a configuration.
type panickingProvider struct{ provider.Provider }

// Configure implements provider.Provider.
func (p panickingProvider) Configure(ctx context.Context, id provider.TunnelID, c provider.Configuration) (provider.Version, error) {
	if _, err := p.Provider.Configure(ctx, id, c); err != nil {
		return 0, err
	}
	panic("a bug")
}

// reconcileWithPanic reconciles the Gateway and returns what the reconcile panicked
// with, or nil. controller-runtime recovers from a panic only in the reconcile's own
// goroutine.
func (h *harness) reconcileWithPanic() (recovered any) {
	h.t.Helper()
	defer func() { recovered = recover() }()
	_, err := h.Reconcile(h.t.Context(), h.key)
	h.t.Errorf("the reconcile returned %v, want a panic", err)
	return nil
}

func TestPanicDuringAPushIsRecovered(t *testing.T) {
	h := newHarness(t)
	h.accounts.connect = func(string, string) (provider.Provider, error) { return panickingProvider{h.cloud}, nil }
	h.recordChange()
	recorded := float64(h.wallTime.Unix())
	if got := h.reconcileWithPanic(); got != "a bug" {
		t.Errorf("recovered %v, want the panic of the provider", got)
	}
	h.wantMetrics(map[string]float64{"reconcile_errors_total Failed": 1, "oldest_change_timestamp_seconds": recorded})

	// The next reconcile does not rely on what the process knew before the panic.
	h.accounts.bySource = map[credentials.Source]*openAccount{}
	h.accounts.connect = func(string, string) (provider.Provider, error) { return h.cloud, nil }
	h.setHostname("b.example.com")
	h.reconcileOnce()
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
	if got := h.servedHostname(); got != "b.example.com" {
		t.Errorf("the tunnel serves %q, want b.example.com", got)
	}
}
