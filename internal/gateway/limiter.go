package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// limiter applies the limits of the GatewayClass to the tenants of one Gateway.
type limiter struct {
	settings.Limits
	tenants
	// first is the tenant of the Gateway's namespace.
	first limits.Tenant
	// excluded has the listeners whose 404 rules exceed a limit, which is known only
	// after the conflicts are resolved.
	excluded map[listenerName]bool
	usage    map[limits.Tenant]*TenantUsage
}

// newLimiter returns nil for settings that are not valid: the limits are then unknown,
// and the data plane keeps its last configuration.
func newLimiter(s *Snapshot, merged *settings.Settings) *limiter {
	if merged == nil {
		return nil
	}
	l := &limiter{Limits: merged.Limits(), excluded: map[listenerName]bool{}}
	l.tenants = tenants{label: l.TenantLabel, namespaces: s.Namespaces}
	l.first = l.tenants.of(s.Gateway.Namespace)
	return l
}

// limitRoutes refuses the routes that exceed a limit on expressions or rules, each as a
// whole: otherwise, the requests of a refused match could reach a wider rule of the same
// route. It reports whether it has refused any, and returns the number of 404 rules by
// which a tenant exceeds its limit without any route. The routes are in order of
// precedence.
func (r *limiter) limitRoutes(routes []*Route, groups map[string]*group) (refused bool, excess map[limits.Tenant]int) {
	countHostnames(routes, groups)
	expressions := limits.Limit{Total: maxExpressionsPerTable, PerTenant: maxExpressionsPerTenant, First: r.first}
	if slices.ContainsFunc(routes, func(route *Route) bool { return route.instructions() > 0 }) {
		r.allocate(expressions, routes, nil, (*Route).instructions, r.expressionProblem)
	}
	rules, notFound := limits.Limit{Total: r.RulesPerTunnel, PerTenant: r.RulesPerNamespace, First: r.first}, r.notFoundRules(groups)
	excess = r.allocate(rules, routes, notFound, (*Route).rules, r.ruleProblem)
	for tenant, count := range notFound {
		r.usageOfTenant(tenant).Rules += count
	}
	for _, route := range routes {
		usage := r.usageOf(route.Namespace)
		if route.refused != nil {
			usage.RefusedRoutes++
			refused = true
			continue
		}
		usage.Rules += route.rules()
		usage.Instructions += route.instructions()
	}
	return refused, excess
}

// allocate divides one resource among the routes and refuses the routes that get none.
// It returns the excess of the fixed amounts.
func (r *limiter) allocate(limit limits.Limit, routes []*Route, fixed map[limits.Tenant]int, amount func(*Route) int,
	problem func(*Route, int, limits.Verdict) *Problem,
) map[limits.Tenant]int {
	demands := make([]limits.Demand, len(routes))
	for i, route := range routes {
		if route.refused == nil {
			demands[i] = limits.Demand{Tenant: r.tenants.of(route.Namespace), Amount: amount(route)}
		}
	}
	allocation := limit.Allocate(fixed, demands)
	for i, verdict := range allocation.Verdicts {
		if verdict != limits.Admitted {
			routes[i].refuse(problem(routes[i], demands[i].Amount, verdict))
		}
	}
	return allocation.Excess
}

// refuse rejects the route at every parent where a listener admits it.
func (r *Route) refuse(problem *Problem) {
	r.refused = problem
	for i := range r.Parents {
		if len(r.Parents[i].Listeners) > 0 {
			r.Parents[i].Rejected = problem
		}
	}
}

func (r *limiter) expressionProblem(route *Route, amount int, verdict limits.Verdict) *Problem {
	if verdict == limits.AboveTenantLimit {
		return routeProblem(ReasonLimitExceeded,
			"The regular expressions in the ingress rules of the route have %d instructions, more than the limit leaves for them: it is %d for %s on this Gateway. Use fewer or shorter expressions.",
			amount, maxExpressionsPerTenant, r.tenants.describe(route.Namespace))
	}
	return routeProblem(ReasonLimitExceeded,
		"The regular expressions in the ingress rules of the route have %d instructions, more than the limit leaves for them: it is %d for all namespaces of this Gateway together. Use fewer or shorter expressions.",
		amount, maxExpressionsPerTable)
}

func (r *limiter) ruleProblem(route *Route, amount int, verdict limits.Verdict) *Problem {
	if verdict == limits.AboveTenantLimit {
		return routeProblem(ReasonLimitExceeded,
			"The route needs %s, more than limits.rulesPerNamespace of the GatewayClass leaves for it: the limit is %d for %s on this Gateway. Use fewer hostnames and matches, or ask the platform team to raise the limit.",
			countRules(amount), r.RulesPerNamespace, r.tenants.describe(route.Namespace))
	}
	return routeProblem(ReasonLimitExceeded,
		"The route needs %s, more than limits.rulesPerTunnel of the GatewayClass leaves for it: the limit is %d for all namespaces of this Gateway together. Use fewer hostnames and matches, or ask the platform team to raise the limit.",
		countRules(amount), r.RulesPerTunnel)
}

func countRules(n int) string {
	if n == 1 {
		return "1 ingress rule"
	}
	return fmt.Sprintf("%d ingress rules", n)
}

// countHostnames counts, for each route, the hostnames for which the groups serve it,
// including the narrower hostnames with separate Access, and the 404 rules of each group.
func countHostnames(routes []*Route, groups map[string]*group) {
	for _, route := range routes {
		route.hostnameCount, route.refused = 0, nil
	}
	for _, g := range groups {
		separate := newSeparateCounter(g.separate)
		for _, route := range g.routes {
			for hostname := range g.servedHostnames(route, groups) {
				route.hostnameCount += 1 + separate.below(hostname.served)
			}
		}
		if g.notFound = separate.total(); g.isBelowWider(groups) {
			g.notFound++
		}
	}
}

// separateCounter counts the hostnames with separate Access for which the entries for
// wider hostnames are repeated.
type separateCounter struct {
	hostnames []string
	byWider   map[string]int
	repeated  map[string]bool
}

func newSeparateCounter(hostnames []string) separateCounter {
	return separateCounter{hostnames, map[string]int{}, map[string]bool{}}
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
			c.repeated[hostname] = true
			count++
		}
	}
	c.byWider[wide] = count
	return count
}

// total returns the number of hostnames below any of the entries. Each has a 404 rule.
func (c separateCounter) total() int { return len(c.repeated) }

// rules returns the number of rules of the route, before rules that no request can reach
// are left out. It does not depend on the data plane's ability to leave them out, and
// costs nothing even when the product is large.
func (r *Route) rules() int { return r.hostnameCount * len(r.matches) }

// instructions returns the size of the expressions in all rules of the route.
func (r *Route) instructions() int {
	size := 0
	for i := range r.matches {
		size += r.matches[i].instructions
	}
	return r.hostnameCount * size
}

// notFoundRules counts the rules that answer the other requests for a hostname with the
// status 404. Each counts for the namespace of its listener.
func (r *limiter) notFoundRules(groups map[string]*group) map[limits.Tenant]int {
	count := map[limits.Tenant]int{}
	for _, g := range groups {
		if g.notFound > 0 {
			count[r.tenants.of(g.namespace)] += g.notFound
		}
	}
	return count
}
