package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Result says how a provider call ended.
type Result string

// Provider call results.
const (
	ResultSuccess        Result = "success"
	ResultNotFound       Result = "not_found"
	ResultUnauthorized   Result = "unauthorized"
	ResultRateLimited    Result = "rate_limited"
	ResultDeferred       Result = "deferred"
	ResultUnavailable    Result = "unavailable"
	ResultInvalid        Result = "invalid"
	ResultNameExists     Result = "name_exists"
	ResultConnected      Result = "connected"
	ResultRoutes         Result = "routes"
	ResultLocallyManaged Result = "locally_managed"
	ResultForbidden      Result = "forbidden"
	ResultRecordExists   Result = "record_exists"
	ResultRecordMissing  Result = "record_missing"
	ResultQuotaExceeded  Result = "quota_exceeded"
	ResultInvalidRecord  Result = "invalid_record"

	ResultApplicationExists Result = "application_exists"
	ResultPolicyMissing     Result = "policy_missing"
	ResultNoZone            Result = "no_zone"
	ResultTagMissing        Result = "tag_missing"
	ResultChanged           Result = "application_changed"
	ResultCanceled          Result = "canceled"
	ResultError             Result = "error"
)

// Values for the label "wait": where a call waits for the API request budget.
const (
	waitCall  = "call"
	waitQueue = "queue"
)

// Meter returns a provider that forwards every call to p and records it for the account.
func (m *Metrics) Meter(p provider.Provider, accountID string) provider.Provider {
	m.createAccountCounters(accountID)
	return &meteredProvider{provider: p, metrics: m, account: accountID}
}

// createAccountCounters creates the account's counters with the value zero.
func (m *Metrics) createAccountCounters(accountID string) {
	for _, c := range m.vectors {
		if c.hasFirstLabel(labelAccount) {
			c.createAll(accountID)
		}
	}
}

// meteredProvider is a provider whose calls are recorded.
type meteredProvider struct {
	provider provider.Provider
	metrics  *Metrics
	account  string
}

// FindTunnel implements [provider.Provider].
func (p *meteredProvider) FindTunnel(ctx context.Context, name string) (t provider.Tunnel, err error) {
	err = p.call(ctx, FindTunnel, func(ctx context.Context) error {
		t, err = p.provider.FindTunnel(ctx, name)
		return err
	})
	return t, err
}

// Tunnel implements [provider.Provider].
func (p *meteredProvider) Tunnel(ctx context.Context, id provider.TunnelID) (t provider.Tunnel, err error) {
	err = p.call(ctx, ReadTunnel, func(ctx context.Context) error {
		t, err = p.provider.Tunnel(ctx, id)
		return err
	})
	return t, err
}

// Tunnels implements [provider.Provider].
func (p *meteredProvider) Tunnels(ctx context.Context) (all []provider.Tunnel, err error) {
	err = p.call(ctx, ListTunnels, func(ctx context.Context) error {
		all, err = p.provider.Tunnels(ctx)
		return err
	})
	return all, err
}

// CreateTunnel implements [provider.Provider].
func (p *meteredProvider) CreateTunnel(ctx context.Context, name string) (t provider.Tunnel, err error) {
	err = p.call(ctx, CreateTunnel, func(ctx context.Context) error {
		t, err = p.provider.CreateTunnel(ctx, name)
		return err
	})
	return t, err
}

// Configuration implements [provider.Provider].
func (p *meteredProvider) Configuration(ctx context.Context, id provider.TunnelID) (c provider.Configuration, v provider.Version, err error) {
	err = p.call(ctx, ReadConfiguration, func(ctx context.Context) error {
		c, v, err = p.provider.Configuration(ctx, id)
		return err
	})
	return c, v, err
}

// Configure implements [provider.Provider].
func (p *meteredProvider) Configure(ctx context.Context, id provider.TunnelID, c provider.Configuration) (v provider.Version, err error) {
	err = p.call(ctx, WriteConfiguration, func(ctx context.Context) error {
		v, err = p.provider.Configure(ctx, id, c)
		return err
	})
	return v, err
}

// Token implements [provider.Provider].
func (p *meteredProvider) Token(ctx context.Context, id provider.TunnelID) (t provider.Token, err error) {
	err = p.call(ctx, ReadToken, func(ctx context.Context) error {
		t, err = p.provider.Token(ctx, id)
		return err
	})
	return t, err
}

// RotateToken implements [provider.Provider].
func (p *meteredProvider) RotateToken(ctx context.Context, id provider.TunnelID) error {
	return p.call(ctx, RotateToken, func(ctx context.Context) error { return p.provider.RotateToken(ctx, id) })
}

// Connections implements [provider.Provider].
func (p *meteredProvider) Connections(ctx context.Context, id provider.TunnelID) (all []provider.Connector, err error) {
	err = p.call(ctx, ListConnections, func(ctx context.Context) error {
		all, err = p.provider.Connections(ctx, id)
		return err
	})
	return all, err
}

// Disconnect implements [provider.Provider].
func (p *meteredProvider) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	return p.call(ctx, Disconnect, func(ctx context.Context) error { return p.provider.Disconnect(ctx, id, connector) })
}

// DeleteTunnel implements [provider.Provider].
func (p *meteredProvider) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return p.call(ctx, DeleteTunnel, func(ctx context.Context) error { return p.provider.DeleteTunnel(ctx, id) })
}

// call executes and records a call.
func (p *meteredProvider) call(ctx context.Context, operation Operation, method func(context.Context) error) error {
	return p.metrics.call(ctx, p.account, operation, method)
}

// call executes and records a call for the account. It observes no duration for a
// rate-limited or deferred call, because such a call is not executed.
func (m *Metrics) call(ctx context.Context, account string, operation Operation, method func(context.Context) error) error {
	priority := priorityName(provider.PriorityOf(ctx))
	ctx = provider.WithWaitReporter(ctx, func(wait time.Duration) {
		m.budgetWait.WithLabelValues(account, priority, waitCall).Observe(wait.Seconds())
	})
	start := time.Now()
	err := method(ctx)
	duration := time.Since(start)
	m.calls.WithLabelValues(account, string(operation), string(ResultOf(err))).Inc()
	limit, limited := errors.AsType[*provider.RateLimitedError](err)
	if !limited {
		m.callDuration.WithLabelValues(account, string(operation)).Observe(duration.Seconds())
	} else if limit.Budget {
		m.budgetWait.WithLabelValues(account, priority, waitQueue).Observe(limit.RetryAfter.Seconds())
	}
	return err
}

// priorityName returns the label value for a priority. Values and priorities have the
// same order.
func priorityName(p provider.Priority) string {
	return labelPriority.Values[min(max(int(p), 0), len(labelPriority.Values)-1)].Name
}

// ResultOf derives a call's result from its error. It returns [ResultError] for an error
// that package provider does not define.
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
	for _, entry := range errorResults {
		if errors.Is(err, entry.err) {
			return entry.result
		}
	}
	return ResultError
}

var errorResults = []struct {
	err    error
	result Result
}{
	{provider.ErrNotFound, ResultNotFound},
	{provider.ErrUnauthorized, ResultUnauthorized},
	{provider.ErrNameExists, ResultNameExists},
	{provider.ErrConnected, ResultConnected},
	{provider.ErrApplicationExists, ResultApplicationExists},
	{provider.ErrPolicyNotFound, ResultPolicyMissing},
	{provider.ErrNoZone, ResultNoZone},
	{provider.ErrTagNotFound, ResultTagMissing},
	{provider.ErrApplicationChanged, ResultChanged},
	{provider.ErrRoutes, ResultRoutes},
	{provider.ErrLocallyManaged, ResultLocallyManaged},
	{provider.ErrForbidden, ResultForbidden},
	{provider.ErrRecordExists, ResultRecordExists},
	{provider.ErrRecordNotFound, ResultRecordMissing},
	{provider.ErrQuotaExceeded, ResultQuotaExceeded},
	{provider.ErrInvalidRecord, ResultInvalidRecord},
	{context.Canceled, ResultCanceled},
	{context.DeadlineExceeded, ResultCanceled},
}
