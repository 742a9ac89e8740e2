package xds

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// isSendingClusters reports whether new clusters are on their way.
func (s *session) isSendingClusters() bool {
	return slices.ContainsFunc(s.types[clusters].outstanding, func(r *response) bool { return len(r.added) > 0 || len(r.removed) == 0 })
}

// refusesClusters reports whether the client has rejected clusters in the target.
func (s *session) refusesClusters() bool {
	all := s.target.byKind[clusters]
	for name, version := range s.types[clusters].refused {
		if r := all.get(name); r != nil && r.Version == version {
			return true
		}
	}
	return false
}

// isSending reports whether resources other than endpoints are on their way.
func (s *session) isSending() bool {
	for k := range s.types {
		if kind(k) != endpoints && len(s.types[k].outstanding) > 0 {
			return true
		}
	}
	return false
}

// isSettled reports whether the client uses only the target's routes and scopes.
func (s *session) isSettled() bool {
	if !s.target.isComplete() {
		return false
	}
	if s.target.usesScopes() && !s.types[scopes].isStarted {
		return s.hasWhole(envoy.ListenerOpen) && s.hasWhole(envoy.ListenerProtected)
	}
	sub := &s.types[routes]
	for _, r := range s.target.byKind[routes].each() {
		if !sub.has(r) {
			return false
		}
	}
	return !s.target.usesScopes() || s.types[scopes].hasAll(s.target.byKind[scopes])
}

// isIncomplete reports whether the client has not acknowledged some cluster or listener
// in the target, or endpoints, secrets or limits to which it subscribes.
func (s *session) isIncomplete() bool {
	if s.isSendingClusters() || s.refusesClusters() || s.lacksListeners() || s.lacksSecrets() || s.lacksLimits() {
		return true
	}
	for name := range s.pending {
		if s.types[endpoints].wants(name) {
			return true
		}
	}
	return false
}

// lacksListeners reports whether the client subscribes to listeners and has not
// acknowledged some listener in the target.
func (s *session) lacksListeners() bool {
	sub := &s.types[listeners]
	if !sub.isStarted {
		return false
	}
	for _, r := range s.target.byKind[listeners].each() {
		if !sub.has(r) {
			return true
		}
	}
	return false
}
