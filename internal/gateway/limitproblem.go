package gateway

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// The problems with routes and listeners above a limit. They state only limits and the
// object's own amounts: an amount that other objects can change would rewrite the status
// of every refused object at each change.

func (l *limiter) expressionsLengthProblem(route *Route, amount int, v limits.Verdict) *Problem {
	return l.shared(route, v, fmt.Sprintf("The route's regular expressions have a total length of %d", amount),
		maxExpressionsLengthPerTenant, maxExpressionsLengthPerTable, "Use fewer or shorter expressions.")
}

func (l *limiter) instructionsProblem(route *Route, amount int, v limits.Verdict) *Problem {
	return l.shared(route, v, fmt.Sprintf("The regular expressions in the route's rules have %d instructions", amount),
		maxInstructionsPerTenant, maxInstructionsPerTable, "Use fewer or shorter expressions.")
}

// shared returns the problem with a route that exceeds a limit that is not a setting.
func (l *limiter) shared(route *Route, v limits.Verdict, subject string, perTenant, total int, remedy string) *Problem {
	limit := fmt.Sprintf("%d for all namespaces of this Gateway together", total)
	if v == limits.AboveTenantLimit {
		limit = fmt.Sprintf("%d for %s on this Gateway", perTenant, l.tenants.describe(route.Namespace))
	}
	return routeProblem(conditions.ReasonLimitExceeded, "%s, more than is left of the limit (%s). %s", subject, limit, remedy)
}

func (l *limiter) rulesProblem(route *Route, amount int, v limits.Verdict) *Problem {
	field, limit := limits.RulesPerTunnel, fmt.Sprintf("%d for all namespaces of this Gateway together", l.class.RulesPerTunnel)
	if v == limits.AboveTenantLimit {
		field, limit = limits.RulesPerNamespace, fmt.Sprintf("%d for %s on this Gateway", l.class.RulesPerNamespace, l.tenants.describe(route.Namespace))
	}
	remedy := "hostnames and matches"
	if route.cost() > len(route.matches) {
		remedy = "hostnames, matches and long values"
	}
	return routeProblem(conditions.ReasonLimitExceeded,
		"The route needs %s, more than is left of limits.%s of the GatewayClass (%s). Use fewer %s, or ask the platform team to raise the limit.",
		l.countRules(amount), field, limit, remedy)
}

// hostnameRoutesProblem is the problem with a route above limits.routesPerHostname.
func (l *limiter) hostnameRoutesProblem(hostname string, amount int) *Problem {
	return routeProblem(conditions.ReasonLimitExceeded,
		"The route needs %s for hostname %s, more than is left of limits.routesPerHostname of the GatewayClass (%d for all namespaces together). Use fewer matches, or ask the platform team to raise the limit.",
		l.countRules(amount), describeHostnameList([]string{hostname}, message.MaxSize/2), l.class.RoutesPerHostname)
}

// hostnameConfinedMessage describes where a route's rules are not served because of
// limits.routesPerHostname.
func hostnameConfinedMessage(limit int) string {
	return fmt.Sprintf("its wildcards do not apply to narrower hostnames that only other namespaces use, "+
		"because one of them would exceed limits.routesPerHostname of the GatewayClass (%d for all namespaces together)", limit)
}

// confinedMessage describes where the rules of a confined route are not served.
func confinedMessage(limit int) string {
	return fmt.Sprintf("its wildcards do not apply to narrower hostnames that only other namespaces use, "+
		"because its rules would be repeated for each of them, above the limit of %d repeated rules for all namespaces of this Gateway together", limit)
}

// countRules formats a number with the data plane's term for rules.
func (l *limiter) countRules(n int) string {
	noun := "ingress rule"
	if l.repeats {
		noun = "Envoy route"
	}
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listenerProblem is the problem with a listener above limits.listenersPerNamespace.
func (l *limiter) listenerProblem(namespace string) *Problem {
	return &Problem{Reason: conditions.ReasonLimitExceeded, Message: fmt.Sprintf(
		"The listener is above limits.listenersPerNamespace of the GatewayClass, which is %d for the ListenerSets of %s on this Gateway. Remove listeners, or ask the platform team to raise the limit.",
		l.class.ListenersPerNamespace, l.tenants.describe(namespace))}
}

// notFoundProblem is the problem with a listener whose hostname needs 404 rules above a
// limit.
func (l *limiter) notFoundProblem(namespace string, rules int) *Problem {
	limit := fmt.Sprintf("limits.rulesPerTunnel of the GatewayClass is %d", l.class.RulesPerTunnel)
	if l.class.RulesPerNamespace > 0 {
		limit += fmt.Sprintf(", and limits.rulesPerNamespace is %d", l.class.RulesPerNamespace)
	}
	return &Problem{Reason: conditions.ReasonLimitExceeded, Message: fmt.Sprintf(
		"The listener's hostname needs %s, more than is left for %s on this Gateway (%s). Remove listeners, or ask the platform team to raise the limit.",
		l.countRules(rules), l.tenants.describe(namespace), limit)}
}
