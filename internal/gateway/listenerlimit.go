package gateway

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// limitListeners rejects the ListenerSet entries above limits.listenersPerNamespace: the
// last entries in a tenant's youngest ListenerSets. A rejected entry claims nothing. The
// sets are in order of precedence.
func (l *limiter) limitListeners(sets []*Set) {
	used := map[limits.Tenant]int{}
	for _, set := range sets {
		tenant := l.tenants.of(set.Owner.Namespace)
		for _, entry := range set.Listeners {
			if entry.Rejected != nil || hostnames.Problem(entry.Hostname()) != "" {
				continue // its hostname is not permitted or not supported
			}
			if used[tenant] >= l.class.ListenersPerNamespace {
				entry.Rejected = l.listenerProblem(set.Owner.Namespace)
				continue
			}
			used[tenant]++
		}
	}
}

// hostnameProblem returns why a listener must not claim its hostname, or nil when it may.
// It must be called for each listener in order of precedence. The Gateway's own listeners
// always may.
func (l *limiter) hostnameProblem(listener *Listener) *Problem {
	if l == nil || l.notFound == nil {
		return nil
	}
	tenant := l.tenants.of(listener.Owner.Namespace)
	if listener.Owner.Kind == KindListenerSet && !l.notFound.permits(tenant, listener.Hostname()) {
		return l.notFoundProblem(listener.Owner.Namespace, l.notFound.rules[listener.Hostname()])
	}
	l.notFound.claim(tenant, listener.Hostname())
	return nil
}
