package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// listenerName identifies a listener. Names are unique within an owner.
type listenerName struct {
	owner Owner
	name  string
}

func (l *Listener) name() listenerName { return listenerName{l.Owner, string(l.Spec.Name)} }

// limitListeners rejects the entries of ListenerSets above limits.listenersPerNamespace,
// which are the last entries of the youngest ListenerSets of a tenant, and the excluded
// entries. A rejected entry claims nothing. The sets are in order of precedence.
func (r *limiter) limitListeners(sets []*Set) {
	if r == nil {
		return
	}
	r.usage = map[limits.Tenant]*TenantUsage{}
	for _, set := range sets {
		if set.NotAllowed != nil {
			continue
		}
		usage := r.usageOf(set.Owner.Namespace)
		for _, l := range set.Listeners {
			switch {
			case usage.Listeners == r.ListenersPerNamespace:
				l.Rejected = r.listenerProblem(set)
			case r.excluded[l.name()]:
				usage.Listeners++
				l.Rejected = r.exclusionProblem(set)
			default:
				usage.Listeners++
				continue
			}
			usage.RefusedListeners++
		}
	}
}

func (r *limiter) listenerProblem(set *Set) *Problem {
	return &Problem{Reason: ReasonLimitExceeded, Message: fmt.Sprintf(
		"The listener is above limits.listenersPerNamespace of the GatewayClass, which is %d for the ListenerSets of %s on this Gateway. Remove listeners, or ask the platform team to raise the limit.",
		r.ListenersPerNamespace, r.tenants.describe(set.Owner.Namespace))}
}

// exclusionProblem is the problem of an entry whose 404 rule exceeds a limit on rules.
func (r *limiter) exclusionProblem(set *Set) *Problem {
	limit := fmt.Sprintf("limits.rulesPerTunnel of the GatewayClass is %d", r.RulesPerTunnel)
	if r.RulesPerNamespace > 0 {
		limit += fmt.Sprintf(", and limits.rulesPerNamespace is %d", r.RulesPerNamespace)
	}
	return &Problem{Reason: ReasonLimitExceeded, Message: fmt.Sprintf(
		"The hostname of the listener needs an ingress rule of its own, and no rule is left for %s on this Gateway: %s. Remove listeners, or ask the platform team to raise the limit.",
		r.tenants.describe(set.Owner.Namespace), limit)}
}

// excludeListeners excludes the last entries of the youngest ListenerSets of each tenant
// whose 404 rules alone exceed its limit, and reports whether it has excluded any. excess
// is the number of 404 rules above the limit. The 404 rules of a group go with the last
// listener of its hostname.
func (r *limiter) excludeListeners(sets []*Set, groups map[string]*group, excess map[limits.Tenant]int) bool {
	excluded := false
	for _, set := range slices.Backward(sets) {
		tenant := r.tenants.of(set.Owner.Namespace)
		for _, l := range slices.Backward(set.Listeners) {
			if excess[tenant] == 0 {
				break
			}
			g := groups[l.Hostname()]
			if !l.claims || g.notFound == 0 {
				continue
			}
			r.excluded[l.name()], excluded = true, true
			if g.listeners--; g.listeners == 0 {
				excess[tenant] = max(0, excess[tenant]-g.notFound)
			}
		}
	}
	return excluded
}
