package access

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelOutcome is how a step for the account ends.
type modelOutcome uint8

const (
	modelSucceeds   modelOutcome = iota
	modelFails                   // nothing was sent
	modelLost                    // the writes were applied, and the answers were lost
	modelLater                   // the writes are applied after the caller gave up
	modelCrash                   // the process restarts after the writes were applied
	modelCrashLater              // the process restarts, and the writes are applied afterwards
	modelPart                    // the first write was applied, and the others were not sent
)

var modelOutcomeNames = [...]string{
	"", "-> fails", "-> applied, answers lost", "-> timeout, applied later", "-> applied, then the process restarts",
	"-> the process restarts, applied later", "-> only the first is applied",
}

// outcomesOf returns how the step can end.
func outcomesOf(s Step) []modelOutcome {
	switch {
	case s.Action == Apply && len(s.Writes) > 1:
		return []modelOutcome{modelSucceeds, modelFails, modelLost, modelLater, modelCrash, modelCrashLater, modelPart}
	case s.Action == Apply:
		return []modelOutcome{modelSucceeds, modelFails, modelLost, modelLater, modelCrash, modelCrashLater}
	case s.Action == ConcludeAdoptions:
		return []modelOutcome{modelSucceeds, modelCrash}
	case s.Action == ReadApplications || s.Action == ReadPolicies:
		return []modelOutcome{modelSucceeds, modelFails}
	}
	return []modelOutcome{modelSucceeds}
}

// plan decides about the next step of an installation.
func (w *modelWorld) plan(i int) (Facts, Step) {
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

// execute executes a step, and gives what it means to the Gateways.
func (w *modelWorld) execute(i int, f Facts, s Step, o modelOutcome) {
	in := &w.installs[i]
	in.memory = f.Memory
	if s.Ends() {
		in.due, in.wake, in.steps = false, 0, 0
		if s.Action == Wait {
			if s.Delay <= 0 {
				w.violate("waits %s", s.Delay)
			}
			in.wake = w.now + s.Delay
		}
		w.publish(i)
		return
	}
	if in.steps++; in.steps > modelMaxSteps {
		w.violate("the steps continue without a wait: %s", describeStep(s))
		return
	}
	if w.check(i, f, s); w.violation != "" {
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
			w.pass(modelAnswer)
		}
	}
	r.Sent, r.Uptime = sent, w.uptime(i)
	if r.Err == nil {
		w.concludeAdoptions(i, s)
	}
	in.memory = Conclude(f.Memory, s, r)
	w.publish(i)
}

// publish makes the report, and makes the controller decide about the Gateways for which it
// says something else.
func (w *modelWorld) publish(i int) {
	in := &w.installs[i]
	f := w.facts(i)
	f.Memory = Observe(f)
	report := NewReport(f)
	for n := range in.gateways {
		g := &in.gateways[n]
		if !g.exists || g.reported == nil {
			continue
		}
		if in.report == nil || in.report.Read != report.Read || !reflect.DeepEqual(in.report.Gateways[gatewayName(n)], report.Gateways[gatewayName(n)]) {
			g.due = true
		}
	}
	in.report = &report
}

// checkPure checks that a decision and a report change no Memory, and that they are the same
// the next time.
func (w *modelWorld) checkPure(i int, f Facts, s Step) {
	before, after := w.memoryKey(i, w.installs[i].memory), w.memoryKey(i, f.Memory)
	report, writes := NewReport(f), Plan(f)
	again := w.facts(i)
	again.Memory = Observe(again)
	switch {
	case w.memoryKey(i, w.installs[i].memory) != before:
		w.violate("Observe changes the Memory that it gets")
	case w.memoryKey(i, again.Memory) != after:
		w.violate("Observe returns another Memory the second time")
	case describeStep(Decide(again)) != describeStep(s):
		w.violate("Decide returns another step the second time: %s; %s", describeStep(s), describeStep(Decide(again)))
	case !reflect.DeepEqual(NewReport(again), report), !reflect.DeepEqual(Plan(again), writes):
		w.violate("the report or the plan is another one the second time")
	case w.memoryKey(i, f.Memory) != after:
		w.violate("Decide, NewReport or Plan changes the Memory that it gets")
	}
}

// concludeAdoptions removes the requests that the step has ended.
func (w *modelWorld) concludeAdoptions(i int, s Step) {
	in := &w.installs[i]
	for _, a := range s.Adoptions {
		in.requests = slices.DeleteFunc(slices.Clone(in.requests), func(r Adoption) bool { return r.Hostname == a.Hostname && r.Requested == a.Requested })
		w.checkOutcome(i, s, a)
	}
}

// perform executes the step's requests.
func (w *modelWorld) perform(i int, f Facts, s Step, o modelOutcome) Result {
	in := &w.installs[i]
	err := error(nil)
	switch {
	case s.Action == ConcludeAdoptions:
		return Result{}
	case o == modelFails:
		err = errModelFailed
	case in.revoked || in.noToken:
		err = provider.ErrForbidden
	}
	switch {
	case s.Action == Apply:
		return Result{Writes: w.write(i, s, o, err)}
	case err != nil:
		return Result{Err: err}
	case s.Action == ReadPolicies:
		return Result{Policies: w.cloud.existing()}
	case s.Action == ReadApplications:
		list := w.cloud.list()
		if w.rules != nil && w.rules.read != nil {
			list = w.rules.read(w, f, list)
		}
		w.cloud.notice()
		in.seen = modelSeen{any: true, at: w.now, list: w.cloud.list()}
		return Result{Applications: list}
	}
	w.violate("unknown action %q", s.Action)
	return Result{}
}

// write executes the writes of a step, or remembers that they are applied later. err is
// what every write returns; nil if they are sent.
func (w *modelWorld) write(i int, s Step, o modelOutcome, err error) []WriteResult {
	in := &w.installs[i]
	results := make([]WriteResult, len(s.Writes))
	if o == modelLater || o == modelCrashLater {
		until := w.now + provider.CallTimeout
		if o == modelLater {
			until += provider.CallTimeout // which pass while the caller waits
		}
		in.late = append(slices.Clone(in.late), modelLate{writes: s.Writes, until: until, sent: w.now})
		err = errModelFailed
	}
	for n, write := range s.Writes {
		if write.Operation == Update {
			w.cloud.knowsOf(write.Last)
		}
		switch {
		case err != nil:
			results[n].Err = err
			continue
		case o == modelPart && n > 0:
			results[n].Err = errModelFailed
			continue
		}
		results[n] = w.cloud.write(write)
		if results[n].Err == nil {
			w.applied = w.now
		}
		switch {
		case o == modelLost:
			results[n] = WriteResult{Err: errModelFailed}
		case results[n].Err == nil:
			in.seen.change(write, results[n].Application)
		}
	}
	return results
}

// write executes one write.
func (c *modelCloud) write(write Write) WriteResult {
	var r WriteResult
	switch write.Operation {
	case EnsureTag:
		c.ensure(write.Tag)
	case Create:
		r.Application, r.Err = c.create(write.Spec)
	case Update:
		if r.Err = c.compare(write.Last); r.Err == nil {
			r.Application, r.Err = c.update(write.Last, write.Spec)
		}
	case Revoke:
		r.Err = c.revoke(write.Last)
	case Delete:
		if r.Err = c.compare(write.Last); r.Err == nil {
			c.remove(write.Last.ID)
		}
		if errors.Is(r.Err, provider.ErrNotFound) {
			r.Err = nil
		}
	}
	return r
}

// compare returns an error if the application covers something else or has other tags than
// before: the provider reads it before each write.
func (c *modelCloud) compare(last provider.Application) error {
	i := c.find(last.ID)
	if i < 0 {
		return provider.ErrNotFound
	}
	if a := c.applications[i]; !sameElements(a.Tags, last.Tags) || !sameElements(a.Domains, last.Domains) {
		return provider.ErrApplicationChanged
	}
	return nil
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// change updates what the process knows after its own write.
func (s *modelSeen) change(write Write, a provider.Application) {
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(known provider.Application) bool {
		return write.Operation == Update && known.ID == a.ID || write.Operation == Delete && known.ID == write.Last.ID
	})
	if write.Operation == Create || write.Operation == Update {
		s.list = append(s.list, a)
		slices.SortFunc(s.list, func(a, b provider.Application) int { return strings.Compare(string(a.ID), string(b.ID)) })
	}
}

// byTag returns the application with the AUD tag, or nil.
func (s *modelSeen) byTag(tag string) *provider.Application {
	for i := range s.list {
		if s.list[i].AUDTag == tag {
			return &s.list[i]
		}
	}
	return nil
}

// byID returns the application with the ID, or nil.
func (s *modelSeen) byID(id provider.ApplicationID) *provider.Application {
	for i := range s.list {
		if s.list[i].ID == id {
			return &s.list[i]
		}
	}
	return nil
}
