package dns

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelOutcome is how a step ends.
type modelOutcome uint8

const (
	modelSucceeds   modelOutcome = iota
	modelFails                   // the request was not sent
	modelLost                    // the batch was applied, and the answer was lost
	modelLater                   // the batch is applied after the caller gave up
	modelCrash                   // the process restarts after the batch was applied
	modelCrashLater              // the process restarts, and the batch is applied afterwards
)

var modelOutcomeNames = [...]string{"", "-> fails", "-> applied, answer lost", "-> timeout, applied later", "-> applied, then the process restarts", "-> the process restarts, applied later"}

// outcomesOf returns how the step can end.
func outcomesOf(s Step) []modelOutcome {
	switch s.Action {
	case Apply:
		return []modelOutcome{modelSucceeds, modelFails, modelLost, modelLater, modelCrash, modelCrashLater}
	case ConcludeAdoptions:
		return []modelOutcome{modelSucceeds, modelCrash}
	case ReadZone, ReadUsage, ReadCertificates, ReadRecords:
		return []modelOutcome{modelSucceeds, modelFails}
	default:
		return []modelOutcome{modelSucceeds}
	}
}

var errModelUnavailable = &provider.UnavailableError{Err: errors.New("timeout")}

// plan decides about the next step of an installation.
func (w *modelWorld) plan(i int) (Facts, Step) {
	w.track(i)
	f := w.facts(i)
	f.Memory = Observe(f)
	s := Decide(f)
	if w.rules != nil && w.rules.pure {
		w.checkPure(i, f, s)
	}
	if w.rules != nil && w.rules.step != nil {
		s = w.rules.step(w, f, s)
	}
	return f, s
}

// execute executes a step.
func (w *modelWorld) execute(i int, f Facts, s Step, o modelOutcome) {
	in := &w.installs[i]
	in.memory = f.Memory
	if s.Ends() {
		in.due, in.wake, in.steps = false, 0, 0
		if s.Action == Wait {
			w.checkWait(s)
			in.wake = w.now + s.Delay
		}
		return
	}
	if in.steps++; in.steps > modelMaxSteps {
		w.violate("the steps continue without a wait: %s", describeStep(s))
		return
	}
	w.check(i, f, s)
	if w.violation != "" {
		return
	}
	sent := w.uptime(i)
	r := w.perform(i, f, s, o)
	switch o {
	case modelCrash, modelCrashLater:
		w.restart(i)
		return
	case modelLost, modelLater:
		w.pass(provider.CallTimeout)
	default:
		if s.Action == Apply {
			w.pass(modelAnswer) // a read that was sent before the batch does not show its changes
		}
	}
	r.Sent, r.Uptime = sent, w.uptime(i)
	if r.Err == nil {
		w.concludeAdoptions(i, s)
	}
	before := w.memoryKey(i, f.Memory)
	in.memory = Conclude(f.Memory, s, r)
	if w.memoryKey(i, f.Memory) != before {
		w.violate("Conclude changes the Memory that it gets")
	}
}

// checkPure checks that a decision and a report change no Memory, and that they are the same
// the next time.
func (w *modelWorld) checkPure(i int, f Facts, s Step) {
	before, after := w.memoryKey(i, w.installs[i].memory), w.memoryKey(i, f.Memory)
	report, changes := NewReport(f), Plan(f)
	again := w.facts(i)
	again.Memory = Observe(again)
	switch {
	case w.memoryKey(i, w.installs[i].memory) != before:
		w.violate("Observe changes the Memory that it gets")
	case w.memoryKey(i, again.Memory) != after:
		w.violate("Observe returns another Memory the second time")
	case describeStep(Decide(again)) != describeStep(s):
		w.violate("Decide returns another step the second time: %s; %s", describeStep(s), describeStep(Decide(again)))
	case !reflect.DeepEqual(NewReport(again), report), !reflect.DeepEqual(Plan(again), changes):
		w.violate("the report or the plan is another one the second time")
	case w.memoryKey(i, f.Memory) != after:
		w.violate("Decide, NewReport or Plan changes the Memory that it gets")
	}
}

// concludeAdoptions removes the requests that the step has ended.
func (w *modelWorld) concludeAdoptions(i int, s Step) {
	in := &w.installs[i]
	for _, a := range s.Adoptions {
		in.requests = slices.DeleteFunc(slices.Clone(in.requests), func(r Adoption) bool { return r.Name == a.Name && r.Requested == a.Requested })
		w.checkOutcome(i, s, a)
	}
}

// perform executes the step's request.
func (w *modelWorld) perform(i int, f Facts, s Step, o modelOutcome) Result {
	in := &w.installs[i]
	switch {
	case s.Action == ConcludeAdoptions:
		return Result{}
	case o == modelFails:
		return Result{Err: errModelUnavailable}
	case in.revoked || in.noToken:
		return Result{Err: provider.ErrForbidden}
	}
	switch s.Action {
	case ReadZone:
		return Result{Zones: w.zone.zones()}
	case ReadUsage:
		return Result{Usage: provider.Usage{Records: len(w.zone.records), Quota: w.zone.quota}}
	case ReadCertificates:
		return Result{Hosts: []string{"*.example.com", "example.com"}}
	case ReadRecords:
		return Result{Records: w.read(i, f, s.Names)}
	case Apply:
		return w.performBatch(i, s, o)
	default:
		w.violate("unknown action %q", s.Action)
		return Result{}
	}
}

// zones returns the zones that the token can read.
func (z *modelZone) zones() []provider.Zone {
	return []provider.Zone{{ID: modelZoneID, Name: modelZoneName, AccountID: z.account, Status: z.status, Type: "full"}}
}

func (w *modelWorld) read(i int, f Facts, names []string) []provider.Record {
	found := slices.Clone(w.zone.records)
	if len(names) > 0 {
		found = slices.DeleteFunc(found, func(r provider.Record) bool { return !slices.Contains(names, r.Name) })
	}
	w.installs[i].seen.remember(found, names, w.now)
	if w.rules != nil && w.rules.read != nil {
		found = w.rules.read(w, f, found)
	}
	return found
}

// remember merges what was read.
func (s *modelSeen) remember(found []provider.Record, names []string, now time.Duration) {
	if len(names) == 0 || !s.any {
		*s = modelSeen{records: found, known: found, at: now, names: names, any: true}
		return
	}
	kept := slices.DeleteFunc(slices.Clone(s.records), func(r provider.Record) bool { return slices.Contains(names, r.Name) })
	if s.at == now && s.names != nil {
		names = slices.Concat(s.names, names)
	} else if s.at == now {
		names = nil
	}
	found = append(kept, found...)
	*s = modelSeen{records: found, known: found, at: now, names: names, any: true}
}

// change updates what the process knows after its own batch.
func (s *modelSeen) change(b provider.Batch, changed []provider.Record) {
	s.known = slices.DeleteFunc(slices.Clone(s.known), func(r provider.Record) bool {
		return slices.Contains(b.Deletes, r.ID) || slices.ContainsFunc(changed, func(c provider.Record) bool { return c.ID == r.ID })
	})
	s.known = append(s.known, changed...)
}

// find returns the record as it was last read, and whether that read was right
// before now.
func (s *modelSeen) find(id provider.RecordID, now time.Duration) (r provider.Record, found, fresh bool) {
	for _, r := range s.records {
		if r.ID == id {
			return r, true, now-s.at <= modelReadAge && (s.names == nil || slices.Contains(s.names, r.Name))
		}
	}
	return provider.Record{}, false, false
}

// performBatch applies the step's batch, or remembers that it is applied later.
func (w *modelWorld) performBatch(i int, s Step, o modelOutcome) Result {
	if o == modelLater || o == modelCrashLater {
		in := &w.installs[i]
		until := w.now + provider.CallTimeout
		if o == modelLater {
			until += provider.CallTimeout // which pass while the caller waits
		}
		in.late = append(slices.Clone(in.late), modelLate{batch: s.Batch, until: until})
		return Result{Err: errModelUnavailable}
	}
	records, err := w.zone.apply(s.Batch, w.now)
	if err == nil {
		w.applied = w.now
	}
	if o == modelLost {
		return Result{Err: errModelUnavailable}
	}
	if err == nil {
		w.installs[i].seen.change(s.Batch, records)
	}
	return Result{Records: records, Err: err}
}

// arrive applies the first late batch of an installation.
func (w *modelWorld) arrive(i int) {
	in := &w.installs[i]
	_, err := w.zone.apply(in.late[0].batch, w.now)
	w.note = "the late batch is applied"
	if err != nil {
		w.note = "the late batch fails: " + err.Error()
	}
	in.late = in.late[1:]
}

// pass lets time pass: nameservers notice changes, late batches are applied, retiring
// Tunnels end, and delays end.
func (w *modelWorld) pass(d time.Duration) {
	w.now += d
	for i := range w.count {
		in := &w.installs[i]
		for len(in.late) > 0 && in.late[0].until <= w.now {
			w.arrive(i)
		}
		if in.wake != 0 && in.wake <= w.now {
			w.requeue(i)
		}
		w.retire(i)
	}
	w.zone.settle(w.now)
}

// retire deletes the Tunnel objects of retiring Gateways whose records are gone, or which
// have waited long enough.
func (w *modelWorld) retire(i int) {
	in := &w.installs[i]
	if in.due {
		return
	}
	for g := range in.gateways {
		gw := &in.gateways[g]
		if !gw.tunnel || gw.state() != ownership.Retiring {
			continue
		}
		released := NewReport(w.facts(i)).Released[gatewayName(g, gw)]
		if released {
			w.checkReleased(i, g)
		}
		if released || w.now-gw.gone >= modelRetirement {
			gw.tunnel, gw.known = false, false
			gw.tunnels++
			w.requeue(i)
		}
	}
}

// nextMoment returns when the next delay ends, or 0.
func (w *modelWorld) nextMoment() time.Duration {
	next := time.Duration(0)
	add := func(at time.Duration) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for i := range w.count {
		in := &w.installs[i]
		add(in.wake)
		for _, l := range in.late {
			add(l.until)
		}
		for g := range in.gateways {
			if gw := &in.gateways[g]; gw.tunnel && gw.state() == ownership.Retiring {
				add(max(gw.gone+modelRetirement, w.now+time.Second))
			}
		}
	}
	for _, n := range w.zone.notices {
		add(n.due)
	}
	return next
}

// busy reports whether an installation decides now.
func (w *modelWorld) busy() bool {
	for i := range w.count {
		if w.installs[i].due {
			return true
		}
	}
	return false
}
