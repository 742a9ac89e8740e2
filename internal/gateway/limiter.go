package gateway

import (
	"math"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// limiter applies the limits of the GatewayClass to the tenants of one Gateway.
type limiter struct {
	class   settings.Limits
	tenants tenants
	// first is the tenant of the Gateway's namespace.
	first limits.Tenant
	// unlimited reports whether the limits of the class are unknown.
	unlimited bool
	// repeats reports whether the data plane repeats entries for each hostname, and answers
	// with the status 404 without a rule.
	repeats bool
	access  routing.Access
	// notFound limits the rules that answer 404. It is nil until the rules of all
	// tenants are known to exceed a limit.
	notFound *notFoundBudget
}

// newLimiter returns the limiter for the Gateway. While the settings of the class are not
// valid, only the limits apply that do not depend on the class.
func newLimiter(s *Snapshot, in settings.Input, plane v1alpha1.DataPlane) *limiter {
	class, ok := settings.ClassLimits(in, plane)
	if !ok {
		class = settings.Limits{RulesPerTunnel: math.MaxInt, RoutesPerHostname: math.MaxInt, ListenersPerNamespace: math.MaxInt}
	}
	l := &limiter{class: class, unlimited: !ok, tenants: tenants{label: class.TenantLabel, namespaces: s.Namespaces}}
	l.first = l.tenants.of(s.Gateway.Namespace)
	return l
}

// resource is a limited resource that the routes of a Gateway share.
type resource struct {
	limits.Limit
	// amount returns how much a route needs.
	amount func(*Route) int
	// problem returns the problem of a route that gets no share.
	problem func(l *limiter, route *Route, amount int, v limits.Verdict) *Problem
}

func (l *limiter) expressionsLength() resource {
	return resource{limits.Limit{Total: maxExpressionsLengthPerTable, PerTenant: maxExpressionsLengthPerTenant, First: l.first},
		(*Route).expressionsLength, (*limiter).expressionsLengthProblem}
}

func (l *limiter) instructions() resource {
	return resource{limits.Limit{Total: maxInstructionsPerTable, PerTenant: maxInstructionsPerTenant, First: l.first},
		(*Route).instructions, (*limiter).instructionsProblem}
}

func (l *limiter) rules() resource {
	return resource{limits.Limit{Total: l.class.RulesPerTunnel, PerTenant: l.class.RulesPerNamespace, First: l.first},
		(*Route).rules, (*limiter).rulesProblem}
}

// limitExpressions selects the routes whose regular expressions are translated. It refuses
// routes whose expressions are too long together, before they are parsed. A route that
// no listener can admit does not count, so that a namespace without access to the
// Gateway cannot affect others. The routes are in order of precedence.
func (l *limiter) limitExpressions(routes []*Route, p parents) {
	demands := make([]limits.Demand, len(routes))
	found := false
	for i, route := range routes {
		length := route.expressionsLength()
		if length == 0 {
			continue
		}
		if !route.mayAttach(p) {
			route.skipsExpressions = true
			continue
		}
		demands[i], found = limits.Demand{Tenant: l.tenants.of(route.Namespace), Amount: length}, true
	}
	if !found {
		return // most Gateways
	}
	r := l.expressionsLength()
	for i, verdict := range r.Allocate(nil, demands).Verdicts {
		if verdict != limits.Admitted {
			routes[i].skipsExpressions = true
			routes[i].tooLong = r.problem(l, routes[i], demands[i].Amount, verdict)
		}
	}
}

// limitRoutes refuses the routes that exceed a limit on expressions or rules, each as a
// whole: otherwise, the requests of a refused match could reach a wider rule of the same
// route. It returns the amount of 404 rules by which each tenant exceeds its limit
// without any route. The routes are in order of precedence.
func (l *limiter) limitRoutes(routes []*Route, groups map[string]*group) (excess map[limits.Tenant]int) {
	countHostnames(routes, groups)
	if l.repeats {
		l.limitRepeated(routes, groups)
		return nil
	}
	l.countNotFound(groups)
	notFound := l.notFoundRules(groups)
	l.allocate(l.instructions(), routes, nil)
	excess = l.allocate(l.rules(), routes, notFound)
	l.readmit(routes, notFound)
	return excess
}

// limitRepeated limits the routes for a data plane that repeats rules. A refused match of every
// request no longer shadows the rules for wider hostnames. Therefore, it counts them again
// without such matches of the tenants that have refused routes. A tenant below its share has no
// refused routes, so its rules count as before.
func (l *limiter) limitRepeated(routes []*Route, groups map[string]*group) {
	l.limitHostnames(groups) // first, so that the rules of these routes are left to others
	unreliable := map[limits.Tenant]bool{}
	for known := -1; known < len(unreliable); {
		known = len(unreliable)
		repetitions{limiter: l, groups: groups, unreliable: unreliable}.count(routes)
		l.allocate(l.instructions(), routes, nil)
		l.allocate(l.rules(), routes, nil) // no rule answers 404
		if known == 0 {
			l.readmit(routes, nil) // later, the repetitions of the refused routes are not known
		}
		l.limitHostnames(groups) // other routes may have been refused or have returned
		for _, route := range routes {
			if route.refused != nil {
				unreliable[l.tenants.of(route.Namespace)] = true
			}
		}
	}
}

// allocate divides a resource among the routes that are not refused yet, and refuses the routes
// that get no share. It returns the excess of the fixed amounts.
func (l *limiter) allocate(r resource, routes []*Route, fixed map[limits.Tenant]int) map[limits.Tenant]int {
	if !slices.ContainsFunc(routes, func(route *Route) bool { return r.amount(route) > 0 }) && len(fixed) == 0 {
		return nil
	}
	demands := make([]limits.Demand, len(routes))
	for i, route := range routes {
		if route.refused == nil {
			demands[i] = limits.Demand{Tenant: l.tenants.of(route.Namespace), Amount: r.amount(route)}
		}
	}
	allocation := r.Allocate(fixed, demands)
	for i, verdict := range allocation.Verdicts {
		if verdict != limits.Admitted {
			routes[i].refused = r.problem(l, routes[i], demands[i].Amount, verdict)
		}
	}
	return allocation.Excess
}

// readmit admits routes that were refused because of their expressions and that fit
// since other routes were refused because of their rules. The older routes come first.
func (l *limiter) readmit(routes []*Route, notFound map[limits.Tenant]int) {
	if !slices.ContainsFunc(routes, (*Route).mayReturn) {
		return
	}
	instructions, rules := newRemainder(l.instructions(), nil), newRemainder(l.rules(), notFound)
	take := func(route *Route) {
		tenant := l.tenants.of(route.Namespace)
		instructions.take(tenant, route)
		rules.take(tenant, route)
	}
	for _, route := range routes {
		if route.refused == nil {
			take(route)
		}
	}
	for _, route := range routes {
		tenant := l.tenants.of(route.Namespace)
		if route.mayReturn() && instructions.fits(tenant, route) && rules.fits(tenant, route) {
			route.refused = nil
			take(route)
		}
	}
}

// mayReturn reports whether the route was refused because of its expressions or rules.
func (r *Route) mayReturn() bool {
	return r.refused != nil && r.refused != r.tooLong && !r.aboveHostname && r.instructions() > 0
}

// remainder is the rest of a resource that is still available.
type remainder struct {
	resource
	used  map[limits.Tenant]int
	total int
}

func newRemainder(r resource, fixed map[limits.Tenant]int) remainder {
	left := remainder{resource: r, used: map[limits.Tenant]int{}}
	for tenant, amount := range fixed {
		left.used[tenant] += amount
		left.total += amount
	}
	return left
}

func (r *remainder) take(tenant limits.Tenant, route *Route) {
	amount := r.amount(route)
	r.used[tenant] += amount
	r.total += amount
}

func (r *remainder) fits(tenant limits.Tenant, route *Route) bool {
	amount := r.amount(route)
	return r.total+amount <= r.Total && r.used[tenant]+amount <= r.Maximum(tenant)
}

// countHostnames counts, for each route, the hostnames for which the groups serve it,
// including the narrower hostnames with separate Access.
func countHostnames(routes []*Route, groups map[string]*group) {
	for _, route := range routes {
		route.hostnameCount, route.repeated, route.refused, route.aboveHostname = 0, 0, route.tooLong, false
	}
	for _, g := range groups {
		separate := separateCounter{g.separate, map[string]int{}}
		for _, route := range g.routes {
			for hostname := range g.servedHostnames(route, groups) {
				route.hostnameCount += 1 + separate.below(hostname.served)
			}
		}
	}
}

// separateCounter counts the hostnames with separate Access for which the entries for
// wider hostnames are repeated.
type separateCounter struct {
	hostnames []string
	byWider   map[string]int
}

// below returns the number of hostnames below the hostname of an entry.
func (c separateCounter) below(wide string) int {
	if len(c.hostnames) == 0 {
		return 0 // most groups
	}
	count, known := c.byWider[wide]
	if known {
		return count
	}
	for _, hostname := range c.hostnames {
		if hostname != wide && routing.Covers(wide, hostname) {
			count++
		}
	}
	c.byWider[wide] = count
	return count
}

// rules returns the number of rules of the route, before rules that no request can reach
// are left out. It is a product, so that many rules are not built to be counted. A route has
// at least as many rules as backends.
func (r *Route) rules() int {
	if r.hostnameCount == 0 {
		return r.repeated
	}
	return max(r.hostnameCount*r.cost(), r.backends) + r.repeated
}

// instructions returns the size of the expressions in all rules of the route.
func (r *Route) instructions() int {
	size := 0
	for i := range r.matches {
		size += r.matches[i].instructions
	}
	return r.hostnameCount * size
}
