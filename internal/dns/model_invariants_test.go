package dns

import (
	"slices"
	"strings"
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelMark is what a mark stands for.
type modelMark struct {
	uid, key     int
	name, target string
}

// modelMarks are all comments that installations have written. A mark is valid if it was
// written for the same record: the model knows no signature, so it finds marks that can be
// copied.
var modelMarks sync.Map // comment → modelMark

// marked reports whether the record has a valid mark of the installation. Without a key, it
// can verify none.
func (in *modelInstall) marked(r provider.Record) bool {
	mark, known := modelMarks.Load(r.Comment)
	return !in.noKey && known && r.Type == "CNAME" && mark == in.mark(r.Name, r.Content)
}

func (in *modelInstall) mark(name, target string) modelMark {
	return modelMark{uid: in.uid, key: in.key, name: name, target: target}
}

// record remembers a mark that a batch writes.
func (w *modelWorld) recordMark(i int, comment, name, target string) {
	want := w.installs[i].mark(name, target)
	if got, _ := modelMarks.LoadOrStore(comment, want); got != want {
		w.violate("the mark %q stands for %v and %v", comment, got, want)
	}
	if len(comment) > 92 || !strings.HasPrefix(comment, "tgw cluster ") {
		w.violate("the mark %q has the wrong form", comment)
	}
}

// modelAttempt is a batch that is about to be sent.
type modelAttempt struct {
	*modelWorld
	in *modelInstall
	i  int
	f  Facts
	s  Step
	// replaced are the names that the batch creates, by target.
	replaced map[string]string
}

// check checks that the step is allowed.
func (w *modelWorld) check(i int, f Facts, s Step) {
	switch {
	case s.Action == ReadRecords && len(s.Names) > provider.MaxNames:
		w.violate("a read has %d names", len(s.Names))
	case s.ID != modelZoneID && s.Action != ReadZone && s.Action != ConcludeAdoptions:
		w.violate("%s in zone %q", s.Action, s.ID)
	case s.Action == Apply:
		a := &modelAttempt{modelWorld: w, in: &w.installs[i], i: i, f: f, s: s, replaced: map[string]string{}}
		a.checkBatch()
		a.checkOperations()
		a.checkResolution()
	}
}

// checkBatch checks that the process may change the zone.
func (a *modelAttempt) checkBatch() {
	switch n := a.s.Batch.Operations(); {
	case a.in.mode != v1alpha1.DNSManage:
		a.violate("the zone changes in mode %s", a.in.mode)
	case a.in.noKey:
		a.violate("the zone changes without a key")
	case n == 0 || n > provider.MaxBatch:
		a.violate("a batch has %d operations", n)
	case len(a.s.Changes) == 0:
		a.violate("a batch without a description")
	}
}

func (a *modelAttempt) checkOperations() {
	for _, c := range a.s.Batch.Creates {
		a.replaced[c.Name] = c.Target
		a.recordMark(a.i, c.Comment, c.Name, c.Target)
	}
	for _, id := range a.s.Batch.Deletes {
		if r, ok := a.target("delete", id); ok {
			a.checkDelete(r)
		}
	}
	for _, p := range a.s.Batch.Patches {
		if r, ok := a.target("patch", p.ID); ok {
			a.checkPatch(r, p)
		}
	}
	for _, p := range a.s.Batch.Puts {
		if r, ok := a.target("put", p.ID); ok {
			a.recordMark(a.i, p.CNAME.Comment, p.CNAME.Name, p.CNAME.Target)
			a.checkAdopt(r, p.CNAME.Name, p.CNAME.Target)
		}
	}
	for _, c := range a.s.Batch.Creates {
		if !slices.ContainsFunc(a.s.Batch.Deletes, func(id provider.RecordID) bool {
			r, _, _ := a.in.seen.find(id, a.now)
			return r.Name == c.Name
		}) {
			a.checkCreate(c)
		}
	}
}

// target returns the record that an operation changes, as the process has read it. The read
// must be right before the change.
func (a *modelAttempt) target(operation string, id provider.RecordID) (provider.Record, bool) {
	r, found, fresh := a.in.seen.find(id, a.now)
	switch {
	case !found:
		a.violate("%s of a record that was never read", operation)
	case !fresh:
		a.violate("%s of %s without a read right before it", operation, r.Name)
	case !a.in.marked(r) && a.adoption(r) == nil:
		a.violate("%s of %s, which has no valid mark and is not adopted", operation, describeRecord(r))
	}
	return r, a.violation == ""
}

// adoption returns the request to adopt the record as it is, or nil.
func (a *modelAttempt) adoption(r provider.Record) *Adoption {
	for n := range a.in.requests {
		q := &a.in.requests[n]
		if q.Zone == modelZoneName && q.Name == r.Name && q.ID == string(r.ID) && q.Type == r.Type && q.Content == r.Content &&
			a.now-q.Requested.Sub(modelEpoch) <= modelAdoptionAge {
			return q
		}
	}
	return nil
}

// checkCreate checks that a record may be created.
func (a *modelAttempt) checkCreate(c provider.CNAME) {
	g := a.in.owner(c.Target)
	if g < 0 {
		a.violate("creates %s for a tunnel that no Tunnel object has", c.Name)
		return
	}
	a.checkPublisher("creates", g, c.Name)
	h := a.in.gateways[g].hostname(c.Name)
	view := modelView(a.zone.records)
	if a.violation == "" && !h.Served && !view.reaches(c.Name, a.in.gateways[g].id(a.in.origin, g)) {
		a.violate("creates %s, which no route serves", c.Name)
	}
}

// checkPublisher checks that a record of the name may lead to the Gateway.
func (a *modelAttempt) checkPublisher(verb string, g int, name string) {
	gw := &a.in.gateways[g]
	h := gw.hostname(name)
	switch {
	case gw.state() != ownership.Accepted:
		a.violate("%s %s for a Gateway in state %v", verb, name, gw.state())
	case h == nil:
		a.violate("%s %s for a Gateway that does not want it", verb, name)
	case gw.offline:
		a.violate("%s %s before a connector was connected", verb, name)
	case a.in.permission && !h.Permitted:
		a.violate("%s %s without permission", verb, name)
	case a.in.excludes(name):
		a.violate("%s %s, which is excluded", verb, name)
	case a.in.conflicts(g):
		a.violate("%s %s for a class whose settings conflict", verb, name)
	}
}

// checkDelete checks that a record may be deleted.
func (a *modelAttempt) checkDelete(r provider.Record) {
	if target, again := a.replaced[r.Name]; again {
		a.checkAdopt(r, r.Name, target)
		return
	}
	if !a.in.marked(r) {
		a.violate("deletes %s, which it may only adopt", r.Name)
		return
	}
	g := a.in.owner(r.Content)
	if g < 0 {
		a.violate("deletes %s, which is an orphan", r.Name)
		return
	}
	state, t := a.in.gateways[g].state(), &a.in.names[nameIndex(r.Name)]
	switch {
	case !a.in.listed:
		a.violate("deletes %s while it is not known which Gateways exist", r.Name)
	case a.in.keeps(g, r.Name) || state == ownership.Departed:
		a.violate("deletes %s of a Gateway in state %v", r.Name, state)
	case a.in.excludes(r.Name):
		a.violate("deletes %s, which is excluded", r.Name)
	case a.in.knownToWant(r.Name):
		a.violate("deletes %s, which a Gateway wants", r.Name)
	case state != ownership.Retiring && a.now-t.unwanted < modelDeletionDelay:
		a.violate("deletes %s, which is unwanted for %s", r.Name, a.now-t.unwanted)
	}
}

// keeps reports whether the Gateway's state keeps its records, although it may not want the
// name. A Gateway that is not accepted loses only what it may not publish.
func (in *modelInstall) keeps(g int, name string) bool {
	gw := &in.gateways[g]
	switch gw.state() {
	case ownership.Unknown, ownership.Frozen:
		return true
	case ownership.Rejected:
		h := gw.hostname(name)
		return h == nil || h.Permitted || !in.permission
	default: // Accepted, Departed, Retiring
		return false
	}
}

// checkPatch checks that a record may be patched so.
func (a *modelAttempt) checkPatch(r provider.Record, p provider.Patch) {
	target := r.Content
	if p.Target != nil {
		target = *p.Target
	}
	if p.Comment != nil && *p.Comment != "" {
		a.recordMark(a.i, *p.Comment, r.Name, target)
	}
	switch {
	case p.Comment != nil && *p.Comment == "":
		a.checkRelease(r, target)
	case !a.in.marked(r):
		a.checkAdopt(r, r.Name, target)
	case target != r.Content:
		a.checkMove(r, target)
	default:
		a.checkPublisher("repairs", max(0, a.in.owner(target)), r.Name)
	}
}

// checkRelease checks that a record may lose its mark.
func (a *modelAttempt) checkRelease(r provider.Record, target string) {
	g := a.in.owner(r.Content)
	switch {
	case !a.in.excludes(r.Name):
		a.violate("removes the mark of %s, which is not excluded", r.Name)
	case target != r.Content:
		a.violate("changes %s, which is excluded", r.Name)
	case g >= 0 && !slices.Contains([]ownership.State{ownership.Accepted, ownership.Rejected, ownership.Retiring}, a.in.gateways[g].state()):
		a.violate("removes the mark of %s of a Gateway in state %v", r.Name, a.in.gateways[g].state())
	}
}

// checkAdopt checks that a record may be adopted and lead to the target.
func (a *modelAttempt) checkAdopt(r provider.Record, name, target string) {
	q := a.adoption(r)
	switch {
	case r.Name != name:
		a.violate("replaces %s by %s", r.Name, name)
	case q == nil:
		a.violate("replaces %s without a request", name)
	default:
		direct := modelView(a.zone.records)
		if own, _ := direct.leads(name); r.Content == target || own == target {
			return // the record leads here already
		}
		g := a.in.owner(target)
		if g < 0 {
			a.violate("adopts %s for a tunnel that no Tunnel object has", name)
			return
		}
		a.checkPublisher("adopts", g, name)
	}
}

// checkMove checks that a record may lead to another tunnel.
func (a *modelAttempt) checkMove(r provider.Record, target string) {
	to := a.in.owner(target)
	if to < 0 {
		a.violate("moves %s to a tunnel that no Tunnel object has", r.Name)
		return
	}
	a.checkPublisher("moves", to, r.Name)
	if !a.in.listed {
		a.violate("moves %s while it is not known which Gateways exist", r.Name)
	}
	if a.violation != "" {
		return
	}
	namespace := a.in.gateways[to].hostname(r.Name).Namespace
	if from := a.in.owner(r.Content); from >= 0 {
		a.checkHolder(r.Name, from, namespace)
		return
	}
	claimed := a.in.names[nameIndex(r.Name)].namespace
	if since := a.now - a.in.boot; since < modelDeletionDelay && !slices.Contains(claimed[:], namespace) {
		a.violate("moves %s, whose tunnel is gone, %s after a start", r.Name, since)
	}
}

// checkHolder checks that a record may move away from the Gateway that holds it to a
// namespace.
func (a *modelAttempt) checkHolder(name string, from int, namespace string) {
	state, t := a.in.gateways[from].state(), &a.in.names[nameIndex(name)]
	since := a.now - t.left[from]
	switch {
	case a.in.keeps(from, name):
		a.violate("moves %s away from a Gateway in state %v", name, state)
	case t.left[from] == 0:
		a.violate("moves %s away from a Gateway that wants it", name)
	case state == ownership.Departed && since < modelDeletionDelay:
		a.violate("moves %s away from a Gateway that is gone for %s", name, since)
	case t.namespace[from] != namespace && since < modelDeletionDelay:
		a.violate("moves %s to namespace %s, %s after namespace %s left", name, namespace, since, t.namespace[from])
	}
}

// checkOutcome checks the result of an adoption request. A record of the process that was
// read before can have been adopted without a change.
func (w *modelWorld) checkOutcome(i int, s Step, o AdoptionOutcome) {
	in := &w.installs[i]
	marked := func(r provider.Record) bool { return r.Name == o.Name && in.marked(r) }
	if s.Action == ConcludeAdoptions && o.Result == v1alpha1.RecordAdopted && !slices.ContainsFunc(in.seen.records, marked) {
		w.violate("%s is reported as adopted, and is not", o.Name)
	}
	if s.Action == Apply && o.Result == v1alpha1.RecordAdopted && s.Batch.Operations() == 0 {
		w.violate("%s is adopted without a change", o.Name)
	}
	if o.Message == "" {
		w.violate("the result of the adoption of %s has no message", o.Name)
	}
}

// checkReleased checks that a retiring Gateway has no record left that has to be handed over
// or deleted.
func (w *modelWorld) checkReleased(i, g int) {
	in := &w.installs[i]
	target := in.gateways[g].id(in.origin, g).Hostname()
	for _, r := range in.seen.records {
		if live := w.zone.find(r.ID); live < 0 || w.zone.records[live] != r {
			continue
		}
		if r.Content == target && in.marked(r) && !in.wanted(r.Name) && !in.excludes(r.Name) && in.mode == v1alpha1.DNSManage && !in.revoked && !in.noToken {
			w.violate("the Gateway is released, and %s still leads to it", r.Name)
		}
	}
}

// checkWait checks that a wait is not a loop without a pause.
func (w *modelWorld) checkWait(s Step) {
	if s.Delay <= 0 {
		w.violate("waits %s", s.Delay)
	}
}
