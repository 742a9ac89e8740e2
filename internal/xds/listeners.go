package xds

import (
	"maps"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Listeners depend on the controller version and the settings in the GatewayClass, not
// on tenants. If an Envoy rejects a listener, for example because it cannot bind the
// port, it keeps the previous one, and the other Envoys get the new one.
//
// An Envoy whose bootstrap comes from an earlier version subscribes to no listeners,
// because its bootstrap contains them. It gets everything else.

// listenersAndRoutes sends the changed listeners for requests, and then the routes. The
// routes wait until the listeners are acknowledged, because they can rely on a listener
// change.
func (s *session) listenersAndRoutes(now time.Time) step {
	if next := s.one(listeners, s.listenersForRequests()); next.response != nil {
		s.holdRoutes(now)
		return next
	}
	if remaining := s.deadline.Sub(now); remaining > 0 && len(s.types[listeners].outstanding) > 0 {
		return step{wait: remaining, isHeld: true}
	}
	return s.routes()
}

// lastListeners sends the listener for probes when the client has acknowledged the
// listeners for requests and their routes, so that its port means that Envoy serves. It
// then removes listeners that no longer exist.
func (s *session) lastListeners() step {
	sub, all := &s.types[listeners], s.target.byKind[listeners]
	for _, r := range s.listenersForRequests() {
		if !sub.has(r) {
			return step{}
		}
	}
	if next := s.one(listeners, all); next.response != nil {
		return next
	}
	if removed := sub.heldBeyond(all); len(removed) > 0 {
		return step{kind: listeners, response: &response{removed: removed}}
	}
	return step{}
}

// listenersForRequests returns the target's listeners without the listener for probes.
func (s *session) listenersForRequests() resources {
	all := maps.Clone(s.target.byKind[listeners])
	delete(all, envoy.ListenerReady)
	return all
}
