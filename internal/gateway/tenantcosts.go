package gateway

import (
	"iter"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// tenantCosts counts rules by tenant. The zero value is empty. Most hostnames have one tenant, so
// the first tenant needs no map.
type tenantCosts struct {
	inline *tenantCost // of the first tenant, or nil
	others map[limits.Tenant]int
}

type tenantCost struct {
	tenant limits.Tenant
	rules  int
}

// add adds to a tenant's count, and adds the tenant.
func (c *tenantCosts) add(tenant limits.Tenant, rules int) {
	switch {
	case c.inline == nil:
		c.inline = &tenantCost{tenant, rules}
	case c.inline.tenant == tenant:
		c.inline.rules += rules
	default:
		if c.others == nil {
			c.others = map[limits.Tenant]int{}
		}
		c.others[tenant] += rules
	}
}

// of returns a tenant's count, or 0.
func (c *tenantCosts) of(tenant limits.Tenant) int {
	if c.inline != nil && c.inline.tenant == tenant {
		return c.inline.rules
	}
	return c.others[tenant]
}

// has reports whether the tenant was added.
func (c *tenantCosts) has(tenant limits.Tenant) bool {
	_, isOther := c.others[tenant]
	return isOther || c.inline != nil && c.inline.tenant == tenant
}

// tenants iterates over all tenants.
func (c *tenantCosts) tenants() iter.Seq[limits.Tenant] {
	return func(yield func(limits.Tenant) bool) {
		if c.inline == nil || !yield(c.inline.tenant) {
			return
		}
		for tenant := range c.others {
			if !yield(tenant) {
				return
			}
		}
	}
}
