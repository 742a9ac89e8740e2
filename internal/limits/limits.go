// Package limits divides a limited resource, such as a tunnel's rules, among a Gateway's
// tenants. A tenant that uses less than its share never loses anything because of another
// tenant.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
package limits

import (
	"math"
	"strings"
)

// Tenant is a namespace, or all namespaces with the same tenant label.
type Tenant struct {
	// Name is the namespace name, or the value of the tenant label.
	Name string
	// Labeled reports whether Name is a label value. The namespace "shop" without the
	// label and namespaces labeled "shop" are two tenants.
	Labeled bool
}

// Compare orders tenants by name, and a label before a namespace with the same name.
func (t Tenant) Compare(other Tenant) int {
	if order := strings.Compare(t.Name, other.Name); order != 0 || t.Labeled == other.Labeled {
		return order
	}
	if t.Labeled {
		return -1
	}
	return 1
}

// Limit limits one resource in a Gateway. A route or a listener demands an amount.
type Limit struct {
	// Total is the maximum amount for all tenants together.
	Total int
	// PerTenant is the maximum amount for one tenant except First, or 0 for no limit
	// except Total.
	PerTenant int
	// First is the tenant that is served before all others: the Gateway owner.
	First Tenant
}

// Maximum returns the maximum amount for one tenant.
func (l Limit) Maximum(t Tenant) int {
	switch {
	case t == l.First:
		return l.Total
	case l.PerTenant == 0:
		return math.MaxInt
	default:
		return l.PerTenant
	}
}

// Demand is the amount that one route demands. A route is served whole or not at all.
type Demand struct {
	Tenant Tenant
	Amount int
}

// Verdict states whether a demand is admitted.
type Verdict int8

const (
	// Admitted means that the demand is served.
	Admitted Verdict = iota
	// AboveTenantLimit means that the tenant has no room left below Limit.PerTenant.
	AboveTenantLimit
	// AboveTotal means that no room is left below Limit.Total, and that the tenant is
	// among the largest consumers.
	AboveTotal
)

// Allocation is the result of [Limit.Allocate].
type Allocation struct {
	// Verdicts has the verdict for each demand, in the same order.
	Verdicts []Verdict
	// Used is the amount that each tenant uses: its fixed amount and its admitted
	// demands.
	Used map[Tenant]int
	// Excess lists the tenants whose fixed amount alone exceeds their maximum, and by how
	// much. While it has entries, the verdicts are provisional.
	Excess map[Tenant]int
}

// Allocate decides which demands are admitted. The demands are in order of precedence,
// the oldest first. fixed is the amount that each tenant uses besides its demands.
//
// A tenant above PerTenant loses its youngest demands until the rest fits. While the
// total exceeds Total, the tenant that uses the most (the first by name among equals)
// loses its youngest demand. The tenant First loses only what exceeds Total alone. Lost
// demands that fit are then admitted again, always from the tenant that then uses the
// least.
func (l Limit) Allocate(fixed map[Tenant]int, demands []Demand) Allocation {
	b := l.newBook(fixed, demands)
	for _, a := range b.accounts {
		b.enforceTenantLimit(a)
	}
	b.enforceTotal()
	b.readmit()
	return b.allocation()
}
