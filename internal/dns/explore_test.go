package dns

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
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

// modelNode is a reached state.
type modelNode struct {
	parent, next int32 // next is the next state without a fault or change
	label        modelTransition
	faults       uint8
}

// modelScenario is how an exploration starts and what can happen.
type modelScenario struct {
	name   string
	start  func(w *modelWorld)
	events []modelEvent
	depth  int
}

type modelViolation struct {
	message string
	from    int32
	last    modelTransition
	tail    []string
}

type modelPending struct {
	world *modelWorld
	node  int32
}

// modelExploration visits every state that a scenario can reach.
type modelExploration struct {
	modelScenario
	rules *modelRules
	index map[[2]uint64]int32
	nodes []modelNode
	queue []modelPending
	found []modelViolation
	seen  map[string]bool
	// enough is how many violations end the exploration; 0 means that it searches for all.
	enough int
}

func exploreScenario(s modelScenario, rules *modelRules, enough int) *modelExploration {
	x := &modelExploration{modelScenario: s, rules: rules, index: map[[2]uint64]int32{}, seen: map[string]bool{}, enough: enough}
	x.depth = max(1, s.depth-FewerFaults)
	if *exploreDepth > 0 {
		x.depth = *exploreDepth
	}
	x.visit(x.root(), -1, modelTransition{}, 0)
	level := x.queue
	for faults := 0; faults <= x.depth && !x.done(); faults++ {
		// First visit every state with this number of faults, then those with one more.
		x.queue = level
		for head := 0; head < len(x.queue); head++ {
			x.expand(x.queue[head], faults, 0)
		}
		level, x.queue = x.queue, nil
		for head, p := range level {
			if faults < x.depth && !p.world.quiet() {
				x.expand(p, faults, 1)
			}
			level[head] = modelPending{}
			if faults+1 == x.depth {
				x.drain(x.depth)
			}
		}
		level, x.queue = x.queue, nil
	}
	return x
}

func (x *modelExploration) done() bool { return x.enough > 0 && len(x.found) >= x.enough }

// drain visits the states that follow the last visited states without faults or changes.
func (x *modelExploration) drain(faults int) {
	for len(x.queue) > 0 {
		p := x.queue[len(x.queue)-1]
		x.queue = x.queue[:len(x.queue)-1]
		x.expand(p, faults, 0)
	}
}

func (x *modelExploration) root() *modelWorld {
	w := newModelWorld()
	w.rules = x.rules
	x.start(w)
	return w
}

// visit adds a state and returns its node.
func (x *modelExploration) visit(w *modelWorld, parent int32, l modelTransition, faults int) int32 {
	if x.done() {
		return -1
	}
	if len(x.nodes) > maxModelNodes {
		w.violate("the exploration has more than %d states", maxModelNodes)
	}
	if w.violation != "" {
		x.report(modelViolation{message: w.violation, from: parent, last: l})
		return -1
	}
	key := w.key()
	if i, known := x.index[key]; known {
		return i
	}
	stored := *w
	i := int32(len(x.nodes)) // #nosec G115 -- the memory is exhausted before
	x.index[key] = i
	x.nodes = append(x.nodes, modelNode{parent: parent, next: -1, label: l, faults: uint8(faults)}) // #nosec G115 -- small
	x.queue = append(x.queue, modelPending{&stored, i})
	return i
}

func (x *modelExploration) report(v modelViolation) {
	if line, _, _ := strings.Cut(v.message, "\n"); !x.seen[line] {
		x.seen[line] = true
		x.found = append(x.found, v)
	}
}

// expand visits the next states at that cost: 0 without a fault or change, 1 with one.
func (x *modelExploration) expand(p modelPending, faults, cost int) {
	w, i, first := p.world, p.node, true
	visit := func(next *modelWorld, l modelTransition) {
		j := x.visit(next, i, l, faults+cost)
		if first && cost == 0 {
			x.nodes[i].next = j
		}
		first = false
	}
	for n, preempts := 0, false; n < w.count; n++ {
		if w.installs[n].due {
			w.exploreStep(n, cost, preempts, visit)
			preempts = true
		}
	}
	if cost == 0 {
		w.exploreFree(visit)
		if first {
			x.nodes[i].next = i
		}
		return
	}
	for n := range x.events {
		next := *w
		next.disturbed = next.now
		if x.events[n].apply(&next) {
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

// apply applies a transition and describes it.
func (x *modelExploration) apply(w *modelWorld, l modelTransition) {
	w.note = ""
	switch i := int(l.install); l.kind {
	case modelStep:
		f, s := w.plan(i)
		if l.n != uint8(modelSucceeds) {
			w.disturbed = w.now
		}
		step := fmt.Sprintf("installation %d: %s %s", i, describeStep(s), modelOutcomeNames[l.n])
		w.execute(i, f, s, modelOutcome(l.n))
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
		x.events[l.n].apply(w)
		w.note = "*** " + x.events[l.n].name
	}
}

// path returns the transitions that lead to a node.
func (x *modelExploration) path(i int32) []modelTransition {
	var path []modelTransition
	for ; i > 0; i = x.nodes[i].parent {
		path = append(path, x.nodes[i].label)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// replay applies the transitions on a path. It returns the world and a description of each
// transition.
func (x *modelExploration) replay(path []modelTransition) (*modelWorld, []string) {
	w := x.root()
	lines := []string{"zone: " + describeView(w.zone.records)}
	for _, l := range path {
		at := w.now - time.Hour
		x.apply(w, l)
		lines = append(lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), w.note))
	}
	return w, lines
}

// trace describes the transitions that led to a violation.
func (x *modelExploration) trace(v modelViolation) string {
	path := x.path(v.from)
	if v.tail == nil {
		path = append(path, v.last)
	}
	w, lines := x.replay(path)
	return strings.Join(append(lines, append(v.tail, "zone: "+describeView(w.zone.records))...), "\n")
}

// TestEveryReachableStateKeepsTheInvariants explores every scenario.
func TestEveryReachableStateKeepsTheInvariants(t *testing.T) {
	total := 0
	for _, s := range modelScenarios() {
		t.Run(s.name, func(t *testing.T) {
			x := exploreScenario(s, nil, 0)
			cycles, longest := x.settleAll()
			total += len(x.nodes)
			t.Logf("%d states with at most %d faults and changes; %d final cycles, at most %d transitions later",
				len(x.nodes), x.depth, cycles, longest)
			x.fail(t)
		})
	}
	t.Logf("%d states in total", total)
}

// TestDecisionsChangeNoArgument explores one scenario and checks that the functions are pure.
func TestDecisionsChangeNoArgument(t *testing.T) {
	for _, s := range modelScenarios() {
		if s.name == "everything with permission" || s.name == "a record that leads elsewhere" {
			s.depth = 1
			x := exploreScenario(s, &modelRules{pure: true}, 0)
			t.Logf("%s: %d states", s.name, len(x.nodes))
			x.fail(t)
		}
	}
}

// fail reports the violations.
func (x *modelExploration) fail(t *testing.T) {
	t.Helper()
	for n, v := range x.found {
		if n == 6 {
			t.Errorf("%d more violations", len(x.found)-n)
			return
		}
		t.Errorf("%s\n%s", v.message, x.trace(v))
	}
}
