package metrics

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// MeterAccess returns an Access that forwards every call to a and records it for the account.
func (m *Metrics) MeterAccess(a provider.Access, accountID string) provider.Access {
	m.createAccountCounters(accountID)
	return &meteredAccess{access: a, metrics: m, account: accountID}
}

// meteredAccess is an Access whose calls are recorded.
type meteredAccess struct {
	access  provider.Access
	metrics *Metrics
	account string
}

func (a *meteredAccess) call(ctx context.Context, operation Operation, method func(context.Context) error) error {
	return a.metrics.call(ctx, a.account, operation, method)
}

// Applications implements [provider.Access].
func (a *meteredAccess) Applications(ctx context.Context) (found []provider.Application, err error) {
	err = a.call(ctx, ListApplications, func(ctx context.Context) error {
		found, err = a.access.Applications(ctx)
		return err
	})
	return found, err
}

// Create implements [provider.Access].
func (a *meteredAccess) Create(ctx context.Context, spec provider.ApplicationSpec) (created provider.Application, err error) {
	err = a.call(ctx, CreateApplication, func(ctx context.Context) error {
		created, err = a.access.Create(ctx, spec)
		return err
	})
	return created, err
}

// Update implements [provider.Access].
func (a *meteredAccess) Update(ctx context.Context, last provider.Application, spec provider.ApplicationSpec) (updated provider.Application, err error) {
	err = a.call(ctx, UpdateApplication, func(ctx context.Context) error {
		updated, err = a.access.Update(ctx, last, spec)
		return err
	})
	return updated, err
}

// Delete implements [provider.Access].
func (a *meteredAccess) Delete(ctx context.Context, last provider.Application) error {
	return a.call(ctx, DeleteApplication, func(ctx context.Context) error { return a.access.Delete(ctx, last) })
}

// RevokeTokens implements [provider.Access].
func (a *meteredAccess) RevokeTokens(ctx context.Context, id provider.ApplicationID) error {
	return a.call(ctx, RevokeTokens, func(ctx context.Context) error { return a.access.RevokeTokens(ctx, id) })
}

// Policies implements [provider.Access].
func (a *meteredAccess) Policies(ctx context.Context) (found []provider.AccessPolicy, err error) {
	err = a.call(ctx, ListPolicies, func(ctx context.Context) error {
		found, err = a.access.Policies(ctx)
		return err
	})
	return found, err
}

// EnsureTag implements [provider.Access].
func (a *meteredAccess) EnsureTag(ctx context.Context, name string) error {
	return a.call(ctx, EnsureTag, func(ctx context.Context) error { return a.access.EnsureTag(ctx, name) })
}
