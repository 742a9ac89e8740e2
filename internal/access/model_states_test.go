package access

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// checkStates checks a decision about a Gateway's hostnames.
func (w *modelWorld) checkStates(i, n int, k Known, states map[string]State) {
	in := &w.installs[i]
	g := &in.gateways[n]
	for name, host := range g.hosts {
		if !host.claimed || w.violation != "" {
			continue
		}
		s := states[modelNames[name]]
		switch r := g.desired.of(name); r.kind {
		case ruleOpen:
			w.checkOpen(i, n, name, s.Reason, k)
		case ruleProtected:
			w.checkProtected(i, n, name, r.tag, k)
		case ruleClosed:
			w.checkClosed(i, n, name, s, k)
		case ruleNone:
			w.violate("%s of g%d has no rule", modelNames[name], n)
		}
	}
}

// lasts reports whether a hostname must require a token.
func (w *modelWorld) lasts(i, n, name int) bool {
	t := &w.installs[i].gateways[n].guards[name]
	return t.protected && (t.demanded != 0 || w.now-t.gone < w.installs[i].delay())
}

// checkOpen checks that a hostname may be open.
func (w *modelWorld) checkOpen(i, n, name int, reason conditions.Reason, k Known) {
	g := &w.installs[i].gateways[n]
	t := g.guards[name]
	demand := w.installs[i].decides(n, name)
	switch {
	case w.lasts(i, n, name):
		w.violate("%s of g%d opens, whose protection is in effect; its demand has been gone for %s", modelNames[name], n, sinceTime(t.gone, w.now))
	case (k.Frozen || g.unread) && g.configuration.of(name).kind == ruleProtected:
		w.violate("%s of g%d opens while nothing may end", modelNames[name], n)
	case !demand.spec.requires():
	case !t.open:
		w.violate("%s of g%d is open with a demand, and this process has not served it open", modelNames[name], n)
	case reason != conditions.ReasonPending:
		w.violate("%s of g%d is open with a demand, and the reason is %q", modelNames[name], n, reason)
	case w.now-t.demanded >= modelMaxOpen:
		w.violate("%s of g%d is open %s after its demand", modelNames[name], n, w.now-t.demanded)
	}
}

func sinceTime(t, now time.Duration) time.Duration {
	if t == 0 {
		return 0
	}
	return now - t
}

// checkProtected checks that the tokens that open a hostname were issued under its demand,
// as far as the process can know.
func (w *modelWorld) checkProtected(i, n, name int, tag string, k Known) {
	in := &w.installs[i]
	g := &in.gateways[n]
	decided := in.decides(n, name)
	if !decided.spec.requires() {
		return
	}
	demand := in.demand(n, in.protector(n, name), decided)
	grant, possible := in.grantFor(demand, g.class)
	a := in.seen.byTag(tag)
	inEffect := g.configuration.of(name).tag == tag
	switch {
	case a == nil && !inEffect:
		w.violate("%s of g%d demands tokens of an application that was never read", modelNames[name], n)
	case a == nil || !k.Read: // rules in effect stay
	case !slices.ContainsFunc(a.Domains, func(domain string) bool { return overlaps(domain, modelNames[name]) }) && !inEffect:
		w.violate("%s of g%d demands tokens of an application that does not cover it", modelNames[name], n)
	case !possible:
		w.violate("%s of g%d is protected, and its policies cannot be used", modelNames[name], n)
	case !grantOf(*a).within(grant):
		w.violate("%s of g%d demands tokens of an application that lets in more than %s", modelNames[name], n, decided)
	case slices.Contains(a.Tags, tagRevoke):
		w.violate("%s of g%d demands tokens, of which some are to be revoked", modelNames[name], n)
	default:
		w.checkIssued(n, name, a.ID, grant)
		w.checkMade(i, n, name, *a, demand, k)
	}
}

// checkMade checks that the application was made for who decides. The process knows it once
// it was decided about the demand.
func (w *modelWorld) checkMade(i, n, name int, a provider.Application, demand Demand, k Known) {
	m, managed := w.installs[i].mark(a)
	if managed && m.decider != demand.decider() && k.Verdicts[demand.Hostname].Reason != (conditions.Reason{}) {
		w.violate("%s of g%d demands tokens of an application that was made for %s, not for %s", modelNames[name], n, m.decider, demand.decider())
	}
}

// checkIssued checks the tokens that visitors have.
func (w *modelWorld) checkIssued(n, name int, id provider.ApplicationID, grant modelGrant) {
	live := w.cloud.find(id)
	if live < 0 {
		return
	}
	a := w.cloud.applications[live]
	for _, issued := range a.issued {
		if !issued.within(grant) {
			w.violate("%s of g%d accepts tokens that were issued under another demand", modelNames[name], n)
		}
	}
}

// checkClosed checks that a hostname is closed with a reason, and that none that works is:
// its rule in effect demands the tokens of an application that is as wanted, or of which the
// process knows nothing.
func (w *modelWorld) checkClosed(i, n, name int, s State, k Known) {
	in := &w.installs[i]
	if s.Reason == (conditions.Reason{}) || s.Reason == conditions.ReasonProtected {
		w.violate("%s of g%d is closed, and the reason is %q", modelNames[name], n, s.Reason)
	}
	rule := in.gateways[n].configuration.of(name)
	if rule.kind != ruleProtected || !in.decides(n, name).spec.requires() || w.stricter(i, n, name) || in.due && in.seen.any {
		return
	}
	w.checkMustClose(i, n, name, rule.tag, k)
}

// checkMustClose checks that a hostname cannot keep its rule, which demands tokens with the tag.
func (w *modelWorld) checkMustClose(i, n, name int, tag string, k Known) {
	in := &w.installs[i]
	g := &in.gateways[n]
	owner := in.protector(n, name)
	d := in.demand(n, owner, in.decides(n, name))
	a := in.seen.byTag(tag)
	switch _, possible := in.grantFor(d, g.class); {
	case !possible || !d.Permitted:
	case in.modes[g.class] != v1alpha1.ApplicationsManaged && a != nil && w.fits(i, n, d, *a):
		w.violate("%s of g%d closes, although applications: Disabled keeps its rule", modelNames[name], n)
	case !in.seen.any:
		w.violate("%s of g%d closes before the applications were read", modelNames[name], n)
	case a == nil || !k.Read || w.obstacle(i, n, owner, d) != "":
	case w.fits(i, n, d, *a):
		w.violate("%s of g%d closes, although its application is as wanted", modelNames[name], n)
	}
}

// stricter reports whether the demand has changed since the rule in effect was written.
func (w *modelWorld) stricter(i, n, name int) bool {
	in := &w.installs[i]
	return in.gateways[n].guards[name].decided != in.decides(n, name)
}

// fits reports whether the application is the Gateway's, and as the demand wants it.
func (w *modelWorld) fits(i, n int, d Demand, a provider.Application) bool {
	in := &w.installs[i]
	mark, managed := in.mark(a)
	grant, _ := in.grantFor(d, in.gateways[n].class)
	return managed && mark.gateway == n && mark.decider == d.decider() && len(a.Tags) == 1 && len(a.Domains) == 1 && grantOf(a) == grant && !a.Bypass
}
