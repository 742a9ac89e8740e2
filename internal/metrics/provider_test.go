package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
)

func TestMeteredProviderKeepsTheContract(t *testing.T) {
	// A metered provider forwards all calls and results unchanged.
	providertest.Run(t, func(*testing.T) providertest.Fixture {
		p := fake.New()
		return providertest.Fixture{
			Provider:  metrics.New(prometheus.NewRegistry()).Meter(p, fake.AccountID),
			AccountID: fake.AccountID, Cloud: p,
		}
	})
}

func TestEveryCallIsCountedByOperationAndResult(t *testing.T) {
	// Every call is counted with its operation and result.
	methods := []struct {
		op   fake.Op
		name string
		call func(context.Context, provider.Provider) error
	}{
		{fake.OpFindTunnel, "find_tunnel", func(ctx context.Context, p provider.Provider) error {
			_, err := p.FindTunnel(ctx, "west")
			return err
		}},
		{fake.OpTunnels, "list_tunnels", func(ctx context.Context, p provider.Provider) error {
			_, err := p.Tunnels(ctx)
			return err
		}},
		{fake.OpTunnel, "read_tunnel", func(ctx context.Context, p provider.Provider) error {
			_, err := p.Tunnel(ctx, "id")
			return err
		}},
		{fake.OpCreateTunnel, "create_tunnel", func(ctx context.Context, p provider.Provider) error {
			_, err := p.CreateTunnel(ctx, "west")
			return err
		}},
		{fake.OpConfiguration, "read_configuration", func(ctx context.Context, p provider.Provider) error {
			_, _, err := p.Configuration(ctx, "id")
			return err
		}},
		{fake.OpConfigure, "write_configuration", func(ctx context.Context, p provider.Provider) error {
			_, err := p.Configure(ctx, "id", provider.Configuration{})
			return err
		}},
		{fake.OpToken, "read_token", func(ctx context.Context, p provider.Provider) error {
			_, err := p.Token(ctx, "id")
			return err
		}},
		{fake.OpRotateToken, "rotate_token", func(ctx context.Context, p provider.Provider) error { return p.RotateToken(ctx, "id") }},
		{fake.OpConnections, "list_connections", func(ctx context.Context, p provider.Provider) error {
			_, err := p.Connections(ctx, "id")
			return err
		}},
		{fake.OpDisconnect, "disconnect", func(ctx context.Context, p provider.Provider) error { return p.Disconnect(ctx, "id", "connector") }},
		{fake.OpDeleteTunnel, "delete_tunnel", func(ctx context.Context, p provider.Provider) error { return p.DeleteTunnel(ctx, "id") }},
	}
	for _, method := range methods {
		for result, err := range map[string]error{
			"not_found":       fmt.Errorf("read: %w", provider.ErrNotFound),
			"unauthorized":    fmt.Errorf("read: %w", provider.ErrUnauthorized),
			"name_exists":     fmt.Errorf("create: %w", provider.ErrNameExists),
			"connected":       provider.ErrConnected,
			"routes":          provider.ErrRoutes,
			"locally_managed": fmt.Errorf("write: %w", provider.ErrLocallyManaged),
			"invalid":         fmt.Errorf("write: %w", &provider.InvalidError{Rule: -1}),
			"rate_limited":    &provider.RateLimitedError{RetryAfter: time.Second},
			"deferred":        &provider.RateLimitedError{RetryAfter: time.Second, Budget: true},
			"unavailable":     &provider.UnavailableError{Err: errors.New("reset")},
			"canceled":        fmt.Errorf("write: %w", context.Canceled),
			"error":           errors.New("something else"),
		} {
			t.Run(method.name+" "+result, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				cloud := fake.New()
				cloud.Fail(method.op, err)
				if got := method.call(t.Context(), metrics.New(registry).Meter(cloud, "west")); !errors.Is(got, err) {
					t.Errorf("got error %v, want %v", got, err)
				}
				values := samples(t, registry)
				if got := values["tunnel_gateway_provider_calls_total{account=west,operation="+method.name+",result="+result+"}"]; got != 1 {
					t.Errorf("%v calls were counted, want 1; all series: %v", got, values)
				}
				// A call that was not executed has no duration.
				want := 1.0
				if result == "rate_limited" || result == "deferred" {
					want = 0
				}
				if got := values["tunnel_gateway_provider_call_duration_seconds{account=west,operation="+method.name+"} count"]; got != want {
					t.Errorf("%v durations were observed, want %v; all series: %v", got, want, values)
				}
			})
		}
	}
}

// waitingProvider is a provider whose calls wait for the request budget.
type waitingProvider struct {
	provider.Provider
	waits []time.Duration
	err   error
}

func (w *waitingProvider) Tunnels(ctx context.Context) ([]provider.Tunnel, error) {
	for _, wait := range w.waits {
		provider.ReportWait(ctx, wait)
	}
	return nil, w.err
}

func TestBudgetWaitsAreObserved(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	ctx := t.Context()
	_, _ = m.Meter(&waitingProvider{waits: []time.Duration{time.Second, 2 * time.Second}}, "west").Tunnels(ctx)
	_, _ = m.Meter(&waitingProvider{err: &provider.RateLimitedError{RetryAfter: time.Minute, Budget: true}}, "west").Tunnels(provider.WithPriority(ctx, provider.PriorityDrift))
	// An API rate limit is not a wait for the budget.
	_, _ = m.Meter(&waitingProvider{err: &provider.RateLimitedError{RetryAfter: time.Hour}}, "west").Tunnels(provider.WithPriority(ctx, provider.PriorityStart))
	got := samples(t, registry)
	for name := range got {
		if !strings.HasPrefix(name, "tunnel_gateway_rate_budget") {
			delete(got, name)
		}
	}
	want := map[string]float64{
		"tunnel_gateway_rate_budget_wait_seconds{account=west,priority=change,wait=call} count": 2,
		"tunnel_gateway_rate_budget_wait_seconds{account=west,priority=change,wait=call} sum":   3,
		"tunnel_gateway_rate_budget_wait_seconds{account=west,priority=drift,wait=queue} count": 1,
		"tunnel_gateway_rate_budget_wait_seconds{account=west,priority=drift,wait=queue} sum":   60,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}
}

func TestEveryPriorityHasALabelValue(t *testing.T) {
	// Every priority has its own label value.
	for priority, name := range map[provider.Priority]string{
		provider.PriorityChange: "change", provider.PriorityDeletion: "deletion", provider.PriorityStart: "start", provider.PriorityDrift: "drift", provider.PriorityAccess: "access", provider.PriorityDNS: "dns",
	} {
		registry := prometheus.NewRegistry()
		err := &provider.RateLimitedError{RetryAfter: time.Minute, Budget: true}
		_, _ = metrics.New(registry).Meter(&waitingProvider{err: err}, "west").Tunnels(provider.WithPriority(t.Context(), priority))
		if got := samples(t, registry)["tunnel_gateway_rate_budget_wait_seconds{account=west,priority="+name+",wait=queue} count"]; got != 1 {
			t.Errorf("priority %s was not observed; all series: %v", name, samples(t, registry))
		}
	}
}
