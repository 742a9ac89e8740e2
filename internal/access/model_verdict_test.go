package access

import (
	"fmt"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Verdict returns why the final state is wrong, or "": nothing has happened for hours.
func (s *modelScenario) Verdict(w *modelWorld, start time.Duration) string {
	if w.applied >= start+time.Hour {
		return fmt.Sprintf("the account still changes %s after the last fault", w.applied-start)
	}
	for i := range w.count {
		in := &w.installs[i]
		if len(in.requests) > 0 {
			return fmt.Sprintf("the request to adopt %s never ends", in.requests[0].Hostname)
		}
		if in.revoked || in.noToken || in.noKey || in.modes[0] != v1alpha1.ApplicationsManaged {
			continue
		}
		for n := range in.gateways {
			if problem := w.verdictGateway(i, n); problem != "" {
				_, next := w.plan(i)
				return fmt.Sprintf("%s; next step: %s", problem, describeStep(next))
			}
		}
		if problem := w.verdictUnused(i); problem != "" {
			return problem
		}
	}
	return ""
}

// verdictGateway checks the hostnames of a Gateway.
func (w *modelWorld) verdictGateway(i, n int) string {
	in := &w.installs[i]
	g := &in.gateways[n]
	if !g.exists || g.state() != ownership.Accepted || g.unread {
		return ""
	}
	for name, host := range g.hosts {
		if !host.claimed {
			continue
		}
		effective := g.effective(name)
		if !in.decides(n, name).spec.requires() {
			if effective.kind != ruleOpen {
				return fmt.Sprintf("%s of g%d is %s without a demand", modelNames[name], n, effective)
			}
			continue
		}
		if problem := w.verdictHostname(i, n, name, effective); problem != "" {
			return fmt.Sprintf("%s of g%d %s", modelNames[name], n, problem)
		}
	}
	return ""
}

// verdictHostname returns what is wrong with a demanded hostname.
func (w *modelWorld) verdictHostname(i, n, name int, effective modelRule) string {
	in := &w.installs[i]
	g := &in.gateways[n]
	owner := in.protector(n, name)
	d := in.demand(n, owner, in.decides(n, name))
	verdict := in.report.Gateways[gatewayName(n)][modelNames[owner]]
	obstacle := w.obstacle(i, n, owner, d)
	switch {
	case effective.kind == ruleOpen:
		return "is open, with a demand"
	case g.class == 1 && in.disagrees: // what exists stays as it is
		return ""
	case obstacle != "" && verdict.Reason == conditions.ReasonProtected:
		return fmt.Sprintf("is reported as protected, although %s", obstacle)
	case obstacle != "" && verdict.Message == "":
		return fmt.Sprintf("is reported as %q without a message, although %s", verdict.Reason, obstacle)
	case obstacle != "":
		return ""
	}
	return w.verdictProtected(i, n, owner, d, effective)
}

// verdictProtected returns what is wrong with a demanded hostname that nothing prevents from
// being protected, or with its application, which is for the owner's name.
func (w *modelWorld) verdictProtected(i, n, owner int, d Demand, effective modelRule) string {
	in := &w.installs[i]
	verdict := in.report.Gateways[gatewayName(n)][modelNames[owner]]
	at := w.cloud.exact(modelNames[owner])
	if at < 0 {
		return fmt.Sprintf("has no application, and is reported as %q: %s", verdict.Reason, verdict.Message)
	}
	a := w.cloud.applications[at]
	m, managed := in.mark(a.Application)
	grant, _ := in.grantFor(d, in.gateways[n].class)
	switch {
	case !managed || m.decider != d.decider():
		return fmt.Sprintf("has the application %s, which was not made for %s", describeApplication(a.Application), d.decider())
	case in.gateways[m.gateway].demandOf(d.Hostname) == nil && !in.unreadable():
		return fmt.Sprintf("has an application with the tag of g%d, which does not demand it", m.gateway)
	case grantOf(a.Application) != grant && !in.unreadable() || slices.Contains(a.Tags, tagRevoke):
		return fmt.Sprintf("has the application %s, which is not as wanted", describeApplication(a.Application))
	case effective != (modelRule{ruleProtected, a.AUDTag}):
		return fmt.Sprintf("is %s, not %s; it is reported as %q: %s", effective, a.AUDTag, verdict.Reason, verdict.Message)
	case verdict.Reason != conditions.ReasonProtected:
		return fmt.Sprintf("is protected, and reported as %q: %s", verdict.Reason, verdict.Message)
	}
	return ""
}

// obstacle returns why a demanded hostname cannot be protected, or "".
func (w *modelWorld) obstacle(i, n, name int, d Demand) string {
	in := &w.installs[i]
	g := &in.gateways[n]
	ids, ok := in.policyIDs(d, g.class)
	switch {
	case !d.Permitted:
		return "it is not permitted"
	case !ok:
		return "its policies cannot be used"
	case in.modes[g.class] != v1alpha1.ApplicationsManaged:
		return "applications are disabled"
	}
	at := w.cloud.exact(modelNames[name])
	_, exists := in.mark(w.cloud.at(at))
	if in.limit == 0 || w.cloud.quota > 0 && !exists {
		return "a limit is reached"
	}
	if slices.ContainsFunc(ids, func(id provider.AccessPolicyID) bool { return !w.cloud.policies[policyIndex(id)] }) {
		return "a policy does not exist"
	}
	if a := w.externalTo(i, name); a != "" && !exists && (in.entries[g.class][name] == specNone || at >= 0) {
		return a + " covers it"
	}
	return w.overridden(i, n, d)
}

// externalTo describes an application of another client that concerns the name, or returns "".
func (w *modelWorld) externalTo(i, name int) string {
	for _, a := range w.cloud.applications {
		_, managed := w.installs[i].mark(a.Application)
		if !managed && slices.ContainsFunc(a.Domains, func(domain string) bool { return overlaps(domain, modelNames[name]) }) {
			return describeApplication(a.Application)
		}
	}
	return ""
}

// overridden returns which other Gateway's demand or application precedes, or "".
func (w *modelWorld) overridden(i, n int, d Demand) string {
	in := &w.installs[i]
	a := w.cloud.at(w.cloud.exact(d.Hostname))
	mark, managed := in.mark(a)
	grant, _ := in.grantFor(d, in.gateways[n].class)
	if holder := &in.gateways[mark.gateway]; managed && mark.gateway != n && holder.present() && holder.isFixed() &&
		(mark.decider != d.decider() || grantOf(a) != grant) {
		return fmt.Sprintf("g%d keeps its application", mark.gateway)
	}
	if m := in.usedBy(n, nameIndex(d.Hostname), a.AUDTag); m >= 0 && grantOf(a) != grant {
		return fmt.Sprintf("the rules of g%d demand tokens of its application", m)
	}
	if first, o := in.preceding(n, d, mark.gateway); first != n && !wantSame(o, d) {
		return fmt.Sprintf("the demand of g%d precedes", first)
	}
	return ""
}

// preceding returns the Gateway whose demand for the hostname precedes, and the demand. The
// holder is the Gateway in the tag of the hostname's application.
func (in *modelInstall) preceding(n int, d Demand, holder int) (int, Demand) {
	first, o := n, d
	for m := range in.gateways {
		other := &in.gateways[m]
		demand := other.demandOf(d.Hostname)
		if !other.exists || demand == nil || !demand.Permitted || other.state() != ownership.Accepted && holder != m {
			continue
		}
		if _, ok := in.grantFor(*demand, other.class); ok && (demand.Level < o.Level || demand.Level == o.Level && other.created < in.gateways[first].created) {
			first, o = m, *demand
		}
	}
	return first, o
}

// wantSame reports whether two demands want the same application.
func wantSame(a, b Demand) bool {
	return a.decider() == b.decider() && slices.Equal(a.Policies, b.Policies) && a.SessionDuration == b.SessionDuration
}

// isFixed reports whether the rules and applications of the Gateway cannot change now.
func (g *modelGateway) isFixed() bool { return g.state() != ownership.Accepted || g.unread }

// usedBy returns another Gateway whose rule demands tokens of the application and cannot
// change now, or -1.
func (in *modelInstall) usedBy(n, name int, tag string) int {
	for m := range in.gateways {
		g := &in.gateways[m]
		if m != n && g.exists && g.isFixed() && g.configuration.of(name) == (modelRule{ruleProtected, tag}) {
			return m
		}
	}
	return -1
}

// verdictUnused checks that no application of the installation is left that nothing needs,
// and that orphans are reported.
func (w *modelWorld) verdictUnused(i int) string {
	in := &w.installs[i]
	var orphans []string
	for _, a := range w.cloud.applications {
		m, managed := in.mark(a.Application)
		if !managed {
			continue
		}
		holder := &in.gateways[m.gateway]
		name := nameIndex(a.Domains[0])
		needed := name >= 0 && (in.known(name) || in.bypassed(name))
		switch {
		case needed, in.inEffect(a.AUDTag), name >= 0 && in.mayDemand(name):
		case !holder.present():
			orphans = append(orphans, a.Domains[0])
		case holder.state() == ownership.Accepted && !in.unreadable():
			return fmt.Sprintf("%s is not needed and stays", describeApplication(a.Application))
		case holder.state() == ownership.Retiring:
			return fmt.Sprintf("%s of a Gateway that retires stays", describeApplication(a.Application))
		}
	}
	return in.verdictOrphans(orphans)
}

// verdictOrphans checks that the report contains the orphans.
func (in *modelInstall) verdictOrphans(orphans []string) string {
	var reported []string
	for _, o := range in.report.Orphans {
		reported = append(reported, o.Hostname)
	}
	slices.Sort(orphans)
	if !slices.Equal(orphans, reported) {
		return fmt.Sprintf("the orphans are reported as %v, not %v", reported, orphans)
	}
	return ""
}

// bypassed reports whether a name may have an application that lets everyone pass.
func (in *modelInstall) bypassed(name int) bool {
	for n := range in.gateways {
		if in.needsBypass(n, name) {
			return true
		}
	}
	return false
}

func (in *modelInstall) unreadable() bool {
	for n := range in.gateways {
		if g := &in.gateways[n]; g.exists && g.isFixed() {
			return true
		}
	}
	return false
}

// inEffect reports whether the rules of a tunnel demand the AUD tag.
func (in *modelInstall) inEffect(tag string) bool {
	for n := range in.gateways {
		if slices.Contains(in.gateways[n].configuration.tags(), tag) {
			return true
		}
	}
	return false
}
