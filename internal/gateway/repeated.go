package gateway

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// countRepeated counts the rules that a data plane repeats: it has a list of rules for each
// hostname, so that the rules for a wider hostname of a group are part of the list of each
// narrower one, up to the first that matches every request.
//
// A repeated rule counts for its own route. It counts for the oldest route with the
// narrower hostname instead when it belongs to the owner of the Gateway: otherwise,
// tenants could use up the rules of everyone with the fallback of the platform team.
func (l *limiter) countRepeated(groups map[string]*group) {
	hostnames := map[string][]string{} // with Access, by the hostname of their group
	for hostname := range l.access {
		if owner, ok := routing.MostSpecific(groups, hostname); ok {
			hostnames[owner] = append(hostnames[owner], hostname)
		}
	}
	for _, g := range groups {
		b := l.newHostRules(g, groups)
		for hostname := range b.byHostname {
			b.repeat(hostname)
		}
		for _, hostname := range append(hostnames[g.hostname], g.hostname) {
			if b.byHostname[hostname] == nil {
				b.repeat(hostname)
			}
		}
		b.charge()
	}
}

// hostRules are the rules of one group by the hostname for which they are served.
type hostRules struct {
	byHostname map[string]*rulesOfHostname
}

// rulesOfHostname are the rules for one hostname.
type rulesOfHostname struct {
	// first is the oldest route with the hostname.
	first *Route
	// platform are the routes of the Gateway's owner, and platformRules the number of their
	// rules. tenants are the other routes.
	platform, tenants []*Route
	platformRules     int
	// matchesAll reports whether a rule matches every request.
	matchesAll bool
	// lists and platformLists are the numbers of narrower hostnames for which the rules
	// are repeated, and count for their own routes.
	lists, platformLists int
	isPlatform           bool
}

func (l *limiter) newHostRules(g *group, groups map[string]*group) hostRules {
	b := hostRules{map[string]*rulesOfHostname{}}
	for _, route := range g.routes {
		isPlatform := l.tenants.of(route.Namespace) == l.first
		for hostname := range g.servedHostnames(route, groups) {
			b.add(hostname.served, route, isPlatform)
		}
	}
	return b
}

func (b hostRules) add(hostname string, route *Route, isPlatform bool) {
	rules := b.byHostname[hostname]
	if rules == nil {
		rules = &rulesOfHostname{first: route, isPlatform: isPlatform}
		b.byHostname[hostname] = rules
	}
	if route.source.Rank < rules.first.source.Rank {
		rules.first, rules.isPlatform = route, isPlatform
	}
	if isPlatform {
		rules.platform = append(rules.platform, route)
		rules.platformRules += len(route.matches)
	} else {
		rules.tenants = append(rules.tenants, route)
	}
	rules.matchesAll = rules.matchesAll || slices.ContainsFunc(route.matches, func(m ruleMatch) bool { return m.MatchesAll() })
}

// repeat counts the list of rules for one hostname.
func (b hostRules) repeat(hostname string) {
	own := b.byHostname[hostname]
	if own != nil && own.matchesAll {
		return // most hostnames
	}
	for wide := range routing.WiderHostnames(hostname) {
		rules := b.byHostname[wide]
		if rules == nil {
			continue
		}
		rules.lists++
		if own == nil || own.isPlatform {
			rules.platformLists++
		} else {
			own.first.repeated += rules.platformRules
		}
		if rules.matchesAll {
			return
		}
	}
}

// charge adds the repeated rules to their own routes.
func (b hostRules) charge() {
	for _, rules := range b.byHostname {
		for _, route := range rules.tenants {
			route.repeated += rules.lists * len(route.matches)
		}
		for _, route := range rules.platform {
			route.repeated += rules.platformLists * len(route.matches)
		}
	}
}
