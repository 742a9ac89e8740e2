package access

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

// modelTransition is a transition between states.
type modelTransition struct {
	kind       modelChange
	install, n uint8
	outcome    uint8
}

type modelChange uint8

const (
	modelStep    modelChange = iota // the account's next step
	modelDecides                    // the decision about Gateway n
	modelTime                       // time passes until the next moment
	modelArrive                     // late writes are applied
	modelHappen                     // n is the event
)

// modelScenario is how an exploration starts and what can happen.
type modelScenario struct {
	name   string
	start  func(w *modelWorld)
	events []modelEvent
	depth  int
	rules  *modelRules
}

var _ exploration.Model[modelWorld, modelTransition] = &modelScenario{}

// Root returns the first state.
func (s *modelScenario) Root() *modelWorld {
	w := newModelWorld()
	w.rules = s.rules
	s.start(w)
	w.track()
	return w
}

// Key returns the state's canonical form.
func (s *modelScenario) Key(w *modelWorld) [2]uint64 { return w.key() }

// Violation returns the invariant that was violated.
func (s *modelScenario) Violation(w *modelWorld) string { return w.violation }

// Quiet reports whether no further fault is tried.
func (s *modelScenario) Quiet(w *modelWorld) bool { return w.quiet() }

// Now returns the time.
func (s *modelScenario) Now(w *modelWorld) time.Duration { return w.now }

// Expand visits the next states.
func (s *modelScenario) Expand(w *modelWorld, cost int, visit func(*modelWorld, modelTransition)) {
	preempts := w.expandDue(cost, visit)
	if cost == 0 {
		w.expandFree(!preempts, visit)
		return
	}
	for n, e := range s.events {
		next := *w
		next.disturbed, next.note = next.now, ""
		if e.apply(&next) {
			next.track()
			visit(&next, modelTransition{kind: modelHappen, n: uint8(n)}) // #nosec G115 -- small
		}
	}
}

// expandDue visits the states after what is due, and reports whether anything is. A Gateway
// that was never decided about comes last: it may come at any time.
func (w *modelWorld) expandDue(cost int, visit func(*modelWorld, modelTransition)) bool {
	preempts := false
	for i := range w.count {
		in := &w.installs[i]
		for n := range in.gateways {
			if in.gateways[n].due && in.gateways[n].reported != nil {
				w.expandGateway(i, n, cost, preempts, visit)
				preempts = true
			}
		}
		if in.due {
			w.expandStep(i, cost, preempts, visit)
			preempts = true
		}
	}
	for i, n := range w.undecided() {
		w.expandGateway(i, n, cost, preempts && cost == 1, visit)
	}
	return preempts
}

// undecided returns the Gateways that were never decided about, with their installations.
func (w *modelWorld) undecided() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := range w.count {
			for n := range w.installs[i].gateways {
				if g := &w.installs[i].gateways[n]; g.due && g.reported == nil && !yield(i, n) {
					return
				}
			}
		}
	}
}

// expandGateway visits the states after the decision about a Gateway. That it preempts
// another one that is due counts as a fault.
func (w *modelWorld) expandGateway(i, n, cost int, preempts bool, visit func(*modelWorld, modelTransition)) {
	if preempts && cost == 0 {
		return
	}
	for _, o := range w.writeOutcomes(i, n) {
		if preempts && o == writeSucceeds && w.installs[i].gateways[n].reported != nil || !preempts && min(int(o), 1) == cost {
			next := *w
			l := modelTransition{modelDecides, uint8(i), uint8(n), uint8(o)} // #nosec G115 -- small
			next.decide(l)
			visit(&next, l)
		}
	}
}

// writeOutcomes returns how the decision about a Gateway can end.
func (w *modelWorld) writeOutcomes(i, n int) []modelWrite {
	if !w.writes(i, n) {
		return []modelWrite{writeSucceeds}
	}
	return []modelWrite{writeSucceeds, writeFails, writeLost, writeCrash, writeBefore}
}

func (w *modelWorld) decide(l modelTransition) {
	w.note = ""
	if modelWrite(l.outcome) != writeSucceeds {
		w.disturbed = w.now
	}
	w.build(int(l.install), int(l.n), modelWrite(l.outcome))
	w.track()
}

// expandStep visits the states after the account's next step.
func (w *modelWorld) expandStep(i, cost int, preempts bool, visit func(*modelWorld, modelTransition)) {
	if preempts && cost == 0 {
		return
	}
	base := *w
	f, s := base.plan(i)
	if base.violation != "" {
		visit(&base, modelTransition{kind: modelStep, install: uint8(i)}) // #nosec G115 -- small
		return
	}
	for _, o := range outcomesOf(s) {
		if preempts && o == modelSucceeds || !preempts && min(int(o), 1) == cost {
			next := base
			if o != modelSucceeds {
				next.disturbed = next.now
			}
			next.execute(i, f, s, o)
			next.track()
			visit(&next, modelTransition{kind: modelStep, install: uint8(i), outcome: uint8(o)}) // #nosec G115 -- small
		}
	}
}

// expandFree visits the states after what happens without a fault.
func (w *modelWorld) expandFree(idle bool, visit func(*modelWorld, modelTransition)) {
	if idle {
		next := *w
		if next.advance() {
			visit(&next, modelTransition{kind: modelTime})
		}
	}
	for i := range w.count {
		if len(w.installs[i].late) > 0 {
			next := *w
			next.arrive(i)
			next.track()
			visit(&next, modelTransition{kind: modelArrive, install: uint8(i)}) // #nosec G115 -- small
		}
	}
}

// advance lets time pass until the next moment, and reports whether there is one.
func (w *modelWorld) advance() bool {
	next := w.nextMoment()
	if next == 0 {
		return false
	}
	w.note = ""
	w.pass(max(next-w.now, 0))
	w.track()
	return true
}

// Next returns what happens next without a fault or change.
func (s *modelScenario) Next(w *modelWorld) (modelTransition, bool) {
	for i := range w.count {
		in := &w.installs[i]
		for n := range in.gateways {
			if in.gateways[n].due && in.gateways[n].reported != nil {
				return modelTransition{kind: modelDecides, install: uint8(i), n: uint8(n)}, true // #nosec G115 -- small
			}
		}
		if in.due {
			return modelTransition{kind: modelStep, install: uint8(i)}, true // #nosec G115 -- small
		}
	}
	for i, n := range w.undecided() {
		return modelTransition{kind: modelDecides, install: uint8(i), n: uint8(n)}, true // #nosec G115 -- small
	}
	return modelTransition{kind: modelTime}, w.nextMoment() != 0
}

// Apply applies a transition and describes it.
func (s *modelScenario) Apply(w *modelWorld, l modelTransition) string {
	w.note = ""
	i := int(l.install)
	switch l.kind {
	case modelStep:
		f, step := w.plan(i)
		if modelOutcome(l.outcome) != modelSucceeds {
			w.disturbed = w.now
		}
		w.execute(i, f, step, modelOutcome(l.outcome))
		w.track()
		return fmt.Sprintf("installation %d: %s %s", i, describeStep(step), modelOutcomeNames[l.outcome]) + w.note
	case modelDecides:
		w.decide(l)
		return fmt.Sprintf("installation %d: decides about g%d:%s %s", i, l.n, w.note, modelWriteNames[l.outcome])
	case modelTime:
		before := w.now
		w.advance()
		return fmt.Sprintf("%s pass. %s", w.now-before, w.note)
	case modelArrive:
		w.arrive(i)
		w.track()
		return w.note
	case modelHappen:
		w.disturbed = w.now
		s.events[l.n].apply(w)
		w.track()
		return "*** " + s.events[l.n].name
	}
	return ""
}

// Describe describes the account and the rules in effect.
func (s *modelScenario) Describe(w *modelWorld) string {
	var b strings.Builder
	b.WriteString("account:")
	for _, a := range w.cloud.applications {
		b.WriteString(" " + describeApplication(a.Application))
	}
	for i := range w.count {
		for n := range w.installs[i].gateways {
			g := &w.installs[i].gateways[n]
			if !g.present() {
				continue
			}
			fmt.Fprintf(&b, "\ninstallation %d, g%d: demands", i, n)
			for name := range modelNames {
				if d := w.installs[i].decides(n, name); d.spec.requires() {
					fmt.Fprintf(&b, " %s=%s", strings.TrimSuffix(modelNames[name], ".example.com"), d)
				}
			}
			fmt.Fprintf(&b, "; in effect %s", g.configuration.String())
			if g.envoy {
				fmt.Fprintf(&b, "; Envoy %s", g.published.String())
			}
		}
	}
	return b.String()
}
