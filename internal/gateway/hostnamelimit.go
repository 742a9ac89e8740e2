package gateway

import (
	"iter"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// hostnameLists are the routes of one group by the hostname for which they are served.
// The data plane compares a request with the routes for its hostname, and with the routes
// for wider hostnames up to the first match for every request.
//
// A tenant's route for *.example.com is also in the list for b.example.com. If only other
// tenants name b.example.com, the route is there for others: it costs no tenant a route,
// and is confined if there is no room for it.
type hostnameLists struct {
	group   *group
	groups  map[string]*group
	limiter *limiter
	byName  map[string]*hostnameList
	// borrowed counts, by hostname, the rules for redirects of tenants that answer http
	// first.
	borrowed map[string]int
}

// hostnameList are the routes for one hostname.
type hostnameList struct {
	routes []*share
	// costs has each tenant's rule count, and all is their sum. confined counts the rules
	// of confined routes.
	costs, confined  tenantCosts
	all, allConfined int
	// answered are the schemes for which a route answers every request.
	answered routing.Schemes
}

// limitHostnames refuses the routes for hostnames above limits.routesPerHostname. The
// result holds for every hostname: it repeats the count until no further tenant has a
// refused route, because the rules for wider hostnames take the place of a refused match
// for every request.
func (l *limiter) limitHostnames(all shares, groups map[string]*group) {
	for _, hostname := range sortedHostnames(groups) {
		unsettled := map[limits.Tenant]bool{}
		for known := -1; known < len(unsettled); {
			known = len(unsettled)
			l.refuseAbove(all, groups[hostname], groups, unsettled)
		}
	}
}

// refuseAbove refuses routes in a group, and adds their tenants to the unsettled ones.
func (l *limiter) refuseAbove(all shares, g *group, groups map[string]*group, unsettled map[limits.Tenant]bool) {
	lists := l.newHostnameLists(all, g, groups, unsettled)
	for _, hostname := range lists.above(hostnameLists.costWithoutOthers) {
		if lists.costWithoutOthers(hostname) <= l.class.RoutesPerHostname {
			continue // since a route was refused
		}
		routes, amounts := lists.demands(hostname)
		demands := make([]limits.Demand, len(routes))
		for i, s := range routes {
			demands[i] = limits.Demand{Tenant: s.tenant, Amount: amounts[s]}
		}
		limit := limits.Limit{Total: max(0, l.class.RoutesPerHostname-lists.redirects(hostname)), First: l.first}
		for i, verdict := range limit.Allocate(nil, demands).Verdicts {
			if verdict != limits.Admitted {
				routes[i].refused, routes[i].aboveHostname = l.hostnameRoutesProblem(hostname, demands[i].Amount), true
				lists.remove(routes[i])
				unsettled[demands[i].Tenant] = true
			}
		}
	}
}

// confineAboveHostnames confines routes for others on hostnames above the limit.
func (l *limiter) confineAboveHostnames(all shares, groups map[string]*group) {
	for _, name := range sortedHostnames(groups) {
		lists := l.newHostnameLists(all, groups[name], groups, nil)
		for _, hostname := range lists.above(hostnameLists.cost) {
			if lists.cost(hostname) <= l.class.RoutesPerHostname {
				continue // since a route was confined
			}
			rest := l.class.RoutesPerHostname - lists.costWithoutOthers(hostname)
			var demands []limits.Demand
			routes := lists.routesForOthers(hostname)
			for _, s := range routes {
				demands = append(demands, limits.Demand{Tenant: s.tenant, Amount: lists.group.cost(s.route)})
			}
			for i, verdict := range (limits.Limit{Total: rest, First: l.first}).Allocate(nil, demands).Verdicts {
				if verdict != limits.Admitted {
					lists.confine(routes[i])
				}
			}
		}
	}
}

// newHostnameLists returns the lists for a group, or none if no hostname can be above the
// limit.
func (l *limiter) newHostnameLists(all shares, g *group, groups map[string]*group, unsettled map[limits.Tenant]bool) hostnameLists {
	if !l.mayExceedHostname(all, g, groups) {
		return hostnameLists{limiter: l} // most groups
	}
	return l.allHostnameLists(all, g, groups, unsettled)
}

// allHostnameLists returns the lists for a group. unsettled are the tenants with refused
// routes. Their matches for every request do not count as such, because each refusal would
// expose the wider routes behind it to another count.
func (l *limiter) allHostnameLists(all shares, g *group, groups map[string]*group, unsettled map[limits.Tenant]bool) hostnameLists {
	lists := hostnameLists{group: g, groups: groups, limiter: l, borrowed: l.borrowedRules(all, g, groups)}
	isComplete := len(unsettled) == 0 && !slices.ContainsFunc(g.routes, func(r *Route) bool {
		s := all.of(r)
		return s.isRefused() || s.isConfined()
	})
	if isComplete {
		lists.byName = g.completeLists
	}
	if lists.byName != nil {
		return lists
	}
	lists.byName = map[string]*hostnameList{}
	for _, route := range g.routes {
		if s := all.of(route); !s.isRefused() && g.cost(route) > 0 { // otherwise, it has no entries
			lists.add(s, !unsettled[s.tenant])
		}
	}
	if isComplete {
		g.completeLists = lists.byName
	}
	return lists
}

// add adds the route to the lists for its hostnames.
func (x hostnameLists) add(s *share, isSettled bool) {
	var answered routing.Schemes
	if isSettled {
		answered = x.group.answered(s.route)
	}
	for hostname := range x.group.servedHostnames(s.route, x.groups) {
		list := x.byName[hostname.served]
		if list == nil {
			list = &hostnameList{}
			x.byName[hostname.served] = list
		}
		list.routes = append(list.routes, s)
		list.add(s, x.group.cost(s.route))
		list.answered |= answered
	}
}

// mayExceedHostname reports whether all the group's routes for one hostname would be
// above the limit.
func (l *limiter) mayExceedHostname(all shares, g *group, groups map[string]*group) bool {
	cost := 0
	for _, rules := range l.borrowedRules(all, g, groups) {
		cost += rules
	}
	for _, route := range g.routes {
		if !all.of(route).isRefused() {
			cost += max(route.cost(), g.cost(route)) * max(1, len(route.Hostnames))
		}
	}
	return cost > l.class.RoutesPerHostname
}

// above returns the hostnames whose cost is above the limit, in a fixed order.
func (x hostnameLists) above(cost func(hostnameLists, string) int) []string {
	var above []string
	for hostname := range x.byName {
		if cost(x, hostname) > x.limiter.class.RoutesPerHostname {
			above = append(above, hostname)
		}
	}
	slices.SortFunc(above, routing.CompareGroups)
	return above
}

// wider calls do with the lists for wider hostnames whose routes are repeated for the hostname.
func (x hostnameLists) wider(hostname string, do func(*hostnameList)) {
	answered := x.byName[hostname].answered
	if answered.HasBoth() {
		return
	}
	for name := range routing.WiderHostnames(hostname) {
		list := x.byName[name]
		if list == nil {
			continue
		}
		do(list)
		if answered |= list.answered; answered.HasBoth() {
			return
		}
	}
}

// redirects counts the rules for redirects of tenants that answer http for the hostname.
func (x hostnameLists) redirects(hostname string) int {
	if len(x.borrowed) == 0 {
		return 0 // most groups
	}
	rules := x.borrowed[hostname]
	for wide := range routing.WiderHostnames(hostname) {
		rules += x.borrowed[wide]
	}
	return rules
}

// isForOthers reports whether a tenant's routes for a wider hostname are repeated on the
// hostname for other tenants.
func (x hostnameLists) isForOthers(tenant limits.Tenant, hostname string) bool {
	return !x.byName[hostname].costs.has(tenant) && tenant != x.limiter.first
}

// costWithoutOthers counts the rules for a hostname without routes for others.
func (x hostnameLists) costWithoutOthers(hostname string) int {
	own := x.byName[hostname]
	cost := own.all + x.redirects(hostname)
	x.wider(hostname, func(wide *hostnameList) {
		if !own.costs.has(x.limiter.first) {
			cost += wide.costs.of(x.limiter.first)
		}
		for tenant := range own.costs.tenants() {
			cost += wide.costs.of(tenant)
		}
	})
	return cost
}

// cost counts the rules for a hostname.
func (x hostnameLists) cost(hostname string) int {
	own := x.byName[hostname]
	cost := x.costWithoutOthers(hostname)
	x.wider(hostname, func(wide *hostnameList) {
		cost += wide.all - wide.allConfined
		if !own.costs.has(x.limiter.first) {
			cost -= wide.costs.of(x.limiter.first)
		}
		for tenant := range own.costs.tenants() {
			cost -= wide.costs.of(tenant) - wide.confined.of(tenant)
		}
	})
	return cost
}

// routesForOthers returns the routes for others on a hostname that are not confined, the
// oldest first.
func (x hostnameLists) routesForOthers(hostname string) []*share {
	var routes []*share
	x.wider(hostname, func(wide *hostnameList) {
		for _, s := range wide.routes {
			if !s.isConfined() && x.isForOthers(s.tenant, hostname) {
				routes = append(routes, s)
			}
		}
	})
	sortByRank(routes)
	return routes
}

// demands returns the routes for a hostname, without routes for others, the oldest first, and
// how many rules each has.
func (x hostnameLists) demands(hostname string) ([]*share, map[*share]int) {
	amounts := map[*share]int{}
	for _, s := range x.byName[hostname].routes {
		if !s.isRefused() {
			amounts[s] += x.group.cost(s.route)
		}
	}
	x.wider(hostname, func(wide *hostnameList) {
		for _, s := range wide.routes {
			if !s.isRefused() && !x.isForOthers(s.tenant, hostname) {
				amounts[s] += x.group.cost(s.route)
			}
		}
	})
	routes := make([]*share, 0, len(amounts))
	for s := range amounts {
		routes = append(routes, s)
	}
	sortByRank(routes)
	return routes, amounts
}

// remove removes what a refused route costs.
func (x hostnameLists) remove(s *share) {
	x.group.completeLists = nil
	for list := range x.of(s) {
		list.add(s, -x.group.cost(s.route))
	}
}

func (x hostnameLists) confine(s *share) {
	x.group.completeLists = nil
	s.confined = hostnameConfinedMessage(x.limiter.class.RoutesPerHostname)
	for list := range x.of(s) {
		list.addConfined(s, x.group.cost(s.route))
	}
}

// of iterates over the lists for the route's hostnames, and repeats a list that several have.
func (x hostnameLists) of(s *share) iter.Seq[*hostnameList] {
	return func(yield func(*hostnameList) bool) {
		for hostname := range x.group.servedHostnames(s.route, x.groups) {
			if !yield(x.byName[hostname.served]) {
				return
			}
		}
	}
}

// add adds what a route costs, which is negative to remove it.
func (h *hostnameList) add(s *share, cost int) {
	h.costs.add(s.tenant, cost)
	h.all += cost
	if s.isConfined() {
		h.addConfined(s, cost)
	}
}

func (h *hostnameList) addConfined(s *share, cost int) {
	h.confined.add(s.tenant, cost)
	h.allConfined += cost
}

// countHostnames sets the hostname with the most rules, the first in order among equals.
func (u *Usage) countHostnames(l *limiter, all shares, groups map[string]*group) {
	for _, name := range sortedHostnames(groups) {
		lists := l.allHostnameLists(all, groups[name], groups, nil)
		most, costs := "", 0
		for hostname := range lists.byName {
			if cost := lists.cost(hostname); cost > costs || cost == costs && routing.CompareGroups(hostname, most) < 0 {
				most, costs = hostname, cost
			}
		}
		if costs > u.PerHostname {
			u.PerHostname, u.Hostname = costs, most
		}
	}
}

func sortByRank(routes []*share) {
	slices.SortFunc(routes, func(a, b *share) int { return a.route.source.Rank - b.route.source.Rank })
}
