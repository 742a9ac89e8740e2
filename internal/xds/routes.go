package xds

import (
	"cmp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Envoy requests a RouteConfiguration when a scope names it, and a scope takes effect at
// once: until the RouteConfiguration has arrived, its requests get 404. Therefore each
// RouteConfiguration has a warming scope, to which no request belongs. It precedes the
// RouteConfiguration, which precedes the scopes that select it. So the number of
// RouteConfigurations changes without a lost request.
//
// An Envoy without any scope gets all of them at once: its listener takes effect when all
// their RouteConfigurations have arrived.

// routesAndScopes sends the changed RouteConfigurations and scopes.
func (s *session) routesAndScopes() step {
	if next := s.scopesBeforeRoutes(); next.response != nil {
		return next
	}
	if next := s.routes(); next.response != nil {
		s.hasSentRoutes = true
		return next
	}
	if next := s.scopesAfterRoutes(); next.response != nil {
		s.hasSentRoutes = true
		return next
	}
	return step{}
}

// routes sends the changed RouteConfigurations to which the client subscribes.
func (s *session) routes() step {
	if next := s.one(routes); next.response != nil {
		return next
	}
	if s.target.usesScopes() && !s.types[scopes].isStarted {
		if next := s.wholeRoutes(); next.response != nil {
			return next
		}
	}
	if !s.target.isComplete() {
		return step{}
	}
	absent := s.types[routes].absent(func(name string) bool {
		return s.target.byKind[routes].has(name) || s.target.wholeOf(name) != nil
	})
	if len(absent) > 0 {
		return step{kind: routes, response: &response{removed: absent}}
	}
	return step{}
}

// scopesBeforeRoutes sends the scopes that make the client subscribe to routes.
func (s *session) scopesBeforeRoutes() step {
	sub := &s.types[scopes]
	if !sub.isStarted || len(sub.outstanding) > 0 {
		return step{}
	}
	missing := sub.missing(s.target.byKind[scopes])
	if len(sub.held) == 0 {
		if !s.target.isComplete() {
			return step{}
		}
		return scopesStep(missing)
	}
	var warming []*resource
	for _, r := range missing {
		if envoy.IsWarmingScope(r.Name) {
			warming = append(warming, r)
		}
	}
	return scopesStep(warming)
}

// scopesAfterRoutes sends the scopes whose routes the client has acknowledged.
func (s *session) scopesAfterRoutes() step {
	sub := &s.types[scopes]
	if len(sub.held) == 0 || len(sub.outstanding)+len(s.types[routes].outstanding) > 0 {
		return step{}
	}
	var ready []*resource
	for _, r := range sub.missing(s.target.byKind[scopes]) {
		if selected := s.target.byKind[routes].get(selectedBy(r)); selected != nil && s.types[routes].has(selected) {
			ready = append(ready, r)
		}
	}
	return scopesStep(ready)
}

func scopesStep(added []*resource) step {
	if len(added) == 0 {
		return step{}
	}
	return step{kind: scopes, response: &response{added: added}}
}

// selectedBy returns the name of the RouteConfiguration that a scope selects.
func selectedBy(scope *resource) string {
	m := &routev3.ScopedRouteConfiguration{}
	if err := scope.Resource.UnmarshalTo(m); err != nil {
		return "" // it was encoded by this server
	}
	return m.RouteConfigurationName
}

// afterRoutes returns what follows the target's routes and scopes.
func (s *session) afterRoutes() step {
	isSettled := s.isSettled()
	if isSettled {
		if next := s.lastListeners(); next.response != nil {
			return next
		}
		if next := s.formerScopes(); next.response != nil {
			return next
		}
		if next := s.wholeRoutes(); next.response != nil {
			return next
		}
		isSettled = s.hasFormerRoutes()
	}
	next := s.removals(isSettled)
	next.isSettled = isSettled && !s.isIncomplete()
	return next
}

// formerScopes removes scopes that no longer exist. Envoy then unsubscribes from their
// routes.
func (s *session) formerScopes() step {
	sub := &s.types[scopes]
	if !sub.isStarted || !s.target.usesScopes() || len(sub.outstanding) > 0 {
		return step{}
	}
	if removed := sub.heldBeyond(s.target.byKind[scopes]); len(removed) > 0 {
		return step{kind: scopes, response: &response{removed: removed}}
	}
	return step{}
}

// listenerNames are the names by which clients without scopes request routes.
var listenerNames = []string{envoy.ListenerOpen, envoy.ListenerProtected}

// wholeRoutes sends the routes of a listener to a client that requests them in one
// RouteConfiguration although the target spreads them over several.
func (s *session) wholeRoutes() step {
	sub := &s.types[routes]
	if len(s.types[scopes].outstanding) > 0 {
		return step{} // Envoy can unsubscribe
	}
	for _, name := range listenerNames {
		if !sub.wants(name) {
			continue
		}
		if r := s.target.wholeOf(name); r != nil && sub.held[name] != r.Version && sub.refused[name] != r.Version {
			return step{kind: routes, response: &response{added: []*resource{r}}}
		}
	}
	return step{}
}

// hasWhole reports whether the client has acknowledged the routes of a listener in one
// RouteConfiguration.
func (s *session) hasWhole(listener string) bool {
	r := cmp.Or(s.target.byKind[routes].get(listener), s.target.wholeOf(listener))
	return r != nil && s.types[routes].has(r)
}

// hasFormerRoutes reports whether the client has acknowledged the routes for listeners that
// were replaced.
func (s *session) hasFormerRoutes() bool {
	if len(s.types[scopes].outstanding) > 0 {
		return false
	}
	for _, name := range listenerNames {
		if s.target.isComplete() && s.types[routes].wants(name) && !s.hasWhole(name) {
			return false
		}
	}
	return true
}
