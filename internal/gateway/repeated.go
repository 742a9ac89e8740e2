package gateway

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// repeatedExpressionCost is the number of rules for which a regular expression in a repeated
// rule counts. Envoy compiles each repetition: 21 KiB, and a rule takes 2 KiB.
const repeatedExpressionCost = 10

// repetitions counts the rules that a data plane repeats: it has a list of rules for each
// hostname, so that the rules for a wider hostname of a group are part of the list of each
// narrower one, up to the first that matches every request. Who pays:
//
//   - A repeated rule of the owner of the Gateway counts for the oldest route with the
//     narrower hostname. Otherwise, tenants could use up the rules of everyone with the fallback of
//     the platform team.
//   - A repeated rule of a tenant counts for its own route if the tenant also names the
//     narrower hostname, or no tenant does.
//   - A rule of a tenant that is repeated for a hostname of other tenants counts for neither:
//     the one did not create the hostname, and the other did not create the rule. Each of them
//     can have a share of the rules of the Gateway, and the repetitions are the product, so
//     no limit could admit everything that both may have. [limiter.confineRoutes] limits
//     these repetitions, and admits the routes of both.
//
// The amounts of a tenant therefore depend only on its own objects and on those of the
// owner of the Gateway. Routes of other tenants with the same hostname can only reduce them.
type repetitions struct {
	limiter *limiter
	groups  map[string]*group
	// unreliable are the tenants whose routes may be refused after the count. The count is an
	// upper bound for this case: a match of every request of these tenants shadows nothing, a
	// rule of the owner of the Gateway also counts for each of their routes with the narrower
	// hostname, and they do not name the hostnames of entries for Access.
	unreliable map[limits.Tenant]bool
}

// count counts the repeated rules of all routes.
func (r repetitions) count(routes []*Route) {
	for _, route := range routes {
		route.repeated, route.foreign = 0, 0
	}
	hostnames := map[string][]string{} // with Access, by the hostname of their group
	for hostname := range r.limiter.access {
		if owner, ok := routing.MostSpecific(r.groups, hostname); ok {
			hostnames[owner] = append(hostnames[owner], hostname)
		}
	}
	for _, g := range r.groups {
		b := r.newHostRules(g)
		for hostname := range b.byHostname {
			b.repeat(hostname)
		}
		for _, hostname := range append(hostnames[g.hostname], g.hostname) {
			if own := b.byHostname[hostname]; own == nil || own.first == nil {
				b.repeatUnnamed(hostname)
			}
		}
		b.charge(r.limiter.tenants)
	}
}

// hostRules are the rules of one group by the hostname for which they are served.
type hostRules struct {
	byHostname map[string]*rulesOfHostname
}

// rulesOfHostname are the rules for one hostname.
type rulesOfHostname struct {
	// first is the oldest route with the hostname, or nil. The routes of unreliable tenants are
	// in unreliable instead.
	first      *Route
	unreliable []*Route
	// platform are the routes of the Gateway's owner, and platformCost the number of rules
	// for which their repetition counts. others are the other routes.
	platform, others []*Route
	platformCost     int
	// tenants are the tenants of the other routes, without repetition.
	tenants []limits.Tenant
	// matchesAll reports whether a rule matches every request.
	matchesAll bool
	// lists is the number of narrower hostnames of routes for which the rules are repeated, and
	// ownLists the number of these hostnames that each tenant names. platformLists is the
	// number for which the rules of the Gateway's owner count for this owner.
	lists, platformLists int
	ownLists             map[limits.Tenant]int
	// unnamedLists are the lists of hostnames that no route is sure to name.
	unnamedLists int
	// isPlatform reports whether first belongs to the Gateway's owner.
	isPlatform bool
}

func (r repetitions) newHostRules(g *group) hostRules {
	b := hostRules{map[string]*rulesOfHostname{}}
	for _, route := range g.routes {
		if route.refused != nil || len(route.matches) == 0 {
			continue // it has no entries
		}
		tenant := r.limiter.tenants.of(route.Namespace)
		for hostname := range g.servedHostnames(route, r.groups) {
			rules := b.add(hostname.served, route, tenant, tenant == r.limiter.first)
			if r.unreliable[tenant] {
				rules.unreliable = append(rules.unreliable, route)
				continue
			}
			rules.setFirst(route, tenant == r.limiter.first)
			rules.matchesAll = rules.matchesAll || slices.ContainsFunc(route.matches, func(m ruleMatch) bool { return m.MatchesAll() })
		}
	}
	return b
}

func (b hostRules) add(hostname string, route *Route, tenant limits.Tenant, isPlatform bool) *rulesOfHostname {
	rules := b.byHostname[hostname]
	if rules == nil {
		rules = &rulesOfHostname{}
		b.byHostname[hostname] = rules
	}
	if isPlatform {
		rules.platform = append(rules.platform, route)
		rules.platformCost += route.repetitionCost()
		return rules
	}
	rules.others = append(rules.others, route)
	if !slices.Contains(rules.tenants, tenant) {
		rules.tenants = append(rules.tenants, tenant)
	}
	return rules
}

func (r *rulesOfHostname) setFirst(route *Route, isPlatform bool) {
	if r.first == nil || route.source.Rank < r.first.source.Rank {
		r.first, r.isPlatform = route, isPlatform
	}
}

// repetitionCost is the number of rules for which one repetition of the route counts.
func (r *Route) repetitionCost() int {
	cost := 0
	for i := range r.matches {
		cost += r.matches[i].cost * (1 + repeatedExpressionCost*r.matches[i].expressions())
	}
	return cost
}

// expressions returns the number of regular expressions in the match.
func (m *ruleMatch) expressions() int {
	count := 0
	if m.Path.Kind == routing.PathExpression {
		count++
	}
	for _, values := range [][]routing.ValueMatch{m.Headers, m.Query} {
		for _, value := range values {
			if value.Expression {
				count++
			}
		}
	}
	return count
}

// repeat counts the list of rules for a hostname that routes name.
func (b hostRules) repeat(hostname string) {
	own := b.byHostname[hostname]
	if own.matchesAll {
		return // most hostnames
	}
	for wide := range routing.WiderHostnames(hostname) {
		rules := b.byHostname[wide]
		if rules == nil {
			continue
		}
		rules.addList(own.tenants)
		b.repeatPlatform(own, rules)
		if rules.matchesAll {
			return
		}
	}
}

// repeatPlatform counts the repetition of the rules of the Gateway's owner. own are the rules
// for the narrower hostname.
func (b hostRules) repeatPlatform(own, rules *rulesOfHostname) {
	switch {
	case own.isPlatform:
		rules.platformLists++
	case own.first != nil:
		own.first.repeated += rules.platformCost
	}
	for _, route := range own.unreliable {
		route.repeated += rules.platformCost
	}
}

// repeatUnnamed counts the list of rules for a hostname that no route is sure to name.
func (b hostRules) repeatUnnamed(hostname string) {
	for wide := range routing.WiderHostnames(hostname) {
		rules := b.byHostname[wide]
		if rules == nil {
			continue
		}
		rules.unnamedLists++
		rules.platformLists++
		if rules.matchesAll {
			return
		}
	}
}

// addList counts a list for a hostname of the tenants.
func (r *rulesOfHostname) addList(tenants []limits.Tenant) {
	r.lists++
	if r.ownLists == nil {
		r.ownLists = map[limits.Tenant]int{}
	}
	for _, tenant := range tenants {
		r.ownLists[tenant]++
	}
}

// charge adds the repeated rules to their own routes.
func (b hostRules) charge(t tenants) {
	for _, rules := range b.byHostname {
		if rules.lists+rules.unnamedLists == 0 {
			continue // most hostnames
		}
		for _, route := range rules.others {
			own, cost := rules.ownLists[t.of(route.Namespace)], route.repetitionCost()
			route.repeated += (own + rules.unnamedLists) * cost
			route.foreign += (rules.lists - own) * cost
		}
		for _, route := range rules.platform {
			route.repeated += rules.platformLists * route.repetitionCost()
		}
	}
}

// foreignRules is the limit on the rules that are repeated for hostnames of other tenants.
func (l *limiter) foreignRules() limits.Limit {
	return limits.Limit{Total: l.class.RulesPerTunnel / 2, First: l.first}
}

// confineRoutes confines the routes whose rules are above the limit on repetitions for
// hostnames of other tenants, and makes the counts of repetitions those of the routes that
// are not refused. The tenant with the most repetitions has its youngest routes confined
// first. A confined route stays accepted. It loses only requests for hostnames that routes of
// other tenants name, which these could also take with a match of every request.
func (l *limiter) confineRoutes(routes []*Route, groups map[string]*group) {
	if !l.repeats {
		return
	}
	repetitions{limiter: l, groups: groups}.count(routes)
	demands := make([]limits.Demand, len(routes))
	for i, route := range routes {
		if route.refused == nil {
			demands[i] = limits.Demand{Tenant: l.tenants.of(route.Namespace), Amount: route.foreign}
		}
	}
	for i, verdict := range l.foreignRules().Allocate(nil, demands).Verdicts {
		if verdict != limits.Admitted {
			routes[i].confine(confinedMessage(l.foreignRules().Total))
		}
	}
	l.confineAboveHostnames(groups)
	if !slices.ContainsFunc(routes, func(route *Route) bool { return route.source.Confined }) {
		return // most Gateways
	}
	for _, route := range routes {
		route.source.Tenant = l.tenants.describe(route.Namespace)
	}
}

// confine confines the route for the reason.
func (r *Route) confine(reason string) { r.source.Confined, r.confined = true, reason }
