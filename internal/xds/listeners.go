package xds

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Listeners depend on the controller version and the settings in the GatewayClass, not
// on tenants. If an Envoy rejects a listener, for example because it cannot bind the
// port, it keeps the previous one, and the other Envoys get the new one.
//
// An Envoy whose bootstrap comes from an earlier version subscribes to no listeners,
// because its bootstrap contains them. It gets everything else.
//
// Listeners share their scopes. The first listener with scopes takes effect when Envoy has
// the scopes and their routes, but another listener takes effect at once. Therefore the
// others follow when the client has all routes. An Envoy that went back to an earlier
// version for a while still has the scopes and routes from before, so that its listeners
// follow, too.

// listenersAndRoutes sends the changed listeners for requests, and then the routes. The
// routes wait until the listeners are acknowledged, because they can rely on a listener
// change.
func (s *session) listenersAndRoutes(now time.Time) step {
	if s.isNew || s.hasFormerListeners() {
		if next := s.routesAndScopes(); next.response != nil || !s.isSettled() {
			return next
		}
		s.isNew = false
	}
	isSending := len(s.types[listeners].outstanding) > 0
	// Its acknowledgement shows whether the client uses scopes.
	isFirst := s.target.usesScopes() && !s.types[scopes].isStarted
	if next := s.listenerForRequests(); next.response != nil && (!isFirst || !isSending) {
		s.holdRoutes(now)
		return next
	}
	if remaining := s.deadline.Sub(now); remaining > 0 && isSending {
		return step{wait: remaining, isHeld: true}
	}
	return s.routesAndScopes()
}

// hasFormerListeners reports whether the client has both scopes and listeners without.
func (s *session) hasFormerListeners() bool {
	if !s.types[scopes].isStarted || !s.target.usesScopes() {
		return false
	}
	hasScopes := s.types[scopes].hasAll(s.target.byKind[scopes])
	return slices.ContainsFunc(listenerNames, func(name string) bool {
		return s.types[routes].wants(name) && (!hasScopes || !s.target.byKind[routes].has(name))
	})
}

// listenerForRequests sends a listener that is not the listener for probes.
func (s *session) listenerForRequests() step {
	for _, r := range s.types[listeners].missing(s.target.byKind[listeners]) {
		if r.Name != envoy.ListenerReady {
			return step{kind: listeners, response: &response{added: []*resource{r}}}
		}
	}
	return step{}
}

// lastListeners sends the listener for probes when the client has acknowledged the
// listeners for requests and their routes, so that its port means that Envoy serves. It
// then removes listeners that no longer exist.
func (s *session) lastListeners() step {
	sub, all := &s.types[listeners], s.target.byKind[listeners]
	for name, r := range all.each() {
		if name != envoy.ListenerReady && !sub.has(r) {
			return step{}
		}
	}
	if next := s.one(listeners); next.response != nil {
		return next
	}
	if removed := sub.heldBeyond(all); len(removed) > 0 {
		return step{kind: listeners, response: &response{removed: removed}}
	}
	return step{}
}
