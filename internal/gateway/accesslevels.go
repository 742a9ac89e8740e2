package gateway

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// accessLevels are the levels that can require Access: the entries of the GatewayClass, the
// entries of the Gateway, both by hostname, and the AccessPolicies.
type accessLevels struct {
	class, gateway map[string]*v1alpha1.Access
	policies       *accessPolicies
}

func newAccessLevels(s *settings.Settings, policies *accessPolicies) accessLevels {
	return accessLevels{class: settings.Access(s.Listeners.Class), gateway: settings.Access(s.Listeners.Gateway), policies: policies}
}

// accessDecision is what decides about the access to one hostname. The zero value requires
// nothing.
type accessDecision struct {
	level access.Level
	// block is the access block of the entry that decides, and entry its hostname. block is
	// nil unless an entry decides.
	block *v1alpha1.Access
	entry string
	// policy is the AccessPolicy that decides, or nil. invalid is why it closes the
	// hostname, or nil.
	policy  *accessPolicy
	invalid *Problem
}

// isManaged reports whether the hostname needs an application that the controller manages.
func (d accessDecision) isManaged() bool {
	return d.policy != nil || d.block != nil && len(d.block.Policies) > 0
}

// isByHand reports whether the hostname requires tokens of an application that the
// controller does not manage.
func (d accessDecision) isByHand() bool { return d.block != nil && len(d.block.Policies) == 0 }

// decide returns the decision of the first level whose most specific entry requires access.
// g is the group whose listeners claim the hostname, or nil. A lower level never weakens a
// higher one.
func (l accessLevels) decide(hostname string, g *group) accessDecision {
	if entry, block := required(l.class, hostname); block != nil {
		return accessDecision{level: access.LevelClass, block: block, entry: entry}
	}
	if entry, block := required(l.gateway, hostname); block != nil {
		return accessDecision{level: access.LevelGateway, block: block, entry: entry}
	}
	if g == nil {
		return accessDecision{}
	}
	decided := l.policies.of(g)
	if decided.policy == nil {
		return accessDecision{}
	}
	return accessDecision{level: access.LevelPolicy, policy: decided.policy, invalid: decided.invalid}
}

// exempts reports whether an entry with required: false decides about a hostname that no
// level protects.
func (l accessLevels) exempts(hostname string) bool {
	for _, level := range []map[string]*v1alpha1.Access{l.class, l.gateway} {
		if _, ok := routing.MostSpecific(level, hostname); ok {
			return true
		}
	}
	return false
}

// required returns the entry that requires access for the hostname on a level, with its
// hostname. The most specific entry decides.
func required(level map[string]*v1alpha1.Access, hostname string) (string, *v1alpha1.Access) {
	if len(level) == 0 {
		return "", nil // most Gateways
	}
	decisive, ok := routing.MostSpecific(level, hostname)
	if !ok || !level[decisive].Required {
		return "", nil
	}
	return decisive, level[decisive]
}
