package gateway

import (
	"math"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// limiter applies the GatewayClass limits to one Gateway's tenants.
type limiter struct {
	class   settings.Limits
	tenants tenants
	// first is the tenant that the Gateway's namespace belongs to.
	first limits.Tenant
	// unlimited reports whether the GatewayClass limits are unknown.
	unlimited bool
	// repeats reports whether the data plane repeats entries for each hostname, and answers
	// with the status 404 without a rule.
	repeats bool
	// knowsScheme reports whether the data plane knows the scheme of each request.
	knowsScheme bool
	access      routing.Access
	// notFound limits the rules that return 404. It is nil until the rules for all
	// tenants are known to exceed a limit.
	notFound *notFoundBudget
}

// newLimiter returns the limiter for the Gateway. While the GatewayClass settings are not
// valid, only the limits apply that do not depend on the GatewayClass.
func newLimiter(s *Snapshot, in settings.Input, plane v1alpha1.DataPlane) *limiter {
	class, ok := settings.ClassLimits(in, plane)
	if !ok {
		class = settings.Limits{RulesPerTunnel: math.MaxInt, RoutesPerHostname: math.MaxInt, ListenersPerNamespace: math.MaxInt}
	}
	l := &limiter{class: class, unlimited: !ok, tenants: tenants{label: class.TenantLabel, namespaces: s.Namespaces}}
	l.first = l.tenants.of(s.Gateway.Namespace)
	return l
}

// resource is a limited resource that a Gateway's routes share.
type resource struct {
	limits.Limit
	// amount returns how much a route needs.
	amount func(*share) int
	// problem returns the problem for a route that gets no share.
	problem func(l *limiter, route *Route, amount int, v limits.Verdict) *Problem
}

func (l *limiter) instructions() resource {
	return resource{limits.Limit{Total: maxInstructionsPerTable, PerTenant: maxInstructionsPerTenant, First: l.first},
		(*share).instructions, (*limiter).instructionsProblem}
}

func (l *limiter) rules() resource {
	return resource{limits.Limit{Total: l.class.RulesPerTunnel, PerTenant: l.class.RulesPerNamespace, First: l.first},
		(*share).rules, (*limiter).rulesProblem}
}

// limitExpressions selects the routes whose regular expressions are translated. It
// refuses routes whose expressions are too long together, before they are parsed. A route
// that no listener can admit does not count, so that a namespace that the Gateway does
// not admit cannot affect others. The routes are in order of precedence.
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
	limit := limits.Limit{Total: maxExpressionsLengthPerTable, PerTenant: maxExpressionsLengthPerTenant, First: l.first}
	for i, verdict := range limit.Allocate(nil, demands).Verdicts {
		if verdict != limits.Admitted {
			routes[i].skipsExpressions = true
			routes[i].tooLong = l.expressionsLengthProblem(routes[i], demands[i].Amount, verdict)
		}
	}
}

// divide divides the Gateway's limited resources among the routes, which are in order of
// rank. It returns their shares, and by how many 404 rules each tenant exceeds its limit
// without any route.
//
// It refuses a route that exceeds a limit as a whole: otherwise, the requests of a
// refused match could reach a wider rule in the same route.
func (l *limiter) divide(routes []*Route, groups map[string]*group) (all shares, excess map[limits.Tenant]int) {
	all = l.newShares(routes)
	all.countHostnames(groups)
	if l.repeats {
		l.countBorrowed(all, groups)
		l.confine(all, groups, l.limitRepeated(all, groups))
		return all, nil
	}
	l.countNotFound(groups)
	notFound := l.notFoundRules(groups)
	l.allocate(l.instructions(), all, nil)
	excess = l.allocate(l.rules(), all, notFound)
	l.readmit(all, notFound)
	return all, excess
}

// limitRepeated limits the routes for a data plane that repeats rules. A refused match
// for every request no longer shadows the rules for wider hostnames. Therefore, it counts
// them again without such matches from tenants that have refused routes. A tenant below
// its share has no refused routes, so its rules count as before. It returns whether a route is
// refused; otherwise, the last count is exact.
func (l *limiter) limitRepeated(all shares, groups map[string]*group) (refusesAny bool) {
	l.limitHostnames(all, groups) // first, so that the rules of these routes are left to others
	unsettled := map[limits.Tenant]bool{}
	for known := -1; known < len(unsettled); {
		known = len(unsettled)
		repetitions{limiter: l, shares: all, groups: groups, unsettled: unsettled}.count()
		l.allocate(l.instructions(), all, nil)
		l.allocate(l.rules(), all, nil) // no rule returns 404
		if known == 0 {
			l.readmit(all, nil) // later, it is not known how often the refused routes are repeated
		}
		l.limitHostnames(all, groups) // other routes may have been refused or have returned
		for i := range all {
			if all[i].isRefused() {
				unsettled[all[i].tenant] = true
			}
		}
	}
	return len(unsettled) > 0
}

// allocate divides a resource among the routes that are not refused yet, and refuses the
// routes that get no share. It returns by how much fixed amounts exceed the limits.
func (l *limiter) allocate(r resource, all shares, fixed map[limits.Tenant]int) map[limits.Tenant]int {
	if len(fixed) == 0 && !all.contains(func(s *share) bool { return r.amount(s) > 0 }) {
		return nil
	}
	demands := make([]limits.Demand, len(all))
	for i := range all {
		if !all[i].isRefused() {
			demands[i] = limits.Demand{Tenant: all[i].tenant, Amount: r.amount(&all[i])}
		}
	}
	allocation := r.Allocate(fixed, demands)
	for i, verdict := range allocation.Verdicts {
		if verdict != limits.Admitted {
			all[i].refused = r.problem(l, all[i].route, demands[i].Amount, verdict)
		}
	}
	return allocation.Excess
}

// readmit admits routes that were refused because of their expressions and that fit since
// other routes were refused because of their rules. The older routes come first.
func (l *limiter) readmit(all shares, notFound map[limits.Tenant]int) {
	if !all.contains((*share).mayReturn) {
		return
	}
	instructions, rules := newRemainder(l.instructions(), nil), newRemainder(l.rules(), notFound)
	take := func(s *share) {
		instructions.take(s)
		rules.take(s)
	}
	for i := range all {
		if s := &all[i]; !s.isRefused() {
			take(s)
		}
	}
	for i := range all {
		if s := &all[i]; s.mayReturn() && instructions.fits(s) && rules.fits(s) {
			s.refused = nil
			take(s)
		}
	}
}

// remainder is how much of a resource is still available.
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

func (r *remainder) take(s *share) {
	amount := r.amount(s)
	r.used[s.tenant] += amount
	r.total += amount
}

func (r *remainder) fits(s *share) bool {
	amount := r.amount(s)
	return r.total+amount <= r.Total && r.used[s.tenant]+amount <= r.Maximum(s.tenant)
}
