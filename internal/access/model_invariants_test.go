package access

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelReadAge is how old the list before a creation can be.
const modelReadAge = time.Minute

// modelMark is what a tag stands for.
type modelMark struct {
	uid, key, gateway int
	decider           string
}

// modelMarks are all tags that installations have written. The model knows no signature: it
// remembers for what each tag was written.
var modelMarks sync.Map // tag → modelMark

// decider identifies who decides about the demand's hostname.
func (d Demand) decider() string { return fmt.Sprintf("%d/%s", d.Level, d.Owner) }

// mark returns what the application's tag stands for, and whether it belongs to the
// installation. Without a key, an installation has no application.
func (in *modelInstall) mark(a provider.Application) (modelMark, bool) {
	for _, tag := range a.Tags {
		if m, known := modelMarks.Load(tag); known {
			if mark := m.(modelMark); mark.uid == in.uid && mark.key == in.key && !in.noKey {
				return mark, true
			}
		}
	}
	return modelMark{}, false
}

// modelAttempt is a write that is about to be sent.
type modelAttempt struct {
	*modelWorld
	in *modelInstall
	i  int
	Write
}

// check checks that the step is allowed.
func (w *modelWorld) check(i int, f Facts, s Step) {
	in := &w.installs[i]
	switch {
	case s.Action == ConcludeAdoptions:
		return
	case !slices.ContainsFunc(f.Classes, func(c Class) bool { return c.Settings.AreManaged() }):
		w.violate("%s although every class has applications: Disabled", s.Action)
	case s.Requests <= 0:
		w.violate("%s reserves %d requests", s.Action, s.Requests)
	case s.Action == Apply && (len(s.Writes) == 0 || len(s.Writes) > MaxWrites):
		w.violate("a step has %d writes", len(s.Writes))
	}
	for n, write := range s.Writes {
		a := &modelAttempt{modelWorld: w, in: in, i: i, Write: write}
		if slices.ContainsFunc(s.Writes[:n], func(other Write) bool {
			return other.Hostname == write.Hostname && write.Operation != EnsureTag && other.Operation != EnsureTag
		}) {
			w.violate("a step has two writes about %s", write.Hostname)
		}
		if w.violation == "" {
			a.checkWrite()
		}
	}
}

// checkWrite checks that one write is allowed.
func (a *modelAttempt) checkWrite() {
	if a.in.noKey {
		a.violate("%s of %s without a key", a.Operation, a.Hostname)
		return
	}
	switch a.Operation {
	case EnsureTag:
		a.checkTag(a.Tag)
	case Create:
		if !a.in.seen.any || a.now-a.in.seen.at > modelReadAge {
			a.violate("creates %s without a list right before it", a.Hostname)
			return
		}
		a.checkSpec()
		a.checkCreate()
	case Update:
		if last, ok := a.target(); ok {
			a.checkSpec()
			a.checkUpdate(last)
		}
	case Revoke:
		if last, ok := a.target(); ok {
			a.checkOwned("revokes the tokens of", last)
		}
	case Delete:
		if last, ok := a.target(); ok {
			a.checkDelete(last)
		}
	}
}

// checkTag checks the form of a tag.
func (a *modelAttempt) checkTag(tag string) {
	digits, ok := strings.CutPrefix(tag, "tg")
	hexadecimal := len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
	if tag != tagRevoke && tag != tagContested && (!ok || !hexadecimal) {
		a.violate("the tag %q has the wrong form", tag)
	}
}

// target returns the application that the write changes, as the process knows it.
func (a *modelAttempt) target() (provider.Application, bool) {
	last := a.in.seen.byID(a.Last.ID)
	if last == nil {
		a.violate("%s of an application that was never read: %s", a.Operation, a.Hostname)
		return provider.Application{}, false
	}
	return *last, a.violation == ""
}

// checkOwned checks that the application belongs to the installation.
func (a *modelAttempt) checkOwned(verb string, last provider.Application) (modelMark, bool) {
	mark, managed := a.in.mark(last)
	if !managed {
		a.violate("%s %s, which has no tag of the installation", verb, describeApplication(last))
	}
	return mark, managed
}

// gateway returns the index of the Gateway for which the write is made, if it is accepted
// and the settings of its class permit writes.
func (a *modelAttempt) gateway(verb string) (int, bool) {
	n := gatewayIndex(a.Gateway)
	if n < 0 {
		a.violate("%s %s for no Gateway", verb, a.Hostname)
		return 0, false
	}
	g := &a.in.gateways[n]
	switch state := g.known(); {
	case state != ownership.Accepted && (!a.Spec.Bypass || state != ownership.Rejected && state != ownership.Frozen):
		a.violate("%s %s for a Gateway in state %v", verb, a.Hostname, g.known())
	case a.in.modes[g.class] != v1alpha1.ApplicationsManaged:
		a.violate("%s %s with applications: Disabled", verb, a.Hostname)
	}
	return n, a.violation == ""
}

// checkSpec checks what is written, and remembers its tags.
func (a *modelAttempt) checkSpec() {
	n, ok := a.gateway("writes")
	if !ok {
		return
	}
	g := &a.in.gateways[n]
	d := g.demandOf(a.Spec.Hostname)
	decider := "bypass/" + g.namespaceOf(a.Spec.Hostname)
	switch {
	case a.Spec.Hostname != a.Hostname || len(a.Spec.Tags) == 0:
		a.violate("the write about %s is for %q with the tags %v", a.Hostname, a.Spec.Hostname, a.Spec.Tags)
	case a.Spec.Bypass:
		a.checkBypass(n)
	case d == nil:
		a.violate("writes %s, which g%d does not demand", a.Hostname, n)
	case !d.Permitted:
		a.violate("writes %s without permission", a.Hostname)
	default:
		decider = d.decider()
		a.checkPrecedence(n, d)
		a.checkFields(n, *d)
	}
	for _, tag := range a.Spec.Tags {
		if a.checkTag(tag); tag != tagRevoke && tag != tagContested {
			a.remember(tag, modelMark{uid: a.in.uid, key: a.in.key, gateway: n, decider: decider})
		}
	}
}

// remember remembers for what a tag was written.
func (a *modelAttempt) remember(tag string, want modelMark) {
	if got, _ := modelMarks.LoadOrStore(tag, want); got != want {
		a.violate("the tag %q stands for %v and %v", tag, got, want)
	}
}

// checkFields checks that the application becomes as the demand wants it.
func (a *modelAttempt) checkFields(n int, d Demand) {
	ids, ok := a.in.policyIDs(d, a.in.gateways[n].class)
	sorted := func(list []provider.AccessPolicyID) []provider.AccessPolicyID {
		return slices.Sorted(slices.Values(list))
	}
	switch {
	case !ok:
		a.violate("writes %s, whose policies cannot be used", a.Hostname)
	case !slices.Equal(sorted(ids), sorted(a.Spec.Policies)):
		a.violate("writes the policies %v for %s, not %v", a.Spec.Policies, a.Hostname, ids)
	case a.Spec.SessionDuration != d.SessionDuration:
		a.violate("writes a session of %s for %s", a.Spec.SessionDuration, a.Hostname)
	case a.Spec.BindingCookie != strings.HasPrefix(a.Hostname, "*."):
		a.violate("writes the binding cookie %t for %s", a.Spec.BindingCookie, a.Hostname)
	}
}

// checkPrecedence checks that no other Gateway's demand precedes.
func (a *modelAttempt) checkPrecedence(n int, d *Demand) {
	for m := range a.in.gateways {
		other := a.in.gateways[m].demandOf(d.Hostname)
		if m != n && other != nil && other.Permitted && a.in.gateways[m].known() == ownership.Accepted && other.Level < d.Level {
			a.violate("writes %s for g%d, although the demand of g%d precedes", a.Hostname, n, m)
		}
	}
}

// external returns an application without a tag of the installation that concerns the
// hostname, as the process knows it, or nil.
func (in *modelInstall) external(hostname string) *provider.Application {
	for n := range in.seen.list {
		a := &in.seen.list[n]
		_, managed := in.mark(*a)
		if !managed && slices.ContainsFunc(a.Domains, func(domain string) bool { return overlaps(domain, hostname) }) {
			return a
		}
	}
	return nil
}

// checkCreate checks that an application may be created.
func (a *modelAttempt) checkCreate() {
	n := gatewayIndex(a.Gateway)
	if a.violation != "" {
		return
	}
	d := a.in.gateways[n].demandOf(a.Hostname)
	exact := func(app provider.Application) bool { return slices.Contains(app.Domains, a.Hostname) }
	switch external := a.in.external(a.Hostname); {
	case external != nil && a.in.entries[a.in.gateways[n].class][nameIndex(a.Hostname)] == specNone:
		a.violate("creates %s below %s, which belongs to another client", a.Hostname, describeApplication(*external))
	case slices.ContainsFunc(a.in.seen.list, exact):
		a.violate("creates %s, for which there is an application", a.Hostname)
	case a.in.owned() >= a.in.limit && !a.Spec.Bypass:
		a.violate("creates %s above maxApplications", a.Hostname)
	case slices.Contains(a.Spec.Tags, tagRevoke):
		a.violate("creates %s with the tag for a revocation", a.Hostname)
	case a.Hostname == modelNames[modelW] && d != nil && d.Level == LevelPolicy:
		a.checkBypassesFirst(n, d)
	}
}

// owned counts the installation's applications, as the process knows them.
func (in *modelInstall) owned() int {
	n := 0
	for _, a := range in.seen.list {
		if _, managed := in.mark(a); managed {
			n++
		}
	}
	return n
}
