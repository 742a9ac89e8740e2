package gateway

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Usage is how much of the limits of its class a Gateway uses.
type Usage struct {
	// Limits are the limits of the class.
	Limits settings.Limits
	// Rules is the number of ingress rules, before the rules that no request can reach
	// are left out.
	Rules int
	// Instructions is the size of the regular expressions in all rules.
	Instructions int
	// Tenants are the tenants with listeners, routes or rules, in alphabetical order.
	Tenants []TenantUsage
}

// TenantUsage is how much of the limits one tenant of a Gateway uses.
type TenantUsage struct {
	limits.Tenant
	// Rules is the number of ingress rules.
	Rules int
	// Instructions is the size of the regular expressions in all rules.
	Instructions int
	// Listeners is the number of entries of ListenerSets.
	Listeners int
	// RefusedRoutes and RefusedListeners are the numbers of routes and entries of
	// ListenerSets that are not accepted because they exceed a limit.
	RefusedRoutes, RefusedListeners int
}

// MaxInstructions and MaxInstructionsPerTenant are the limits on the size of all regular
// expressions of one Gateway and of one of its tenants.
const (
	MaxInstructions          = maxExpressionsPerTable
	MaxInstructionsPerTenant = maxExpressionsPerTenant
)

// usageOf returns the usage of the tenant to which the namespace belongs.
func (r *limiter) usageOf(namespace string) *TenantUsage {
	return r.usageOfTenant(r.tenants.of(namespace))
}

func (r *limiter) usageOfTenant(tenant limits.Tenant) *TenantUsage {
	usage := r.usage[tenant]
	if usage == nil {
		usage = &TenantUsage{Tenant: tenant}
		r.usage[tenant] = usage
	}
	return usage
}

// total returns the usage of all tenants.
func (r *limiter) total() *Usage {
	u := &Usage{Limits: r.Limits, Tenants: make([]TenantUsage, 0, len(r.usage))}
	for _, tenant := range slices.SortedFunc(maps.Keys(r.usage), compareTenants) {
		usage := *r.usage[tenant]
		u.Rules += usage.Rules
		u.Instructions += usage.Instructions
		u.Tenants = append(u.Tenants, usage)
	}
	return u
}

func compareTenants(a, b limits.Tenant) int {
	labeled := func(t limits.Tenant) int {
		if t.Labeled {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(labeled(a), labeled(b)))
}
