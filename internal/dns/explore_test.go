package dns

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

var exploreDepth = flag.Int("dns.depth", 0, "maximum number of faults and changes in a trace of the exploration; 0 means the depth of each scenario")

// maxModelNodes is the limit above which a scenario has too many states to explore, or no
// end.
const maxModelNodes = 1_000_000

// modelTransition is a transition between states.
type modelTransition struct {
	kind    modelKind
	install uint8
	n       uint8
}

type modelKind uint8

const (
	modelStep   modelKind = iota // n is the outcome
	modelTime                    // time passes until the next moment
	modelLearn                   // the process decides about Gateway n; 255: it lists the Gateways
	modelArrive                  // a late batch is applied
	modelHappen                  // n is the event
)

const modelLists = 255

// modelScenario is how an exploration starts and what can happen.
type modelScenario struct {
	name   string
	start  func(w *modelWorld)
	events []modelEvent
	depth  int
	rules  *modelRules
}

var _ exploration.Model[modelWorld, modelTransition] = &modelScenario{}

// explore visits every state that the scenario can reach.
func (s modelScenario) explore(enough int) *exploration.Exploration[modelWorld, modelTransition] {
	depth := max(1, s.depth-FewerFaults)
	if *exploreDepth > 0 {
		depth = *exploreDepth
	}
	return exploration.Explore(&s, exploration.Limits{Faults: depth, States: maxModelNodes, Enough: enough, Settled: modelSettled, Steps: 100 * modelMaxSteps})
}

// Root returns the first state.
func (s *modelScenario) Root() *modelWorld {
	w := newModelWorld()
	w.rules = s.rules
	s.start(w)
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

// Describe describes the zone.
func (s *modelScenario) Describe(w *modelWorld) string {
	return "zone: " + describeView(w.zone.records)
}

// Expand visits the next states at that cost: 0 without a fault or change, 1 with one.
func (s *modelScenario) Expand(w *modelWorld, cost int, visit func(*modelWorld, modelTransition)) {
	for n, preempts := 0, false; n < w.count; n++ {
		if w.installs[n].due {
			w.exploreStep(n, cost, preempts, visit)
			preempts = true
		}
	}
	if cost == 0 {
		w.exploreFree(visit)
		return
	}
	for n := range s.events {
		next := *w
		next.disturbed = next.now
		if s.events[n].apply(&next) {
			visit(&next, modelTransition{modelHappen, 0, uint8(n)}) // #nosec G115 -- small
		}
	}
}

// exploreStep visits the states after an installation's next step. If several installations
// are due, that another one than the first preempts it counts as a fault.
func (w *modelWorld) exploreStep(i, cost int, preempts bool, visit func(*modelWorld, modelTransition)) {
	if preempts && cost == 0 {
		return
	}
	base := *w
	f, s := base.plan(i)
	if base.violation != "" {
		visit(&base, modelTransition{modelStep, uint8(i), 0}) // #nosec G115 -- small
		return
	}
	for _, o := range outcomesOf(s) {
		if preempts && o == modelSucceeds || !preempts && min(int(o), 1) == cost {
			next := base
			if o != modelSucceeds {
				next.disturbed = next.now
			}
			next.execute(i, f, s, o)
			visit(&next, modelTransition{modelStep, uint8(i), uint8(o)}) // #nosec G115 -- small
		}
	}
}

// exploreFree visits the states after what happens without a fault: the process learns of
// Gateways, a late batch is applied, or time passes.
func (w *modelWorld) exploreFree(visit func(*modelWorld, modelTransition)) {
	for i := range w.count {
		in := &w.installs[i]
		if !in.listed {
			next := *w
			next.list(i)
			visit(&next, modelTransition{modelLearn, uint8(i), modelLists}) // #nosec G115 -- small
			continue
		}
		for g := range in.gateways {
			if gw := &in.gateways[g]; !gw.known && (gw.exists || gw.tunnel) {
				next := *w
				next.decide(i, g)
				visit(&next, modelTransition{modelLearn, uint8(i), uint8(g)}) // #nosec G115 -- small
			}
		}
		if len(in.late) > 0 {
			next := *w
			next.arrive(i)
			visit(&next, modelTransition{modelArrive, uint8(i), 0}) // #nosec G115 -- small
		}
	}
	if !w.busy() {
		next := *w
		if next.advance() {
			visit(&next, modelTransition{kind: modelTime})
		}
	}
}

// advance lets time pass until the next moment, and reports whether there is one.
func (w *modelWorld) advance() bool {
	next := w.nextMoment()
	if next == 0 {
		return false
	}
	w.pass(max(next-w.now, 0))
	return true
}

// Apply applies a transition and describes it.
func (s *modelScenario) Apply(w *modelWorld, l modelTransition) string {
	w.note = ""
	switch i := int(l.install); l.kind {
	case modelStep:
		f, next := w.plan(i)
		if l.n != uint8(modelSucceeds) {
			w.disturbed = w.now
		}
		step := fmt.Sprintf("installation %d: %s %s", i, describeStep(next), modelOutcomeNames[l.n])
		w.execute(i, f, next, modelOutcome(l.n))
		w.note = step + w.note
	case modelTime:
		before := w.now
		w.advance()
		w.note = fmt.Sprintf("%s pass. %s", w.now-before, w.note)
	case modelLearn:
		if l.n == modelLists {
			w.list(i)
			w.note = fmt.Sprintf("installation %d: lists the Gateways", i)
		} else {
			w.decide(i, int(l.n))
			w.note = fmt.Sprintf("installation %d: decides about g%d", i, l.n)
		}
	case modelArrive:
		w.arrive(i)
	case modelHappen:
		w.disturbed = w.now
		s.events[l.n].apply(w)
		w.note = "*** " + s.events[l.n].name
	}
	return w.note
}

// TestEveryReachableStateKeepsTheInvariants explores every scenario.
func TestEveryReachableStateKeepsTheInvariants(t *testing.T) {
	total := 0
	for _, s := range modelScenarios() {
		t.Run(s.name, func(t *testing.T) {
			x := s.explore(0)
			cycles, longest := x.Settle()
			total += x.States()
			t.Logf("%d states; %d final cycles, at most %d transitions later", x.States(), cycles, longest)
			x.Report(t)
		})
	}
	t.Logf("%d states in total", total)
}

// TestDecisionsChangeNoArgument explores one scenario and checks that the functions are pure.
func TestDecisionsChangeNoArgument(t *testing.T) {
	for _, s := range modelScenarios() {
		if s.name == "everything with permission" || s.name == "a record that leads elsewhere" {
			s.depth, s.rules = 1, &modelRules{pure: true}
			x := s.explore(0)
			t.Logf("%s: %d states", s.name, x.States())
			x.Report(t)
		}
	}
}
