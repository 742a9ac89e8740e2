package gateway

import (
	"math"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// notFoundRules counts the rules that end a group with the status 404 for each tenant.
func (l *limiter) notFoundRules(groups map[string]*group) map[limits.Tenant]int {
	count := map[limits.Tenant]int{}
	for hostname, rules := range l.notFoundByHostname(groups) {
		count[l.tenants.of(groups[hostname].owner.Namespace)] += rules
	}
	return count
}

// notFoundByHostname counts, for each hostname, the rules with the status 404 that count
// for the tenant that claims the hostname.
//
// A group needs such a rule when a wider group exists. The rule counts for the tenant of
// the group. It counts for the wider group instead when only other tenants have wider
// groups: a tenant must not use up the rules of others by claiming a wide hostname.
func (l *limiter) notFoundByHostname(groups map[string]*group) map[string]int {
	count := map[string]int{}
	for _, g := range groups {
		own := l.tenants.of(g.owner.Namespace)
		owner, found := "", false
		for wide := range routing.WiderHostnames(g.hostname) {
			w := groups[wide]
			if w == nil {
				continue
			}
			if tenant := l.tenants.of(w.owner.Namespace); tenant == own || tenant == l.first {
				owner, found = g.hostname, true
				break
			}
			if !found {
				owner, found = wide, true
			}
		}
		if found {
			count[owner]++
		}
	}
	return count
}

// notFoundBudget limits the rules with the status 404. It decides in order of precedence
// which listeners claim their hostname, so that the last listeners of the youngest
// ListenerSets of a tenant do not.
type notFoundBudget struct {
	// rules are the 404 rules that count for the tenant that claims a hostname.
	rules map[string]int
	// maximum is the number of rules of the tenants that exceeded their limit.
	maximum map[limits.Tenant]int
	// perTenant is the maximum for the other tenants.
	perTenant int
	total     int
	used      map[limits.Tenant]int
	claimed   map[string]bool
}

// limitNotFoundRules makes the next decision about the listeners respect the limits. The
// excess is the number of 404 rules by which each tenant exceeds its limit. It returns
// false when there is no excess, or when the limits are respected already: what then
// exceeds them belongs to the Gateway itself.
func (l *limiter) limitNotFoundRules(groups map[string]*group, excess map[limits.Tenant]int) bool {
	if len(excess) == 0 || l.notFound != nil {
		return false
	}
	b := &notFoundBudget{
		rules: l.notFoundByHostname(groups), maximum: map[limits.Tenant]int{}, perTenant: math.MaxInt, total: l.class.RulesPerTunnel,
		used: map[limits.Tenant]int{}, claimed: map[string]bool{},
	}
	if l.class.RulesPerNamespace > 0 {
		b.perTenant = l.class.RulesPerNamespace
	}
	used := l.notFoundRules(groups)
	for tenant, amount := range excess {
		b.maximum[tenant] = used[tenant] - amount
	}
	l.notFound = b
	return true
}

// permits reports whether the tenant may claim the hostname. The listeners of the Gateway
// itself always may.
func (b *notFoundBudget) permits(tenant limits.Tenant, first bool, hostname string) bool {
	rules := b.rules[hostname]
	if b.claimed[hostname] || rules == 0 {
		return true // another port, or a hostname that needs no rule
	}
	maximum, limited := b.maximum[tenant]
	if !limited && !first {
		maximum, limited = b.perTenant, true
	}
	return rules <= b.total && (!limited || b.used[tenant]+rules <= maximum)
}

// claim records that the tenant claims the hostname.
func (b *notFoundBudget) claim(tenant limits.Tenant, hostname string) {
	if b.claimed[hostname] {
		return
	}
	b.claimed[hostname] = true
	b.used[tenant] += b.rules[hostname]
	b.total -= b.rules[hostname]
}
