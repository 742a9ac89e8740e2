package access

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var protected = finding{reason: conditions.ReasonProtected}

// verdicts returns the verdicts about the hostnames of each Gateway; nil while nothing is
// known. a is nil if nothing is decided.
func (s *situation) verdicts(a *agenda) map[types.NamespacedName]Verdicts {
	unread := s.unread()
	if s.mayManage() && s.remote == nil && unread == nil {
		return nil
	}
	all := map[types.NamespacedName]Verdicts{}
	for _, p := range s.parties {
		all[p.NamespacedName] = Verdicts{}
	}
	for name, claims := range s.claims {
		for _, c := range claims {
			f := s.finding(c, a, unread)
			if c.bypass {
				f = exception(f, name)
			}
			if !c.bypass || f != protected {
				all[c.NamespacedName][name] = s.verdict(c, f)
			}
		}
	}
	s.addUndemanded(all)
	return all
}

// exception returns what is reported about a hostname below a wildcard that needs a bypass.
func exception(f finding, name string) finding {
	switch f.reason {
	case conditions.ReasonProtected, conditions.ReasonPending:
		return f
	case conditions.ReasonDisabled:
		f.message = messageUnmanaged + "Ask the platform team to set spec.access.applications to Managed."
	}
	f.message = "the hostname stays behind the login of " + parentWildcard(name) + ", because " + f.message
	return f
}

// verdict returns the verdict about the claim's hostname.
func (s *situation) verdict(c *claim, f finding) Verdict {
	v := Verdict{Reason: f.reason, Message: f.message, Application: s.applicationOf(c, f)}
	gateway := c.NamespacedName
	if at, ok := s.Memory.reasons[hostnameKey{gateway.String(), c.demand.Hostname}]; ok && at.reason == f.reason {
		v.Since = at.since
	} else {
		v.Since = s.Uptime
	}
	return v
}

// addUndemanded adds the applications of Gateways that no longer demand them.
func (s *situation) addUndemanded(all map[types.NamespacedName]Verdicts) {
	if s.remote == nil {
		return
	}
	for name, o := range s.remote.byName {
		if o.holder != nil && !o.Bypass && s.claimOf(name, o.holder) == nil {
			all[o.holder.NamespacedName][name] = Verdict{Application: s.newApplication(o.Application, o.holder, name)}
		}
	}
}

// unread returns why the applications cannot be read, or nil.
func (s *situation) unread() *finding {
	message := s.forbiddenMessage()
	switch {
	case s.remote != nil || s.class == nil:
		return nil
	case !s.isIdentified():
		return &finding{conditions.ReasonPending, "the controller has no key to sign tags with. Fix the Secret with the signing key."}
	case message != "":
		return &finding{conditions.ReasonForbidden, message}
	}
	return nil
}

// forbiddenMessage returns why the API token cannot be used, or "".
func (s *situation) forbiddenMessage() string {
	if s.TokenVersion == "" && s.class != nil {
		return s.TokenMessage
	}
	return s.Memory.failure.Forbidden()
}

// finding returns what is reported about the claim. a is nil if nothing is decided.
func (s *situation) finding(c *claim, a *agenda, unread *finding) finding {
	switch {
	case c.class == nil || !c.class.Settings.AreManaged():
		return finding{conditions.ReasonDisabled, messageDisabled}
	case c.problem != nil:
		return finding{c.problem.Reason, c.problem.Message}
	case unread != nil:
		return *unread
	case a == nil:
		return finding{conditions.ReasonPending, "the controller has not read the applications yet."}
	}
	d := a.decisions[c.demand.Hostname]
	if d.app == nil {
		return a.missing(c, d)
	}
	return a.existing(c, d)
}

const overridden = "another Gateway demands another application for the hostname, and precedes. " +
	"Demand the same policies on both Gateways, or remove the hostname from one of them."

// missing returns what is reported about a hostname without an application.
func (a *agenda) missing(c *claim, d decision) finding {
	external := a.covering(c)
	switch {
	case external != nil:
		return finding{conditions.ReasonApplicationExists, externalMessage(external, d.name)}
	case c.class.rival != "":
		return a.conflict(c)
	case d.target != nil && d.target != c && !d.target.agrees(c):
		return finding{conditions.ReasonOverridden, overridden}
	case d.target != nil && d.target != c:
		return a.outstanding(d.target, d)
	}
	return a.outstanding(c, d)
}

func (a *agenda) conflict(c *claim) finding {
	return finding{conditions.ReasonSettingsConflict, "GatewayClass " + c.class.rival + " is older and uses the Cloudflare account with another teamName, apiToken or maxApplications. " +
		"Give both GatewayClasses the same settings in spec.access."}
}

// outstanding returns what the application of the claim waits for.
func (a *agenda) outstanding(c *claim, d decision) finding {
	if c.unready != "" {
		return finding{conditions.ReasonPending, c.unready}
	}
	if message := a.forbiddenMessage(); message != "" {
		return finding{conditions.ReasonForbidden, message}
	}
	if f, ok := a.findings[d.name]; ok {
		return f
	}
	switch {
	case c.exists == ownership.Unknown:
		return finding{conditions.ReasonPending, "the controller has not processed the Gateway yet."}
	case c.exists == ownership.Rejected && !c.bypass:
		return finding{conditions.ReasonPending, "the controller changes no application until the Gateway is accepted."}
	case c.exists != ownership.Accepted && !c.bypass:
		return finding{conditions.ReasonPending, "the controller changes no application while the Gateway is paused or its Tunnel is blocked."}
	case d.app == nil:
		return finding{conditions.ReasonPending, "the controller creates the application."}
	case d.kind == remake:
		return finding{conditions.ReasonPending, "another level or another owner decides now. The controller deletes the application and creates another one."}
	case d.app.revoke:
		return finding{conditions.ReasonPending, "the controller revokes the tokens that were issued before the last change."}
	}
	return finding{conditions.ReasonPending, "the controller changes the application."}
}

// existing returns what is reported about a hostname with an application of the installation.
func (a *agenda) existing(c *claim, d decision) finding {
	used := a.using(c, d)
	switch {
	case d.target == nil && used == nil && a.mayUse(c, d.app):
		return protected // with the application of a Gateway whose demands are not known
	case used != nil && used.isServedBy(d.app):
		return protected
	case c.class.rival != "":
		return a.conflict(c)
	case used == nil:
		return finding{conditions.ReasonOverridden, overridden}
	}
	return a.outstanding(used, d)
}

// using returns the claim for which the application exists or will exist, if the given one can
// use it too, or nil.
func (a *agenda) using(c *claim, d decision) *claim {
	switch {
	case c.party == d.app.holder && (d.target == nil || d.target.agrees(c)):
		return c
	case d.target == nil || d.target != c && !d.target.agrees(c):
		return nil
	}
	return d.target
}

// isServedBy reports whether the application is as the claim wants it, and issues no tokens for
// others.
func (c *claim) isServedBy(o *owned) bool {
	return c.matches(o) && c.decider == o.decider && !o.revoke
}

// mayUse reports whether the claim can use the application of another Gateway whose demand is
// not known: it protects the hostname in the same way, and only backends of one namespace see
// its tokens.
func (a *agenda) mayUse(c *claim, o *owned) bool {
	if !c.matches(o) || o.revoke || o.holder == nil {
		return false
	}
	other := o.holder.hostnames[c.demand.Hostname]
	return c.decider == o.decider || other != nil && other.Namespace == c.claimant
}

// applicationOf returns the application that protects the claim's hostname, or nil.
func (s *situation) applicationOf(c *claim, f finding) *Application {
	if s.remote == nil || c.bypass {
		return nil
	}
	if o := s.remote.byName[c.demand.Hostname]; o != nil {
		a := s.newApplication(o.Application, c.party, c.demand.Hostname)
		a.Revoking = o.revoke
		if f == protected || c.decider == o.decider || s.shares(c, o) {
			a.Decider = c.demand.DeciderKey()
		}
		return a
	}
	if external := s.remote.external.exact(c.demand.Hostname); external != nil {
		return s.newApplication(external, c.party, c.demand.Hostname)
	}
	return nil
}

// shares reports whether the claim can use the application that exists for another Gateway.
func (s *situation) shares(c *claim, o *owned) bool {
	if o.holder == nil {
		return false
	}
	held := s.claimOf(c.demand.Hostname, o.holder)
	return held != nil && held.agrees(c) && held.decider == o.decider
}

// withoutDemand returns an application of the installation without a demand, so that it has no
// decider.
func (s *situation) withoutDemand(o *owned) *Application {
	a := s.newApplication(o.Application, &party{}, o.key())
	a.Revoking = o.revoke
	return a
}

// newApplication returns the application as verdicts contain it.
func (s *situation) newApplication(last *provider.Application, p *party, name string) *Application {
	a := &Application{Hostname: name, AUDTag: last.AUDTag, SessionDuration: last.SessionDuration, Last: *last}
	if p.class != nil {
		a.TeamName = p.class.Settings.TeamName
		a.Policies = policyNames(last, p.class)
	}
	if s.class != nil {
		a.TeamName = s.class.Settings.TeamName
	}
	return a
}

// policyNames returns the names of the application's policies, sorted.
func policyNames(last *provider.Application, c *class) []v1alpha1.PolicyName {
	names := make(map[provider.AccessPolicyID]v1alpha1.PolicyName, len(c.Settings.Catalogue))
	for name, id := range c.Settings.Catalogue {
		if other, ok := names[provider.AccessPolicyID(id)]; !ok || name < other {
			names[provider.AccessPolicyID(id)] = name
		}
	}
	var all []v1alpha1.PolicyName
	for _, id := range last.Policies {
		name, ok := names[id]
		if !ok {
			name = v1alpha1.PolicyName("[" + string(id) + "]")
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
