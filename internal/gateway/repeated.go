package gateway

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// repeatedExpressionCost is how many rules a regular expression in a repeated rule counts
// as. Envoy compiles each repetition: 21 KiB, and a rule takes 2 KiB.
const repeatedExpressionCost = 10

// repetitions counts the rules that a data plane repeats. Envoy has one list of rules for
// each hostname, so a list also contains the rules for wider hostnames in the group, up
// to the first rule that matches every request. For example, a Gateway in namespace infra
// has a listener for *.example.com and these routes, none of which matches every request:
//
//	infra/fallback   *.example.com   3 rules
//	team-a/wide      *.example.com   2 rules
//	team-a/shop      a.example.com   1 rule
//	team-b/blog      b.example.com   1 rule
//
// Envoy gets 1+2+3 rules for a.example.com, 1+2+3 rules for b.example.com, and 2+3 rules
// for *.example.com. These are 17 rules, although the routes have 7. The other 10 count
// as follows:
//
//   - infra/fallback is repeated for both tenants: 3 rules count for team-a/shop and 3
//     for team-b/blog, the oldest routes with these hostnames. If they counted for infra,
//     tenants could use up everyone's rules by adding hostnames.
//   - team-a/wide is repeated for a.example.com: 2 rules count for team-a/wide itself,
//     because team-a also names that hostname.
//   - team-a/wide is repeated for b.example.com: 2 rules count for no tenant, because
//     team-a did not create the hostname and team-b did not create the rule. Each tenant
//     can have its share of rules and hostnames, and the repetitions are their product,
//     so no share could admit them all. [limiter.confine] limits them separately, and
//     admits both routes.
//
// If c.example.com has Access settings and no route names it, it has its own list with
// 2+3 rules. They count for team-a/wide and infra/fallback themselves.
//
// What counts for a tenant therefore depends only on its own objects and the objects in
// infra. Other tenants' routes with the same hostname can only reduce it.
type repetitions struct {
	limiter *limiter
	shares  shares
	groups  map[string]*group
	// unsettled are the tenants whose routes may be refused after the count. The count
	// is then an upper bound: their matches for every request shadow nothing, the Gateway
	// owner's rules also count for each of their routes with the narrower hostname, and
	// they are not taken to name hostnames with Access settings.
	unsettled map[limits.Tenant]bool
}

// count sets repeated and forOthers on every share.
func (r repetitions) count() {
	for i := range r.shares {
		r.shares[i].repeated, r.shares[i].forOthers = 0, 0
	}
	hostnames := map[string][]string{} // with Access settings, by their group's hostname
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

// hostRules are the rules of one group by the hostname for which they are served. In the
// example, these are a.example.com, b.example.com and *.example.com.
type hostRules struct {
	group      *group
	byHostname map[string]*rulesOfHostname
}

type rulesOfHostname struct {
	// first is the oldest route with the hostname, or nil: team-a/shop for a.example.com.
	// Routes whose tenants are unsettled are in unsettled instead.
	first     *share
	unsettled []*share
	// platform are the Gateway owner's routes, and platformCost says how many rules one
	// repetition of all of them counts as: infra/fallback and 3 for *.example.com. others
	// are the other routes: team-a/wide.
	platform, others []*share
	platformCost     int
	// tenants are the tenants of all routes, each once.
	tenants []limits.Tenant
	// answered are the schemes for which a rule answers every request.
	answered routing.Schemes
	// lists counts the narrower hostnames for which the rules are repeated, and ownLists
	// counts them for each tenant that names them: for *.example.com, lists is 2, and
	// ownLists is 1 for team-a and 1 for team-b. platformLists counts the lists in which
	// the Gateway owner's rules count for the owner itself.
	lists, platformLists int
	ownLists             map[limits.Tenant]int
	// unnamedLists counts the lists for hostnames that no route is sure to name, such as
	// c.example.com.
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

// nameFirst records that the route names the hostname. It reports whether the route is
// sure to do so.
func (r repetitions) nameFirst(rules *rulesOfHostname, s *share) bool {
	if r.unsettled[s.tenant] {
		rules.unsettled = append(rules.unsettled, s)
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

// name returns the rules for a route's hostname, and records the tenant.
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

// repetitionCost is how many rules one repetition of the match counts as: 11 for a match
// with one regular expression that otherwise counts as 1.
func (m *ruleMatch) repetitionCost() int {
	return m.cost * (1 + repeatedExpressionCost*m.expressions())
}

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

// repeat counts the wider rules in the list for a hostname that routes name.
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

// repeatPlatform counts one repetition of the Gateway owner's rules. own are the rules
// for the narrower hostname, whose oldest route they count for.
func (b hostRules) repeatPlatform(own, rules *rulesOfHostname) {
	switch {
	case own.isPlatform:
		rules.platformLists++
	case own.first != nil:
		own.first.repeated += rules.platformCost
	}
	for _, s := range own.unsettled {
		s.repeated += rules.platformCost
	}
}

// repeatUnnamed counts the wider rules in the list for a hostname that no route is sure
// to name.
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

// addList records that the rules are repeated for a hostname that the tenants name.
func (r *rulesOfHostname) addList(tenants []limits.Tenant) {
	r.lists++
	if r.ownLists == nil {
		r.ownLists = map[limits.Tenant]int{}
	}
	for _, tenant := range tenants {
		r.ownLists[tenant]++
	}
}

// charge adds the repeated rules to their own routes: in the example, 2 to repeated and 2
// to forOthers for team-a/wide.
func (b hostRules) charge() {
	for _, rules := range b.byHostname {
		if rules.lists+rules.unnamedLists == 0 {
			continue // most hostnames
		}
		for _, s := range rules.others {
			own, cost := rules.ownLists[s.tenant], b.group.repetitionCost(s.route)
			s.repeated += (own + rules.unnamedLists) * cost
			s.forOthers += (rules.lists - own) * cost
		}
		for _, s := range rules.platform {
			s.repeated += rules.platformLists * b.group.repetitionCost(s.route)
		}
	}
}

// limitForOthers limits the rules that are repeated for hostnames of other tenants.
func (l *limiter) limitForOthers() limits.Limit {
	return limits.Limit{Total: l.class.RulesPerTunnel / 2, First: l.first}
}

// confine confines routes while too many rules are repeated for hostnames of other
// tenants, and counts the repetitions again if there are refused routes. It begins with the
// youngest routes of the tenant with the most repetitions. If it confines team-a/wide in
// the example of [repetitions], the route stays accepted and keeps serving *.example.com
// and a.example.com, but not b.example.com: team-b/blog could also take these requests
// with a match for every request.
func (l *limiter) confine(all shares, groups map[string]*group, refusesAny bool) {
	if refusesAny {
		repetitions{limiter: l, shares: all, groups: groups}.count()
	}
	demands := make([]limits.Demand, len(all))
	for i := range all {
		if !all[i].isRefused() {
			demands[i] = limits.Demand{Tenant: all[i].tenant, Amount: all[i].forOthers}
		}
	}
	for i, verdict := range l.limitForOthers().Allocate(nil, demands).Verdicts {
		if verdict != limits.Admitted {
			all[i].confined = confinedMessage(l.limitForOthers().Total)
		}
	}
	l.confineAboveHostnames(all, groups)
}
