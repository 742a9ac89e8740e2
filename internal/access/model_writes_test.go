package access

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// namespaceOf returns the namespace of the listener that claims the hostname.
func (g *modelGateway) namespaceOf(hostname string) string {
	if name := nameIndex(hostname); name >= 0 {
		return g.hosts[name].namespace
	}
	return ""
}

// needsBypass reports whether the name of a Gateway needs an application that lets everyone
// pass: nothing demands protection for it, and it is below a wildcard of another owner.
func (in *modelInstall) needsBypass(n, name int) bool {
	g := &in.gateways[n]
	if g.known() != ownership.Accepted || !g.hosts[name].claimed || g.hosts[name].denied || in.freely || name == modelW || !covers(modelW, name) || in.reached(name) {
		return false
	}
	return in.isBelowOther(n, name)
}

// isBelowOther reports whether the name of a Gateway is below a demanded wildcard that must
// not protect it: one of another owner, or any if the name is exempt.
func (in *modelInstall) isBelowOther(n, name int) bool {
	for m := range in.gateways {
		wide := in.decides(m, modelW)
		if !wide.spec.requires() || in.gateways[m].known() != ownership.Accepted {
			continue
		}
		owner := in.gateways[m].hosts[modelW].namespace
		if in.decides(n, name).exempt || wide.level == LevelPolicy && owner != in.gateways[n].hosts[name].namespace || wide.level == LevelGateway && m != n {
			return true
		}
	}
	return false
}

// reached reports whether a demand reaches the name on any Gateway.
func (in *modelInstall) reached(name int) bool {
	for m := range in.gateways {
		if in.decides(m, name).spec.requires() {
			return true
		}
	}
	return false
}

// checkBypass checks that an application may let everyone pass.
func (a *modelAttempt) checkBypass(n int) {
	name := nameIndex(a.Hostname)
	g := &a.in.gateways[n]
	switch {
	case name < 0 || name == modelW || !g.hosts[name].claimed:
		a.violate("lets everyone pass to %s, which is no hostname of g%d", a.Hostname, n)
	case g.hosts[name].denied || a.in.freely:
		a.violate("lets everyone pass to %s without permission", a.Hostname)
	case a.in.reachedBy(name):
		a.violate("lets everyone pass to %s, which is demanded", a.Hostname)
	case len(a.Spec.Policies) > 0:
		a.violate("lets everyone pass to %s, with policies", a.Hostname)
	}
}

// reachedBy reports whether a demand reaches the name, as the process knows.
func (in *modelInstall) reachedBy(name int) bool {
	for m := range in.gateways {
		if !in.gateways[m].due && in.decides(m, name).spec.requires() {
			return true
		}
	}
	return false
}

// checkBypassesFirst checks that an application for a wildcard puts no hostname of another
// owner behind its login.
func (a *modelAttempt) checkBypassesFirst(n int, d *Demand) {
	for m := range a.in.gateways {
		g := &a.in.gateways[m]
		for name, host := range g.hosts {
			exact := func(app provider.Application) bool { return slices.Contains(app.Domains, modelNames[name]) }
			if host.namespace == d.Namespace || g.due || !a.in.needsBypass(m, name) || slices.ContainsFunc(a.in.seen.list, exact) || a.in.owned() >= a.in.limit {
				continue
			}
			if a.in.external(modelNames[name]) == nil {
				a.violate("creates %s of g%d before %s of g%d, which is open, has an application of its own", a.Hostname, n, modelNames[name], m)
			}
		}
	}
}

// checkDelete checks that an application may be deleted.
func (a *modelAttempt) checkDelete(last provider.Application) {
	mark, managed := a.checkOwned("deletes", last)
	if !managed {
		return
	}
	holder := &a.in.gateways[mark.gateway]
	switch state := holder.known(); {
	case !a.in.gatewaysKnown():
		a.violate("deletes %s while it is not known which Gateways exist", a.Hostname)
	case holder.keeps(last):
		a.violate("deletes %s of a Gateway in state %v", a.Hostname, state)
	case state == ownership.Departed && (a.since(mark) < a.in.delay() || !a.in.isDemanded(a.Hostname)):
		a.violate("deletes %s of a Gateway whose Tunnel stays, %s after it has gone", a.Hostname, a.now-holder.gone)
	case !holder.present() && !a.in.isDemanded(a.Hostname):
		a.violate("deletes %s, which is an orphan", a.Hostname)
	case a.in.isDemanded(a.Hostname):
		a.checkMadeAgain(mark)
	default:
		a.checkEnd(mark, last)
	}
	if !slices.Contains(a.in.modes[:], v1alpha1.ApplicationsManaged) {
		a.violate("deletes %s with applications: Disabled", a.Hostname)
	}
}

// keeps reports whether the state of the Gateway keeps its application.
func (g *modelGateway) keeps(a provider.Application) bool {
	state := g.known()
	return g.present() && (state == ownership.Unknown || !a.Bypass && (state == ownership.Frozen || state == ownership.Rejected))
}

// isDemanded reports whether an accepted Gateway demands the hostname, as the process knows.
func (in *modelInstall) isDemanded(hostname string) bool {
	for n := range in.gateways {
		if g := &in.gateways[n]; g.known() == ownership.Accepted && g.demandOf(hostname) != nil {
			return true
		}
	}
	return false
}

// since returns since when the Gateway in the tag does not demand the hostname.
func (a *modelAttempt) since(m modelMark) time.Duration {
	return sinceTime(a.in.gateways[m.gateway].guards[max(0, nameIndex(a.Hostname))].gone, a.now)
}

// checkMadeAgain checks that an application may be deleted to be made again.
func (a *modelAttempt) checkMadeAgain(mark modelMark) {
	holder := &a.in.gateways[mark.gateway]
	d := holder.demandOf(a.Hostname)
	if d == nil || holder.known() != ownership.Accepted || d.decider() != mark.decider || !d.Permitted {
		return
	}
	for n := range a.in.gateways {
		other := a.in.gateways[n].demandOf(a.Hostname)
		if n != mark.gateway && other != nil && a.in.gateways[n].known() == ownership.Accepted &&
			(other.Level < d.Level || other.Level == d.Level && a.in.gateways[n].created < holder.created) {
			return // another Gateway precedes
		}
	}
	a.violate("deletes %s, which its Gateway demands", a.Hostname)
}

// checkEnd checks that the application that nothing demands may be deleted.
func (a *modelAttempt) checkEnd(mark modelMark, last provider.Application) {
	holder := &a.in.gateways[mark.gateway]
	since := a.in.unwanted[max(0, nameIndex(a.Hostname))]
	retires := holder.known() == ownership.Retiring
	if !retires && !last.Bypass && (since == 0 || a.now-since < a.in.delay()) {
		a.violate("deletes %s, whose demand has been gone for %s", a.Hostname, sinceTime(since, a.now))
	}
	for n := range a.in.gateways {
		g := &a.in.gateways[n]
		if g.exists && slices.Contains(g.configuration.tags(), last.AUDTag) {
			a.violate("deletes %s, whose tokens the rules of g%d demand", a.Hostname, n)
		}
	}
	if a.in.mayDemand(max(0, nameIndex(a.Hostname))) {
		a.violate("deletes %s while not all demands are known", a.Hostname)
	}
}

// checkOutcome checks the result of an adoption request.
func (w *modelWorld) checkOutcome(i int, s Step, o AdoptionOutcome) {
	a := w.installs[i].seen.byID(provider.ApplicationID(o.ID))
	if o.Result == v1alpha1.RecordAdopted {
		if a == nil {
			w.violate("%s is reported as adopted, and does not exist", o.Hostname)
		} else if _, managed := w.installs[i].mark(*a); !managed {
			w.violate("%s is reported as adopted, and is not", o.Hostname)
		}
	}
	if s.Action != ConcludeAdoptions || o.Message == "" {
		w.violate("the result of the adoption of %s has no message, or ends with %s", o.Hostname, s.Action)
	}
}

// checkReleased checks that a retiring Gateway has no application left that has to be handed
// over or deleted.
func (w *modelWorld) checkReleased(i, n int) {
	in := &w.installs[i]
	if in.revoked || in.noToken || in.noKey || in.modes[0] != v1alpha1.ApplicationsManaged {
		return
	}
	for _, a := range w.cloud.applications {
		m, managed := in.mark(a.Application)
		known := in.seen.byID(a.ID)
		if !managed || m.gateway != n || known == nil || !slices.Equal(known.Tags, a.Tags) || in.known(max(0, nameIndex(a.Domains[0]))) {
			continue
		}
		if in.mayDemand(max(0, nameIndex(a.Domains[0]))) {
			continue
		}
		w.violate("the Gateway is released, and %s still has its tag", describeApplication(a.Application))
	}
}

// track updates since when hostnames are demanded. It is called after every transition.
func (w *modelWorld) track() {
	for i := range w.count {
		in := &w.installs[i]
		for n := range in.gateways {
			for name := range modelNames {
				w.guard(in, n, name)
			}
		}
		for name := range modelNames {
			stamp(&in.unwanted[name], in.known(name), w.now)
		}
	}
}

// mayDemand reports whether a Gateway with the hostname has demands that are not known.
func (in *modelInstall) mayDemand(name int) bool {
	for n := range in.gateways {
		if g := &in.gateways[n]; g.exists && g.hosts[name].claimed && g.reported != nil && g.reported.DemandsUnknown {
			return true
		}
	}
	return false
}

// known reports whether a Gateway that was decided about demands the name, and may.
func (in *modelInstall) known(name int) bool {
	for n := range in.gateways {
		if d := in.gateways[n].demandOf(modelNames[name]); d != nil && d.Permitted {
			return true
		}
	}
	return false
}

// guard updates what must be true for a hostname of a Gateway, and checks it.
func (w *modelWorld) guard(in *modelInstall, n, name int) {
	g := &in.gateways[n]
	t := &g.guards[name]
	demanded := in.demandsIfRead(n, name)
	stamp(&t.gone, demanded, w.now)
	stamp(&t.demanded, !demanded, w.now)
	if !g.exists {
		*t = modelGuard{gone: t.gone}
		return
	}
	effective := g.effective(name)
	w.checkLate(n, name, effective.tag)
	if effective.kind == ruleProtected && demanded {
		t.protected = true
	}
	if effective.kind != ruleOpen || !g.hosts[name].claimed {
		t.open = false
	}
	if !demanded && w.now-t.gone >= in.delay() {
		t.protected = false
	}
	if g.hosts[name].claimed && effective.kind == ruleOpen {
		w.checkMayBeOpen(g, n, name, demanded)
	}
}

// demandsIfRead reports whether protection is demanded for a hostname of a Gateway, even if
// its demands cannot be read.
func (in *modelInstall) demandsIfRead(n, name int) bool {
	g := &in.gateways[n]
	unread := g.unread
	g.unread = false
	demanded := in.decides(n, name).spec.requires()
	g.unread = unread
	return demanded
}

// checkLate checks that a rule demands no tokens of an application with a late write that was
// not noticed.
func (w *modelWorld) checkLate(n, name int, tag string) {
	if i := w.cloud.byTag(tag); i >= 0 && w.cloud.applications[i].late != 0 && w.now-w.cloud.applications[i].late > 2*time.Minute {
		w.violate("%s of g%d demands tokens of an application with a late write that was not noticed", modelNames[name], n)
	}
}

// checkMayBeOpen checks that a hostname may be open.
func (w *modelWorld) checkMayBeOpen(g *modelGateway, n, name int, demanded bool) {
	t := &g.guards[name]
	switch {
	case t.protected:
		w.violate("%s of g%d is open, whose protection was in effect", modelNames[name], n)
	case demanded && g.desired[name].kind == ruleOpen && w.now-t.demanded > modelMaxOpen+time.Second && !g.due && g.state() != ownership.Rejected && !g.unread:
		w.violate("%s of g%d is open %s after its demand", modelNames[name], n, w.now-t.demanded)
	}
}

// stamp sets since to now when something is no longer so, and to 0 while it is.
func stamp(since *time.Duration, so bool, now time.Duration) {
	switch {
	case so:
		*since = 0
	case *since == 0:
		*since = now
	}
}
