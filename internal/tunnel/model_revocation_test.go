package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
)

// maxExposure is how long a revoked rule may wait for a token: the interval between
// revocations, and the pace at which changes are written.
const maxExposure = 6 * time.Second

// checkRevocation checks that only a desired configuration is written, for either data
// plane, or the last known one without its revoked rules. A write of the latter has a
// token.
func (m *model) checkRevocation(current *attempt) {
	s, d := current.step, current.facts.Desired
	isOther := d.Other != nil && s.Hash == d.Other.Hash
	if !s.Revokes {
		if s.Hash != d.Hash && !isOther {
			m.violate("a configuration is written that is not the desired one")
		}
		return
	}
	actor := &m.actors[current.actor]
	restricted, revokes := ingress.Restrict(current.facts.Memory.Remote.Configuration.Configuration, *d.Configuration)
	if !revokes || restricted.Hash() != s.Hash {
		m.violate("the revocation writes more than the restricted configuration")
	}
	if actor.revokedAt != 0 && m.now-(actor.revokedAt-1) < revokeLimit.Interval {
		m.violate("a revocation is written without a token")
	}
	actor.revokedAt = m.now + 1
}

// checkExposure checks that a revoked rule does not wait for a token that other changes
// need.
func (m *model) checkExposure(a int, f Facts, s Step) {
	actor := &m.actors[a]
	if !m.isExposed(a, f, s) {
		actor.exposedSince = 0
		return
	}
	if actor.exposedSince == 0 {
		actor.exposedSince = m.now + 1
	}
	if m.now-(actor.exposedSince-1) >= maxExposure {
		m.violate("a revocation waits longer than %s for a token", maxExposure)
	}
}

// isExposed reports whether an actor waits for a token while its tunnel has a revoked rule.
func (m *model) isExposed(a int, f Facts, s Step) bool {
	t := m.recordedTunnel(a)
	if t == nil || t.external || m.adminChanged || s.Problem == nil || s.Problem.Reason != conditions.ReasonConfigurationThrottled || !f.Memory.Remote.Configuration.Known {
		return false
	}
	_, revokes := ingress.Restrict(configurations[t.configuration], *f.Desired.Configuration)
	return revokes
}
