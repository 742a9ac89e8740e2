package access

import (
	"cmp"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// levelBypass is the level of an application that lets every request pass. Each demand
// precedes it.
const levelBypass = LevelPolicy + 1

// claim is a Gateway that needs an application for a hostname: because of a demand, or
// because another demand's wildcard would put a login in front of the hostname.
type claim struct {
	*party
	demand Demand
	// claimant is the namespace of the listener that claims the hostname.
	claimant string
	bypass   bool
	// unready is why the bypass cannot be made yet, as a message, or "".
	unready string
	// spec is the wanted application without its tags.
	spec provider.ApplicationSpec
	// decider are the digits of the level and the owner.
	decider string
	// problem is why the demand gets no application, or nil.
	problem *settings.Problem
	// ends reports whether the problem ends an existing application too.
	ends bool
}

// indexDemands adds the Gateway's demands.
func (s *situation) indexDemands(p *party) {
	for _, d := range p.Demands {
		c := &claim{party: p, demand: d, decider: deciderOf(s.Identity, d.DeciderKey())}
		if h := p.hostnames[d.Hostname]; h != nil {
			c.claimant = h.Namespace
		}
		if p.class != nil {
			c.spec = specOf(&d, p.class.Settings)
		}
		c.problem = s.demandProblem(c)
		c.ends = c.problem != nil && c.problem.Reason == conditions.ReasonHostnameNotPermitted
		s.claims[d.Hostname] = append(s.claims[d.Hostname], c)
	}
	for _, d := range p.Demands {
		slices.SortStableFunc(s.claims[d.Hostname], comparePrecedence)
	}
}

// comparePrecedence orders claims: a demand of a GatewayClass first, then those of Gateways
// and of AccessPolicies, then bypasses; among them, the older Gateway's first.
func comparePrecedence(a, b *claim) int {
	return cmp.Or(cmp.Compare(a.demand.Level, b.demand.Level), a.Created.Compare(b.Created),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// demandProblem returns why the demand gets no application with any contents of the account, or
// nil.
func (s *situation) demandProblem(c *claim) *settings.Problem {
	switch {
	case c.demand.Invalid != nil:
		return c.demand.Invalid
	case !c.demand.Permitted:
		return &settings.Problem{Reason: conditions.ReasonHostnameNotPermitted, Message: notPermitted(c.party, c.claimant)}
	case c.class == nil:
		return nil
	}
	for _, name := range c.demand.Policies {
		if problem := s.policyProblem(c.class, name); problem != nil {
			return problem
		}
	}
	return nil
}

// notPermitted explains that the hostname is not permitted.
func notPermitted(p *party, namespace string) string {
	if p.class != nil && !p.class.Settings.RequiresPermission {
		return messageNoPermissions
	}
	return "the annotation " + hostnames.Annotation + " of namespace " + namespace + " does not permit the hostname, so it can have no application. Use a permitted hostname, or ask a cluster administrator to change the annotation."
}

// policyProblem returns why a policy cannot be used, or nil. Before the policies have been
// read, every policy in the catalogue can.
func (s *situation) policyProblem(c *class, name v1alpha1.PolicyName) *settings.Problem {
	id, ok := c.Settings.Catalogue[name]
	if !ok {
		return &settings.Problem{Reason: conditions.ReasonPolicyNotFound, Message: "policy " + string(name) + " is not in spec.access.policies of GatewayClass " + c.Name +
			". Correct the name, or ask the platform team to add the policy."}
	}
	m := s.Memory.policies
	if !m.read.IsSet() {
		return nil
	}
	switch decision, ok := m.decisions[provider.AccessPolicyID(id)]; {
	case !ok:
		return &settings.Problem{Reason: conditions.ReasonPolicyNotFound, Message: "policy " + string(name) + " with the ID " + id +
			" does not exist in the Cloudflare account. Create it as a reusable policy, and correct its ID in spec.access.policies."}
	case decision == "bypass":
		return &settings.Problem{Reason: conditions.ReasonPolicyInvalid, Message: "policy " + string(name) +
			" has the action Bypass, with which Cloudflare issues no tokens. Use a policy with another action."}
	}
	return nil
}

// isViable reports whether an application may be created for the claim, or changed.
func (c *claim) isViable() bool {
	switch {
	case c.problem != nil || c.unready != "":
		return false
	case c.bypass: // a bypass changes nothing for the Gateway: its hostname stays as it is
		return c.isManaged() && (c.exists == ownership.Accepted || c.exists == ownership.Rejected || c.exists == ownership.Frozen)
	}
	return c.State == ownership.Accepted
}

// isLive reports whether the claim keeps an existing application.
func (c *claim) isLive() bool { return !c.ends }

// precedes reports whether the claim precedes the other one.
func (c *claim) precedes(other *claim) bool { return comparePrecedence(c, other) < 0 }

// agrees reports whether both claims can use one application: it protects the hostname in
// the same way, and only backends of one namespace see its tokens.
func (c *claim) agrees(other *claim) bool {
	if c.bypass || other.bypass {
		return c.bypass && other.bypass
	}
	return c.claimant == other.claimant && slices.Equal(c.spec.Policies, other.spec.Policies) &&
		c.spec.SessionDuration == other.spec.SessionDuration && equalCORS(c.spec.CORS, other.spec.CORS)
}

// tag returns the application's tag.
func (s *situation) tag(c *claim) string {
	return tagPrefix + installationOf(s.Identity) + c.digits + c.decider
}

// claimOf returns the Gateway's claim to the hostname, or nil.
func (s *situation) claimOf(name string, p *party) *claim {
	for _, c := range s.claims[name] {
		if c.party == p {
			return c
		}
	}
	return nil
}

// winner returns the claim that gets the application of the hostname, if none exists yet:
// the first one for which it may be made; nil if there is none.
func (s *situation) winner(name string) *claim {
	for _, c := range s.claims[name] {
		if c.isViable() {
			return c
		}
	}
	return nil
}

// isDemanded reports whether a demand keeps an application for the hostname, or may do so.
func (s *situation) isDemanded(name string) bool {
	return slices.ContainsFunc(s.claims[name], (*claim).isLive) || s.undecided[name]
}
