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
//     no limit could admit everything that both may have. [limiter.confine] limits
//     these repetitions, and admits the routes of both.
//
// The amounts of a tenant therefore depend only on its own objects and on those of the
// owner of the Gateway. Routes of other tenants with the same hostname can only reduce them.
type repetitions struct {
	limiter *limiter
	shares  shares
	groups  map[string]*group
	// unreliable are the tenants whose routes may be refused after the count. The count is an
	// upper bound for this case: a match of every request of these tenants shadows nothing, a
	// rule of the owner of the Gateway also counts for each of their routes with the narrower
	// hostname, and they do not name the hostnames of entries for Access.
	unreliable map[limits.Tenant]bool
}

// count counts the repeated rules of all routes.
func (r repetitions) count() {
	for i := range r.shares {
		r.shares[i].repeated, r.shares[i].foreign = 0, 0
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
		b.charge()
	}
}

// hostRules are the rules of one group by the hostname for which they are served.
type hostRules struct {
	group      *group
	byHostname map[string]*rulesOfHostname
}

// rulesOfHostname are the rules for one hostname.
type rulesOfHostname struct {
	// first is the oldest route with the hostname, or nil. The routes of unreliable tenants are
	// in unreliable instead.
	first      *share
	unreliable []*share
	// platform are the routes of the Gateway's owner, and platformCost the number of rules
	// for which their repetition counts. others are the other routes.
	platform, others []*share
	platformCost     int
	// tenants are the tenants of all routes, without repetition.
	tenants []limits.Tenant
	// answered are the schemes whose requests a rule answers all.
	answered routing.Schemes
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
	b := hostRules{g, map[string]*rulesOfHostname{}}
	for route, hostname := range g.borrowedNames(r.groups) {
		if s := r.shares.of(route); !s.isRefused() {
			r.nameFirst(b.name(hostname.served, s), s)
		}
	}
	for _, route := range g.routes {
		s := r.shares.of(route)
		if s.isRefused() || g.cost(route) == 0 {
			continue // it has no entries
		}
		isPlatform, answered := s.tenant == r.limiter.first, g.answered(route)
		for hostname := range g.servedHostnames(route, r.groups) {
			rules := b.add(hostname.served, s, isPlatform)
			if r.nameFirst(rules, s) {
				rules.answered |= answered
			}
		}
	}
	return b
}

// nameFirst records that the route names the hostname of the rules. It reports whether the route
// is sure to do so.
func (r repetitions) nameFirst(rules *rulesOfHostname, s *share) bool {
	if r.unreliable[s.tenant] {
		rules.unreliable = append(rules.unreliable, s)
		return false
	}
	rules.setFirst(s, s.tenant == r.limiter.first)
	return true
}

func (b hostRules) add(hostname string, s *share, isPlatform bool) *rulesOfHostname {
	rules := b.name(hostname, s)
	if isPlatform {
		rules.platform = append(rules.platform, s)
		rules.platformCost += b.group.repetitionCost(s.route)
	} else {
		rules.others = append(rules.others, s)
	}
	return rules
}

// name adds the hostname of a route.
func (b hostRules) name(hostname string, s *share) *rulesOfHostname {
	rules := b.byHostname[hostname]
	if rules == nil {
		rules = &rulesOfHostname{}
		b.byHostname[hostname] = rules
	}
	if !slices.Contains(rules.tenants, s.tenant) {
		rules.tenants = append(rules.tenants, s.tenant)
	}
	return rules
}

func (r *rulesOfHostname) setFirst(s *share, isPlatform bool) {
	if r.first == nil || s.route.source.Rank < r.first.route.source.Rank {
		r.first, r.isPlatform = s, isPlatform
	}
}

// repetitionCost is the number of rules for which one repetition of the match counts.
func (m *ruleMatch) repetitionCost() int {
	return m.cost * (1 + repeatedExpressionCost*m.expressions())
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
	answered := own.answered
	if answered.HasBoth() {
		return // most hostnames
	}
	for wide := range routing.WiderHostnames(hostname) {
		rules := b.byHostname[wide]
		if rules == nil {
			continue
		}
		rules.addList(own.tenants)
		b.repeatPlatform(own, rules)
		if answered |= rules.answered; answered.HasBoth() {
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
	for _, s := range own.unreliable {
		s.repeated += rules.platformCost
	}
}

// repeatUnnamed counts the list of rules for a hostname that no route is sure to name.
func (b hostRules) repeatUnnamed(hostname string) {
	var answered routing.Schemes
	for wide := range routing.WiderHostnames(hostname) {
		rules := b.byHostname[wide]
		if rules == nil {
			continue
		}
		rules.unnamedLists++
		rules.platformLists++
		if answered |= rules.answered; answered.HasBoth() {
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
func (b hostRules) charge() {
	for _, rules := range b.byHostname {
		if rules.lists+rules.unnamedLists == 0 {
			continue // most hostnames
		}
		for _, s := range rules.others {
			own, cost := rules.ownLists[s.tenant], b.group.repetitionCost(s.route)
			s.repeated += (own + rules.unnamedLists) * cost
			s.foreign += (rules.lists - own) * cost
		}
		for _, s := range rules.platform {
			s.repeated += rules.platformLists * b.group.repetitionCost(s.route)
		}
	}
}

// foreignRules is the limit on the rules that are repeated for hostnames of other tenants.
func (l *limiter) foreignRules() limits.Limit {
	return limits.Limit{Total: l.class.RulesPerTunnel / 2, First: l.first}
}

// confine confines the routes whose rules are above the limit on repetitions for hostnames of
// other tenants, and makes the counts of repetitions those of the routes that are not refused. The
// tenant with the most repetitions has its youngest routes confined first. A confined route stays
// accepted. It loses only requests for hostnames that routes of other tenants name, which these
// could also take with a match of every request.
func (l *limiter) confine(all shares, groups map[string]*group) {
	repetitions{limiter: l, shares: all, groups: groups}.count()
	demands := make([]limits.Demand, len(all))
	for i := range all {
		if !all[i].isRefused() {
			demands[i] = limits.Demand{Tenant: all[i].tenant, Amount: all[i].foreign}
		}
	}
	for i, verdict := range l.foreignRules().Allocate(nil, demands).Verdicts {
		if verdict != limits.Admitted {
			all[i].confined = confinedMessage(l.foreignRules().Total)
		}
	}
	l.confineAboveHostnames(all, groups)
}
