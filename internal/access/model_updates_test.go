package access

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// checkUpdate checks that an application may be changed.
func (a *modelAttempt) checkUpdate(last provider.Application) {
	if a.violation != "" {
		return
	}
	n := gatewayIndex(a.Gateway)
	mark, managed := a.in.mark(last)
	want := a.written()
	switch {
	case !managed:
		a.checkAdopt(n, last)
	case mark.decider != want.decider:
		a.violate("changes %s from %s to %s, instead of making it again", a.Hostname, mark.decider, want.decider)
	case mark.gateway != want.gateway:
		a.checkHandover(mark, want)
	}
	a.checkStricter(last)
	a.checkWeaker()
}

// written returns what the tag in the spec stands for.
func (a *modelAttempt) written() modelMark {
	m, _ := a.in.mark(provider.Application{Tags: a.Spec.Tags})
	return m
}

// checkStricter checks that a stricter change remains marked until tokens are revoked.
func (a *modelAttempt) checkStricter(last provider.Application) {
	after := modelGrant{session: a.Spec.SessionDuration, all: a.Spec.Bypass}
	for _, id := range a.Spec.Policies {
		after.policies |= 1 << policyIndex(id)
	}
	if slices.Contains(a.Spec.Tags, tagRevoke) || a.Spec.Bypass {
		return
	}
	if !grantOf(last).within(after) {
		a.violate("makes %s stricter without marking it for a revocation", a.Hostname)
	}
	if live := a.cloud.find(last.ID); live >= 0 && slices.Contains(last.Tags, tagRevoke) {
		for _, issued := range a.cloud.applications[live].issued {
			if !issued.within(after) {
				a.violate("removes the mark of a revocation from %s before it", a.Hostname)
			}
		}
	}
}

// checkWeaker checks that no rule of a Gateway with a stricter demand accepts the tokens of
// the application.
func (a *modelAttempt) checkWeaker() {
	after := modelGrant{session: a.Spec.SessionDuration, all: a.Spec.Bypass}
	for _, id := range a.Spec.Policies {
		after.policies |= 1 << policyIndex(id)
	}
	for n := range a.in.gateways {
		g := &a.in.gateways[n]
		for name := range modelNames {
			decided := a.in.decides(n, name)
			if !decided.spec.requires() || g.effective(name) != (modelRule{ruleProtected, a.Last.AUDTag}) || g.due {
				continue
			}
			if grant, ok := a.in.grantFor(a.in.demand(n, a.in.protector(n, name), decided), g.class); ok && !after.within(grant) && g.known() == ownership.Accepted {
				a.violate("weakens %s, whose tokens g%d accepts for %s with a stricter demand", a.Hostname, n, modelNames[name])
			}
		}
	}
}

// checkHandover checks that the application may pass to another Gateway.
func (a *modelAttempt) checkHandover(from, to modelMark) {
	holder := &a.in.gateways[from.gateway]
	switch {
	case !a.in.gatewaysKnown():
		a.violate("hands %s over while it is not known which Gateways exist", a.Hostname)
	case !holder.present():
	case holder.known() == ownership.Unknown || holder.known() == ownership.Frozen || holder.known() == ownership.Rejected:
		a.violate("hands %s over from a Gateway in state %v", a.Hostname, holder.known())
	case holder.known() == ownership.Departed && a.since(from) < a.in.delay():
		a.violate("hands %s over %s after its Gateway has gone", a.Hostname, a.since(from))
	case holder.demandOf(a.Hostname) != nil && holder.demandOf(a.Hostname).Level <= a.in.gateways[to.gateway].demandOf(a.Hostname).Level &&
		holder.demandOf(a.Hostname).Permitted && holder.created <= a.in.gateways[to.gateway].created:
		a.violate("hands %s over from a Gateway that demands it and precedes", a.Hostname)
	}
}

// checkAdopt checks that an application without a tag may be changed.
func (a *modelAttempt) checkAdopt(n int, last provider.Application) {
	requested := slices.ContainsFunc(a.in.requests, func(q Adoption) bool {
		return q.ID == string(last.ID) && q.Hostname == a.Hostname && q.Gateway == gatewayName(n) && a.now-q.Requested.Sub(modelEpoch) <= modelAdoptionAge
	})
	switch {
	case !requested:
		a.violate("changes %s, which has no tag of the installation and is not adopted", describeApplication(last))
	case len(last.Domains) != 1 || last.Domains[0] != a.Hostname:
		a.violate("adopts %s, which covers more than %s", describeApplication(last), a.Hostname)
	}
}
