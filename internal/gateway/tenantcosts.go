package gateway

import (
	"iter"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// tenantCosts has a rule count for each of some tenants. The zero value is empty. Most
// hostnames have one tenant, so the first one needs no map.
type tenantCosts struct {
	first  *tenantCost // nil if it is empty
	others map[limits.Tenant]int
}

type tenantCost struct {
	tenant limits.Tenant
	rules  int
}

// add adds to a tenant's count, and adds the tenant.
func (c *tenantCosts) add(tenant limits.Tenant, rules int) {
	switch {
	case c.first == nil:
		c.first = &tenantCost{tenant, rules}
	case c.first.tenant == tenant:
		c.first.rules += rules
	default:
		if c.others == nil {
			c.others = map[limits.Tenant]int{}
		}
		c.others[tenant] += rules
	}
}

// of returns a tenant's count, or 0.
func (c *tenantCosts) of(tenant limits.Tenant) int {
	if c.first != nil && c.first.tenant == tenant {
		return c.first.rules
	}
	return c.others[tenant]
}

// have reports whether the tenant was added.
func (c *tenantCosts) have(tenant limits.Tenant) bool {
	_, isOther := c.others[tenant]
	return isOther || c.first != nil && c.first.tenant == tenant
}

// tenants iterates over all tenants.
func (c *tenantCosts) tenants() iter.Seq[limits.Tenant] {
	return func(yield func(limits.Tenant) bool) {
		if c.first == nil || !yield(c.first.tenant) {
			return
		}
		for tenant := range c.others {
			if !yield(tenant) {
				return
			}
		}
	}
}
