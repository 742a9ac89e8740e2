package gateway

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// countNotFound counts the rules that end a group with the status 404, and the rules with
// the status 403 of closed groups without a route. In another closed group, that rule
// replaces those of the routes, which still count.
//
// A group needs such a rule when a wider group exists. The rule counts for the group's
// tenant. It counts for the wider group instead when only other tenants have wider
// groups: a tenant must not use up the rules of others by claiming a wide hostname.
func (l *limiter) countNotFound(groups map[string]*group) {
	for _, g := range groups {
		own := l.tenants.of(g.owner.Namespace)
		var owner *group
		for wide := range routing.WiderHostnames(g.hostname) {
			w := groups[wide]
			if w == nil {
				continue
			}
			if tenant := l.tenants.of(w.owner.Namespace); tenant == own || tenant == l.first {
				owner = g
				break
			}
			if owner == nil {
				owner = w
			}
		}
		if owner == nil && len(g.routes) == 0 && l.access.Of(g.hostname).IsClosed() {
			owner = g
		}
		if owner != nil {
			owner.notFound++
		}
	}
}

// notFoundRules counts the 404 rules for each tenant that has any.
func (l *limiter) notFoundRules(groups map[string]*group) map[limits.Tenant]int {
	count := map[limits.Tenant]int{}
	for _, g := range groups {
		if g.notFound > 0 {
			count[l.tenants.of(g.owner.Namespace)] += g.notFound
		}
	}
	return count
}

// notFoundBudget limits the rules with the status 404. It decides in order of precedence
// which listeners claim their hostname, so that the last listeners in a tenant's youngest
// ListenerSets do not.
type notFoundBudget struct {
	limit limits.Limit
	// rules are the 404 rules that count for the tenant that claims a hostname.
	rules map[string]int
	// maximum limits the rules for the tenants that exceeded their limit.
	maximum map[limits.Tenant]int
	used    map[limits.Tenant]int
	total   int
	claimed map[string]bool
}

// limitNotFoundRules makes the next decision about the listeners respect the limits.
// excess says by how many 404 rules each tenant exceeds its limit. It returns false when
// there is no excess.
func (l *limiter) limitNotFoundRules(groups map[string]*group, excess map[limits.Tenant]int) bool {
	if len(excess) == 0 {
		return false
	}
	l.notFound = &notFoundBudget{
		limit: l.rules().Limit, rules: map[string]int{}, maximum: map[limits.Tenant]int{}, used: map[limits.Tenant]int{}, claimed: map[string]bool{},
	}
	for _, g := range groups {
		l.notFound.rules[g.hostname] = g.notFound
	}
	used := l.notFoundRules(groups)
	for tenant, amount := range excess {
		l.notFound.maximum[tenant] = used[tenant] - amount
	}
	return true
}

// permits reports whether the tenant may claim the hostname.
func (b *notFoundBudget) permits(tenant limits.Tenant, hostname string) bool {
	rules := b.rules[hostname]
	if b.claimed[hostname] || rules == 0 {
		return true // another port, or a hostname that needs no rule
	}
	maximum, exceeded := b.maximum[tenant]
	if !exceeded {
		maximum = b.limit.Maximum(tenant)
	}
	return b.total+rules <= b.limit.Total && b.used[tenant]+rules <= maximum
}

// claim records that the tenant claims the hostname.
func (b *notFoundBudget) claim(tenant limits.Tenant, hostname string) {
	if b.claimed[hostname] {
		return
	}
	b.claimed[hostname] = true
	b.used[tenant] += b.rules[hostname]
	b.total += b.rules[hostname]
}
