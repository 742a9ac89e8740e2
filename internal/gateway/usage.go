package gateway

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Usage describes how much a Gateway uses of its GatewayClass limits.
type Usage struct {
	// Limits are the GatewayClass limits.
	Limits settings.Limits
	// First is the tenant that the Gateway's namespace belongs to, which is served before
	// the others.
	First limits.Tenant
	// Rules counts the ingress rules, before the rules that no request can reach are left
	// out.
	Rules int
	// Instructions is the size of all regular expressions in all rules.
	Instructions int
	// Repeated counts the rules that are repeated for hostnames that only other tenants
	// name. Rules does not include them. RepeatedLimit is their limit, or 0 for a data
	// plane that repeats no rules.
	Repeated, RepeatedLimit int
	// Confined counts the routes whose rules are not repeated because of this limit.
	Confined int
	// Hostname is the hostname with the most rules, and PerHostname counts them. It is 0
	// for a data plane that repeats no rules.
	Hostname    string
	PerHostname int
	// Tenants are the tenants with listeners, routes or rules, in alphabetical order.
	Tenants []TenantUsage
}

// TenantUsage describes how much one tenant on a Gateway uses of the limits.
type TenantUsage struct {
	limits.Tenant
	// Rules counts the ingress rules.
	Rules int
	// Instructions is the size of the regular expressions in all rules.
	Instructions int
	// Listeners counts the ListenerSet entries.
	Listeners int
	// RefusedRoutes and RefusedListeners count the routes and ListenerSet entries that
	// are not accepted because they exceed a limit.
	RefusedRoutes, RefusedListeners int
}

// LimitUsage says how much of one limit is used.
type LimitUsage struct {
	Name limits.Name
	// Used is the amount in use. For a limit on each tenant, it is what the Tenant that
	// uses the most uses.
	Used, Limit int
	Tenant      limits.Tenant
	// Hostname is the hostname that uses the most, for a limit on each hostname. It is
	// "*" for the empty hostname.
	Hostname string
}

// ByLimit returns the usage of each limit that applies to the Gateway.
func (u *Usage) ByLimit() []LimitUsage {
	rules, instructions, listeners := TenantUsage{}, TenantUsage{}, TenantUsage{}
	for _, t := range u.Tenants {
		if t.Listeners > listeners.Listeners {
			listeners = t
		}
		if t.Tenant == u.First {
			continue // the other limits do not apply to the Gateway owner
		}
		if t.Rules > rules.Rules {
			rules = t
		}
		if t.Instructions > instructions.Instructions {
			instructions = t
		}
	}
	all := []LimitUsage{{Name: limits.RulesPerTunnel, Used: u.Rules, Limit: u.Limits.RulesPerTunnel}}
	if u.Limits.RulesPerNamespace > 0 {
		all = append(all, LimitUsage{Name: limits.RulesPerNamespace, Used: rules.Rules, Limit: u.Limits.RulesPerNamespace, Tenant: rules.Tenant})
	}
	if u.PerHostname > 0 {
		all = append(all, LimitUsage{
			Name: limits.RoutesPerHostname, Used: u.PerHostname, Limit: u.Limits.RoutesPerHostname, Hostname: cmp.Or(u.Hostname, "*"),
		})
	}
	if u.RepeatedLimit > 0 {
		all = append(all, LimitUsage{Name: limits.RepeatedPerTunnel, Used: u.Repeated, Limit: u.RepeatedLimit})
	}
	return append(all,
		LimitUsage{Name: limits.ListenersPerNamespace, Used: listeners.Listeners, Limit: u.Limits.ListenersPerNamespace, Tenant: listeners.Tenant},
		LimitUsage{Name: limits.ExpressionsPerNamespace, Used: instructions.Instructions, Limit: maxInstructionsPerTenant, Tenant: instructions.Tenant},
		LimitUsage{Name: limits.ExpressionsPerTunnel, Used: u.Instructions, Limit: maxInstructionsPerTable},
	)
}

// Refused counts the routes and listeners that are above a limit.
func (u *Usage) Refused() (routes, listeners int) {
	for _, t := range u.Tenants {
		routes += t.RefusedRoutes
		listeners += t.RefusedListeners
	}
	return routes, listeners
}

func (l *limiter) newUsage(d *decision, groups map[string]*group) *Usage {
	if l.unlimited {
		return nil
	}
	tenants := map[limits.Tenant]*TenantUsage{}
	of := func(namespace string) *TenantUsage {
		tenant := l.tenants.of(namespace)
		if tenants[tenant] == nil {
			tenants[tenant] = &TenantUsage{Tenant: tenant}
		}
		return tenants[tenant]
	}
	for _, set := range d.Sets {
		if set.NotAllowed == nil {
			of(set.Owner.Namespace).countListeners(set)
		}
	}
	for _, g := range groups {
		if g.notFound > 0 {
			of(g.owner.Namespace).Rules += g.notFound
		}
	}
	for i := range d.shares {
		of(d.shares[i].route.Namespace).countRoute(&d.shares[i])
	}
	u := &Usage{Limits: l.class, First: l.first, Tenants: make([]TenantUsage, 0, len(tenants))}
	for _, tenant := range slices.SortedFunc(maps.Keys(tenants), limits.Tenant.Compare) {
		u.Tenants = append(u.Tenants, *tenants[tenant])
		u.Rules += tenants[tenant].Rules
		u.Instructions += tenants[tenant].Instructions
	}
	if l.repeats {
		u.countRepeated(d.shares, l.limitForOthers().Total)
		u.countHostnames(l, d.shares, groups)
	}
	return u
}

func (u *Usage) countRepeated(all shares, limit int) {
	u.RepeatedLimit = limit
	for i := range all {
		switch s := &all[i]; {
		case s.isRefused():
		case s.isConfined():
			u.Confined++
		default:
			u.Repeated += s.forOthers
		}
	}
}

func (u *TenantUsage) countListeners(set *Set) {
	for _, l := range set.Listeners {
		switch {
		case l.Rejected == nil:
			u.Listeners++
		case l.Rejected.Reason == conditions.ReasonLimitExceeded:
			u.RefusedListeners++
		case l.Rejected.Reason != conditions.ReasonHostnameNotPermitted && l.Rejected.Reason != conditions.ReasonUnsupportedValue:
			u.Listeners++
		}
	}
}

func (u *TenantUsage) countRoute(s *share) {
	if s.isRefused() {
		u.RefusedRoutes++
		return
	}
	u.Rules += s.rules()
	u.Instructions += s.instructions()
}
