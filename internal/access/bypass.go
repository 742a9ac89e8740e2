package access

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// indexBypasses adds a claim for each hostname that needs an application that lets every
// request pass: no demand reaches it, but the login of a wildcard would.
func (s *situation) indexBypasses() {
	var bypasses []*claim
	for _, p := range s.parties {
		for i := range p.Hostnames {
			if c := s.bypass(p, &p.Hostnames[i]); c != nil {
				bypasses = append(bypasses, c)
			}
		}
	}
	for _, c := range bypasses {
		s.claims[c.demand.Hostname] = append(s.claims[c.demand.Hostname], c)
	}
	for _, c := range bypasses {
		slices.SortStableFunc(s.claims[c.demand.Hostname], comparePrecedence)
	}
}

// bypass returns the claim for the hostname, or nil if it needs no bypass.
func (s *situation) bypass(p *party, h *Hostname) *claim {
	wildcard := parentWildcard(h.Name)
	if wildcard == "" || !s.isExcepted(p, h, wildcard) || s.isReached(h.Name) {
		return nil
	}
	c := &claim{
		party: p, bypass: true, claimant: h.Namespace, decider: deciderOf(s.Identity, "bypass/"+h.Namespace),
		demand: Demand{Hostname: h.Name, Level: levelBypass, Owner: h.Namespace, Namespace: h.Namespace, Created: h.Created, Permitted: h.Permitted, NamedByClass: h.NamedByClass},
		spec:   provider.ApplicationSpec{Hostname: h.Name, Bypass: true, SessionDuration: settings.DefaultSessionDuration},
	}
	switch {
	case !h.Permitted || p.class != nil && !p.class.Settings.RequiresPermission:
		c.problem = &settings.Problem{Reason: conditions.ReasonHostnameNotPermitted, Message: notPermitted(p, h.Namespace)}
		c.ends = true
	case s.covering(c) != nil:
		c.ends = true // the external application decides, also if it is younger
		c.problem = &settings.Problem{Reason: conditions.ReasonApplicationExists, Message: externalMessage(s.covering(c), h.Name)}
	case !s.GatewaysKnown && !s.immediate:
		c.unready = "the controller creates the exception from the login of " + wildcard + " when it has processed all Gateways."
	case s.undecided[h.Name]:
		c.unready = "the controller creates the exception from the login of " + wildcard + " when it can read all AccessPolicies."
	}
	return c
}

// isExcepted reports whether the demand for the wildcard leaves the hostname out on every
// Gateway. After the demand has gone, an existing bypass stays as long as the wildcard's
// application.
func (s *situation) isExcepted(p *party, h *Hostname, wildcard string) bool {
	decides, exists := s.winner(wildcard), s.remote != nil && len(s.remote.byDomain[wildcard]) > 0
	if decides == nil && exists {
		decides = s.firstLive(wildcard)
	}
	if decides == nil {
		return exists && s.remote.hasBypass(h.Name)
	}
	if !decides.excepts(p, h) {
		return false
	}
	for _, c := range s.claims[wildcard] {
		if other := c.hostnames[h.Name]; c.isLive() && other != nil && !decides.excepts(c.party, other) {
			return false // the demand reaches the hostname on that Gateway
		}
	}
	return true
}

// firstLive returns the first claim to the hostname that keeps an application, or nil.
func (s *situation) firstLive(name string) *claim {
	for _, c := range s.claims[name] {
		if c.isLive() {
			return c
		}
	}
	return nil
}

// excepts reports whether the demand for a wildcard leaves out the hostname, which has no
// demand of its own.
func (c *claim) excepts(p *party, h *Hostname) bool {
	switch {
	case h.Exempt:
		return true
	case c.demand.Level == LevelPolicy:
		return h.Namespace != c.demand.Namespace
	case c.demand.Level == LevelGateway:
		return p != c.party
	}
	return false
}

// isReached reports whether a demand reaches the hostname on a Gateway, an entry with audTags
// included, or an external application is for it. A demand without the permission does
// not: it must put no login in front of another namespace's hostname.
func (s *situation) isReached(name string) bool {
	return slices.ContainsFunc(s.claims[name], (*claim).isLive) || s.byHand[name] || s.hasExternal(name)
}
