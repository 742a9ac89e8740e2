package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Result is what came of a call of the provider.
type Result string

// The results of calls.
const (
	ResultSuccess      Result = "success"
	ResultNotFound     Result = "not_found"
	ResultUnauthorized Result = "unauthorized"
	ResultRateLimited  Result = "rate_limited"
	ResultDeferred     Result = "deferred"
	ResultUnavailable  Result = "unavailable"
	ResultInvalid      Result = "invalid"
	ResultConnected    Result = "connected"
	ResultCanceled     Result = "canceled"
	ResultError        Result = "error"
)

// Where calls wait for the budget.
const (
	waitCall  = "call"
	waitQueue = "queue"
)

// Meter returns a provider that does what p does, and records every call.
func (m *Metrics) Meter(p provider.Provider) provider.Provider { return &metered{p: p, m: m} }

// metered is a provider whose calls are recorded.
type metered struct {
	p provider.Provider
	m *Metrics
}

// FindTunnel is documented at [provider.Provider].
func (p *metered) FindTunnel(ctx context.Context, name string) (t provider.Tunnel, err error) {
	err = p.m.call(ctx, FindTunnel, func(ctx context.Context) error {
		t, err = p.p.FindTunnel(ctx, name)
		return err
	})
	return t, err
}

// Tunnels is documented at [provider.Provider].
func (p *metered) Tunnels(ctx context.Context) (all []provider.Tunnel, err error) {
	err = p.m.call(ctx, ListTunnels, func(ctx context.Context) error {
		all, err = p.p.Tunnels(ctx)
		return err
	})
	return all, err
}

// EnsureTunnel is documented at [provider.Provider].
func (p *metered) EnsureTunnel(ctx context.Context, want provider.TunnelSpec) (t provider.Tunnel, err error) {
	err = p.m.call(ctx, EnsureTunnel, func(ctx context.Context) error {
		t, err = p.p.EnsureTunnel(ctx, want)
		return err
	})
	return t, err
}

// Configuration is documented at [provider.Provider].
func (p *metered) Configuration(ctx context.Context, id provider.TunnelID) (c provider.Configuration, v provider.Version, err error) {
	err = p.m.call(ctx, ReadDocument, func(ctx context.Context) error {
		c, v, err = p.p.Configuration(ctx, id)
		return err
	})
	return c, v, err
}

// Configure is documented at [provider.Provider].
func (p *metered) Configure(ctx context.Context, id provider.TunnelID, c provider.Configuration) (v provider.Version, err error) {
	err = p.m.call(ctx, WriteDocument, func(ctx context.Context) error {
		v, err = p.p.Configure(ctx, id, c)
		return err
	})
	return v, err
}

// Token is documented at [provider.Provider].
func (p *metered) Token(ctx context.Context, id provider.TunnelID) (t provider.Token, err error) {
	err = p.m.call(ctx, ReadToken, func(ctx context.Context) error {
		t, err = p.p.Token(ctx, id)
		return err
	})
	return t, err
}

// DeleteTunnel is documented at [provider.Provider].
func (p *metered) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return p.m.call(ctx, DeleteTunnel, func(ctx context.Context) error { return p.p.DeleteTunnel(ctx, id) })
}

// call makes a call and records it.
func (m *Metrics) call(ctx context.Context, operation Operation, method func(context.Context) error) error {
	priority := priorityName(provider.PriorityOf(ctx))
	ctx = provider.WithWaits(ctx, func(wait time.Duration) {
		m.budgetWait.WithLabelValues(priority, waitCall).Observe(wait.Seconds())
	})
	began := time.Now()
	err := method(ctx)
	m.callDuration.WithLabelValues(string(operation)).Observe(time.Since(began).Seconds())
	m.calls.WithLabelValues(string(operation), string(ResultOf(err))).Inc()
	if limited, ok := errors.AsType[*provider.RateLimitedError](err); ok && limited.Budget {
		m.budgetWait.WithLabelValues(priority, waitQueue).Observe(limited.RetryAfter.Seconds())
	}
	return err
}

// priorityName returns the label's value for a priority: they are in the same
// order.
func priorityName(p provider.Priority) string {
	return labelPriority.Values[min(max(int(p), 0), len(labelPriority.Values)-1)].Name
}

// ResultOf tells from the error of a call what came of it; [ResultError] is any
// error that is not one of the provider's own.
func ResultOf(err error) Result {
	_, unavailable := errors.AsType[*provider.UnavailableError](err)
	_, invalid := errors.AsType[*provider.InvalidError](err)
	limit, limited := errors.AsType[*provider.RateLimitedError](err)
	switch {
	case err == nil:
		return ResultSuccess
	case limited && limit.Budget:
		return ResultDeferred
	case limited:
		return ResultRateLimited
	case unavailable:
		return ResultUnavailable
	case invalid:
		return ResultInvalid
	}
	for _, known := range sentinels {
		if errors.Is(err, known.err) {
			return known.result
		}
	}
	return ResultError
}

var sentinels = []struct {
	err    error
	result Result
}{
	{provider.ErrNotFound, ResultNotFound},
	{provider.ErrUnauthorized, ResultUnauthorized},
	{provider.ErrConnected, ResultConnected},
	{context.Canceled, ResultCanceled},
	{context.DeadlineExceeded, ResultCanceled},
}
