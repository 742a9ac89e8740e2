package gateway

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// hostnameLists are the routes of one group by the hostname for which they are served. The data
// plane compares a request with the routes for its hostname, and with those for wider hostnames
// up to the first that matches every request.
//
// A route of a tenant that is repeated for a hostname which only other tenants name is foreign
// there: it costs no tenant a route, and is confined if there is no room for it.
type hostnameLists struct {
	limiter *limiter
	// unreliable are the tenants with refused routes. Their matches of every request do not count as
	// such, because each refusal would expose the wider routes behind it to another count.
	unreliable map[limits.Tenant]bool
	byName     map[string]*hostnameList
	byRoute    map[*Route][]*hostnameList
}

// hostnameList are the routes for one hostname.
type hostnameList struct {
	routes []*Route
	// costs are the numbers of rules of each tenant, and all is their sum. confined are those of
	// confined routes.
	costs, confined  map[limits.Tenant]int
	all, allConfined int
	matchesAll       bool
}

// limitHostnames refuses the routes for hostnames above limits.routesPerHostname. The result
// holds for every hostname: it repeats the count until no route of a further tenant is refused,
// because the rules for wider hostnames take the place of a refused match of every request.
func (l *limiter) limitHostnames(groups map[string]*group) {
	for _, hostname := range sortedHostnames(groups) {
		unreliable := map[limits.Tenant]bool{}
		for known := -1; known < len(unreliable); {
			known = len(unreliable)
			l.refuseAbove(groups[hostname], groups, unreliable)
		}
	}
}

// refuseAbove refuses routes of a group, and adds their tenants to the unreliable ones.
func (l *limiter) refuseAbove(g *group, groups map[string]*group, unreliable map[limits.Tenant]bool) {
	lists := l.newHostnameLists(g, groups, unreliable)
	for _, hostname := range lists.above(hostnameLists.costWithoutForeign) {
		if lists.costWithoutForeign(hostname) <= l.class.RoutesPerHostname {
			continue // since a route was refused
		}
		routes, amounts := lists.demands(hostname)
		demands := make([]limits.Demand, len(routes))
		for i, route := range routes {
			demands[i] = limits.Demand{Tenant: l.tenants.of(route.Namespace), Amount: amounts[route]}
		}
		limit := limits.Limit{Total: l.class.RoutesPerHostname, First: l.first}
		for i, verdict := range limit.Allocate(nil, demands).Verdicts {
			if verdict != limits.Admitted {
				routes[i].refused, routes[i].aboveHostname = l.hostnameRoutesProblem(hostname, demands[i].Amount), true
				lists.remove(routes[i])
				unreliable[demands[i].Tenant] = true
			}
		}
	}
}

// confineAboveHostnames confines the foreign routes of hostnames above the limit.
func (l *limiter) confineAboveHostnames(groups map[string]*group) {
	for _, name := range sortedHostnames(groups) {
		lists := l.newHostnameLists(groups[name], groups, nil)
		for _, hostname := range lists.above(hostnameLists.cost) {
			if lists.cost(hostname) <= l.class.RoutesPerHostname {
				continue // since a route was confined
			}
			rest := l.class.RoutesPerHostname - lists.costWithoutForeign(hostname)
			var demands []limits.Demand
			routes := lists.foreign(hostname)
			for _, route := range routes {
				demands = append(demands, limits.Demand{Tenant: l.tenants.of(route.Namespace), Amount: route.cost()})
			}
			for i, verdict := range (limits.Limit{Total: rest, First: l.first}).Allocate(nil, demands).Verdicts {
				if verdict != limits.Admitted {
					lists.confine(routes[i])
				}
			}
		}
	}
}

// newHostnameLists returns the lists of a group, or none if no hostname can be above the limit.
func (l *limiter) newHostnameLists(g *group, groups map[string]*group, unreliable map[limits.Tenant]bool) hostnameLists {
	if !l.mayExceedHostname(g) {
		return hostnameLists{limiter: l} // most groups
	}
	return l.allHostnameLists(g, groups, unreliable)
}

func (l *limiter) allHostnameLists(g *group, groups map[string]*group, unreliable map[limits.Tenant]bool) hostnameLists {
	lists := hostnameLists{l, unreliable, map[string]*hostnameList{}, map[*Route][]*hostnameList{}}
	for _, route := range g.routes {
		if route.refused != nil || len(route.matches) == 0 {
			continue // it has no entries
		}
		tenant := l.tenants.of(route.Namespace)
		matchesAll := !unreliable[tenant] && slices.ContainsFunc(route.matches, func(m ruleMatch) bool { return m.MatchesAll() })
		for hostname := range g.servedHostnames(route, groups) {
			list := lists.byName[hostname.served]
			if list == nil {
				list = &hostnameList{costs: map[limits.Tenant]int{}, confined: map[limits.Tenant]int{}}
				lists.byName[hostname.served] = list
			}
			list.routes = append(list.routes, route)
			list.add(route, tenant, 1)
			lists.byRoute[route] = append(lists.byRoute[route], list)
			list.matchesAll = list.matchesAll || matchesAll
		}
	}
	return lists
}

// mayExceedHostname reports whether all routes of the group for one hostname would be above the
// limit.
func (l *limiter) mayExceedHostname(g *group) bool {
	cost := 0
	for _, route := range g.routes {
		if route.refused == nil {
			cost += route.cost() * max(1, len(route.Hostnames))
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
	if x.byName[hostname].matchesAll {
		return
	}
	for name := range routing.WiderHostnames(hostname) {
		list := x.byName[name]
		if list == nil {
			continue
		}
		do(list)
		if list.matchesAll {
			return
		}
	}
}

// isForeign reports whether the routes of a tenant for a wider hostname are foreign for the
// hostname.
func (x hostnameLists) isForeign(tenant limits.Tenant, hostname string) bool {
	_, names := x.byName[hostname].costs[tenant]
	return !names && tenant != x.limiter.first
}

// costWithoutForeign returns the number of rules for a hostname without foreign ones.
func (x hostnameLists) costWithoutForeign(hostname string) int {
	own := x.byName[hostname]
	cost := own.all
	x.wider(hostname, func(wide *hostnameList) {
		if _, names := own.costs[x.limiter.first]; !names {
			cost += wide.costs[x.limiter.first]
		}
		for tenant := range own.costs {
			cost += wide.costs[tenant]
		}
	})
	return cost
}

// cost returns the number of rules for a hostname.
func (x hostnameLists) cost(hostname string) int {
	own := x.byName[hostname]
	cost := x.costWithoutForeign(hostname)
	x.wider(hostname, func(wide *hostnameList) {
		cost += wide.all - wide.allConfined
		if _, names := own.costs[x.limiter.first]; !names {
			cost -= wide.costs[x.limiter.first]
		}
		for tenant := range own.costs {
			cost -= wide.costs[tenant] - wide.confined[tenant]
		}
	})
	return cost
}

// foreign returns the foreign routes for a hostname that are not confined, the oldest first.
func (x hostnameLists) foreign(hostname string) []*Route {
	var routes []*Route
	x.wider(hostname, func(wide *hostnameList) {
		for _, route := range wide.routes {
			if !route.source.Confined && x.isForeign(x.limiter.tenants.of(route.Namespace), hostname) {
				routes = append(routes, route)
			}
		}
	})
	sortByRank(routes)
	return routes
}

// demands returns the routes for a hostname that are not foreign, the oldest first, and the
// number of rules of each.
func (x hostnameLists) demands(hostname string) ([]*Route, map[*Route]int) {
	amounts := map[*Route]int{}
	for _, route := range x.byName[hostname].routes {
		if route.refused == nil {
			amounts[route] += route.cost()
		}
	}
	x.wider(hostname, func(wide *hostnameList) {
		for _, route := range wide.routes {
			if route.refused == nil && !x.isForeign(x.limiter.tenants.of(route.Namespace), hostname) {
				amounts[route] += route.cost()
			}
		}
	})
	routes := make([]*Route, 0, len(amounts))
	for route := range amounts {
		routes = append(routes, route)
	}
	sortByRank(routes)
	return routes, amounts
}

// remove removes the costs of a route that is refused.
func (x hostnameLists) remove(route *Route) {
	for _, list := range x.byRoute[route] {
		list.add(route, x.limiter.tenants.of(route.Namespace), -1)
	}
}

// confine confines a route.
func (x hostnameLists) confine(route *Route) {
	route.confine(hostnameConfinedMessage(x.limiter.class.RoutesPerHostname))
	for _, list := range x.byRoute[route] {
		list.confined[x.limiter.tenants.of(route.Namespace)] += route.cost()
		list.allConfined += route.cost()
	}
}

// add adds the costs of a route, or removes them if the factor is negative.
func (h *hostnameList) add(route *Route, tenant limits.Tenant, factor int) {
	cost := factor * route.cost()
	h.costs[tenant] += cost
	h.all += cost
	if route.source.Confined {
		h.confined[tenant] += cost
		h.allConfined += cost
	}
}

// countHostnames sets the hostname with the most rules, the first in order among equals.
func (u *Usage) countHostnames(l *limiter, groups map[string]*group) {
	for _, name := range sortedHostnames(groups) {
		lists := l.allHostnameLists(groups[name], groups, nil)
		for _, hostname := range slices.SortedFunc(maps.Keys(lists.byName), routing.CompareGroups) {
			if cost := lists.cost(hostname); cost > u.PerHostname {
				u.PerHostname, u.Hostname = cost, hostname
			}
		}
	}
}

func sortByRank(routes []*Route) {
	slices.SortFunc(routes, func(a, b *Route) int { return a.source.Rank - b.source.Rank })
}
