package tunnel

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var depth = flag.Int("tunnel.depth", 0, "maximum number of faults and changes in a trace of the exploration; 0 means the depth of each scenario")

// transition is a transition between states.
type transition struct {
	kind  kind
	actor uint8
	n     uint8
}

type kind uint8

const (
	kindStep   kind = iota // n is the outcome
	kindTime               // time passes until the next event
	kindArrive             // n is the late call that is applied
	kindEvent              // n is the event
)

// node is a reached state.
type node struct {
	parent int32
	// next is the next state without a fault or change.
	next   int32
	label  transition
	faults uint8
}

// scenario is how an exploration starts and which events can happen.
type scenario struct {
	name   string
	start  func(m *model)
	events []event
	depth  int
}

type violation struct {
	message string
	from    int32
	last    transition
	tail    []string
}

// exploration visits every state that a scenario can reach.
type exploration struct {
	scenario
	index map[[2]uint64]int32
	nodes []node
	queue []pending
	found []violation
	seen  map[string]bool
	depth int
}

type pending struct {
	world *model
	node  int32
}

func explore(s scenario) *exploration {
	x := &exploration{scenario: s, index: map[[2]uint64]int32{}, seen: map[string]bool{}, depth: max(1, s.depth-fewerFaults)}
	if *depth > 0 {
		x.depth = *depth
	}
	x.visit(x.root(), -1, transition{}, 0)
	level := x.queue
	for faults := 0; faults < x.depth; faults++ {
		// First visit every state within this number of faults, then the states with
		// one more.
		x.queue = level
		for head := 0; head < len(x.queue); head++ {
			x.expand(x.queue[head], faults, 0)
		}
		level, x.queue = x.queue, nil
		for head, p := range level {
			x.expand(p, faults, 1)
			level[head] = pending{}
			if faults+1 == x.depth {
				x.drain(x.depth)
			}
		}
		level, x.queue = x.queue, nil
	}
	x.queue = level
	x.drain(x.depth)
	return x
}

// drain visits the states that follow the last visited states without faults or changes.
func (x *exploration) drain(faults int) {
	for len(x.queue) > 0 {
		p := x.queue[len(x.queue)-1]
		x.queue = x.queue[:len(x.queue)-1]
		x.expand(p, faults, 0)
	}
}

func (x *exploration) root() *model {
	m := &model{count: 1, now: time.Hour, boot: time.Hour}
	x.start(m)
	return m
}

// visit adds a state and returns its node.
func (x *exploration) visit(m *model, parent int32, l transition, faults int) int32 {
	m.checkPodsHaveEnvoy()
	if m.violation != "" {
		x.report(m.violation, parent, l)
		return -1
	}
	key := m.key()
	if i, known := x.index[key]; known {
		return i
	}
	stored := *m
	i := int32(len(x.nodes)) // #nosec G115 -- the memory is exhausted before
	x.index[key] = i
	x.nodes = append(x.nodes, node{parent: parent, next: -1, label: l, faults: uint8(faults)}) // #nosec G115 -- small
	x.queue = append(x.queue, pending{&stored, i})
	return i
}

func (x *exploration) report(message string, from int32, last transition) {
	if line, _, _ := strings.Cut(message, "\n"); !x.seen[line] {
		x.seen[line] = true
		x.found = append(x.found, violation{message: message, from: from, last: last})
	}
}

// expand visits the next states at that cost: 0 without a fault or change, 1 with one.
func (x *exploration) expand(p pending, faults, cost int) {
	m, i, first := p.world, p.node, true
	visit := func(next *model, l transition) {
		j := x.visit(next, i, l, faults+cost)
		if first && cost == 0 {
			x.nodes[i].next = j
		}
		first = false
	}
	for a := range m.count {
		if m.actors[a].busy() {
			m.exploreStep(a, cost, visit)
		}
	}
	if cost == 0 {
		x.advanceTime(m, i, first, visit)
	}
	for n, e := range x.events {
		if e.free == (cost == 0) {
			m.exploreEvent(e, uint8(n), visit) // #nosec G115 -- small
		}
	}
}

// exploreStep visits the states after an actor's next step, for each outcome at that
// cost.
func (m *model) exploreStep(a, cost int, visit func(*model, transition)) {
	base := *m
	f, s := base.plan(a)
	for _, o := range possibleOutcomes(s, base.actors[a].mustList) {
		if min(int(o), 1) == cost {
			next := base
			next.execute(a, f, s, o)
			visit(&next, transition{kindStep, uint8(a), uint8(o)}) // #nosec G115 -- small
		}
	}
}

// exploreEvent visits the states after an event, for each actor that it can affect.
func (m *model) exploreEvent(e event, n uint8, visit func(*model, transition)) {
	if e.idle && !m.idle() {
		return
	}
	for a := range m.count {
		if e.once && a > 0 {
			return
		}
		next := *m
		if e.apply(&next, a) {
			visit(&next, transition{kindEvent, uint8(a), n})
		}
	}
}

// advanceTime visits the states after time has passed or a late call was applied.
func (x *exploration) advanceTime(m *model, i int32, idle bool, visit func(*model, transition)) {
	if idle {
		next := *m
		if next.advance() {
			visit(&next, transition{kind: kindTime})
		} else {
			x.nodes[i].next = i
		}
	}
	for n := range m.cloudflare.late {
		if m.cloudflare.late[n].until != 0 {
			next := *m
			next.arrive(n)
			visit(&next, transition{kindArrive, 0, uint8(n)})
		}
	}
}

// idle reports whether all actors are idle.
func (m *model) idle() bool {
	for a := range m.count {
		if m.actors[a].busy() {
			return false
		}
	}
	return true
}

// busy reports whether the actor reconciles or is due to reconcile.
func (actor *actor) busy() bool { return actor.running || actor.reconcileDue }

// advance advances the time to the next event, and reports whether there is one. A
// stale cache is refreshed after one sleep.
func (m *model) advance() bool {
	next := m.nextMoment()
	switch {
	case m.staleCache != nil && (next == 0 || m.staleSleeps > 0):
		m.refreshCache()
		return true
	case next == 0:
		return false
	}
	m.now = max(m.now, next)
	if m.staleCache != nil {
		m.staleSleeps++
	}
	m.settle()
	for a := range m.count {
		if actor := &m.actors[a]; actor.nextReconcile != 0 && actor.nextReconcile <= m.now {
			actor.nextReconcile, actor.reconcileDue = 0, true
		}
	}
	return true
}

// nextMoment returns when the next timer or wake-up is due, or 0.
func (m *model) nextMoment() time.Duration {
	next := m.timers()
	for a := range m.count {
		if wake := m.actors[a].nextReconcile; wake != 0 && (next == 0 || wake < next) {
			next = wake
		}
	}
	return next
}

// apply applies a transition and describes it.
func (x *exploration) apply(m *model, l transition) {
	m.description = ""
	switch l.kind {
	case kindStep:
		a := int(l.actor)
		f, s := m.plan(a)
		step := fmt.Sprintf("%s: %s %s", actorNames[a].Name, s.describe(), outcomeNames[l.n])
		m.execute(a, f, s, outcome(l.n))
		m.description = step + m.description
	case kindTime:
		before := m.now
		m.advance()
		m.description = fmt.Sprintf("%s pass; %s", m.now-before, m.description)
	case kindArrive:
		m.arrive(int(l.n))
	case kindEvent:
		x.events[l.n].apply(m, int(l.actor))
		m.description = fmt.Sprintf("*** %s: %s", actorNames[l.actor].Name, x.events[l.n].name)
	}
}

// path returns the transitions that lead to a node.
func (x *exploration) path(i int32) []transition {
	var path []transition
	for ; i > 0; i = x.nodes[i].parent {
		path = append(path, x.nodes[i].label)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// replay applies the transitions on a path. It returns the model and a description of
// each transition.
func (x *exploration) replay(path []transition) (*model, []string) {
	m := x.root()
	var lines []string
	for _, l := range path {
		at := m.now - time.Hour
		x.apply(m, l)
		lines = append(lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), m.description))
	}
	return m, lines
}

// trace describes the transitions that led to a violation.
func (x *exploration) trace(v violation) string {
	path := x.path(v.from)
	if v.tail == nil {
		path = append(path, v.last)
	}
	_, lines := x.replay(path)
	return strings.Join(append(lines, v.tail...), "\n")
}

func TestEveryReachableStateKeepsTheInvariants(t *testing.T) {
	total := 0
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			x := explore(s)
			cycles, longest := x.settleAll()
			total += len(x.nodes)
			t.Logf("%d states with at most %d faults and changes; %d final cycles, at most %d transitions later",
				len(x.nodes), x.depth, cycles, longest)
			for n, v := range x.found {
				if n == 6 {
					t.Errorf("%d more violations", len(x.found)-n)
					break
				}
				t.Errorf("%s\n%s", v.message, x.trace(v))
			}
		})
	}
	t.Logf("%d states in total", total)
}
