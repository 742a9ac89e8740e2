package tunnel

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var depth = flag.Int("tunnel.depth", 0, "how many faults and changes a trace of the exploration may have; 0 is the depth of each scenario")

// transition is a transition.
type transition struct {
	kind  kind
	actor uint8
	n     uint8
}

type kind uint8

const (
	kindStep   kind = iota // n is the outcome
	kindTime               // time passes until something happens
	kindArrive             // n is the late call that arrives
	kindEvent              // n is the event
)

// node is a state that was reached.
type node struct {
	parent int32
	// next is the state that follows when nothing special happens.
	next   int32
	label  transition
	faults uint8
}

// scenario is where an exploration starts, and what can happen.
type scenario struct {
	name   string
	start  func(w *model)
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
		// First every state within this many faults, then those with one more.
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

// drain visits what follows from the last states that were visited, which is
// little: nothing special can happen any more.
func (x *exploration) drain(faults int) {
	for len(x.queue) > 0 {
		p := x.queue[len(x.queue)-1]
		x.queue = x.queue[:len(x.queue)-1]
		x.expand(p, faults, 0)
	}
}

func (x *exploration) root() *model {
	w := &model{count: 1, now: time.Hour, boot: time.Hour}
	x.start(w)
	return w
}

// visit notes a state, and returns its node.
func (x *exploration) visit(w *model, parent int32, l transition, faults int) int32 {
	if w.violation != "" {
		x.report(w.violation, parent, l)
		return -1
	}
	key := w.key()
	if i, known := x.index[key]; known {
		return i
	}
	kept := *w
	i := int32(len(x.nodes)) // #nosec G115 -- memory ends before
	x.index[key] = i
	x.nodes = append(x.nodes, node{parent: parent, next: -1, label: l, faults: uint8(faults)}) // #nosec G115 -- small
	x.queue = append(x.queue, pending{&kept, i})
	return i
}

func (x *exploration) report(message string, from int32, last transition) {
	if line, _, _ := strings.Cut(message, "\n"); !x.seen[line] {
		x.seen[line] = true
		x.found = append(x.found, violation{message: message, from: from, last: last})
	}
}

// expand visits the states that follow at that cost.
func (x *exploration) expand(p pending, faults, cost int) {
	w, i, first := p.world, p.node, true
	visit := func(next *model, l transition) {
		j := x.visit(next, i, l, faults+cost)
		if first && cost == 0 {
			x.nodes[i].next = j
		}
		first = false
	}
	for a := range w.count {
		if w.actors[a].busy() {
			w.takeStep(a, cost, visit)
		}
	}
	if cost == 0 {
		x.pass(w, i, first, visit)
	}
	for n, e := range x.events {
		if e.free == (cost == 0) {
			w.undergo(e, uint8(n), visit) // #nosec G115 -- small
		}
	}
}

// takeStep visits what follows from the next step of an actor, for each outcome
// of that cost.
func (w *model) takeStep(a, cost int, visit func(*model, transition)) {
	base := *w
	f, s := base.plan(a)
	for _, o := range possible(s, base.actors[a].listing) {
		if min(int(o), 1) == cost {
			next := base
			next.execute(a, f, s, o)
			visit(&next, transition{kindStep, uint8(a), uint8(o)}) // #nosec G115 -- small
		}
	}
}

// undergo visits what follows from an event, for each actor that it can concern.
func (w *model) undergo(e event, n uint8, visit func(*model, transition)) {
	if e.idle && !w.idle() {
		return
	}
	for a := range w.count {
		if e.once && a > 0 {
			return
		}
		next := *w
		if e.apply(&next, a) {
			visit(&next, transition{kindEvent, uint8(a), n})
		}
	}
}

// pass lets time pass, and late calls arrive.
func (x *exploration) pass(w *model, i int32, idle bool, visit func(*model, transition)) {
	if idle {
		next := *w
		if next.advance() {
			visit(&next, transition{kind: kindTime})
		} else {
			x.nodes[i].next = i
		}
	}
	for n := range w.cloudflare.late {
		if w.cloudflare.late[n].until != 0 {
			next := *w
			next.arrive(n)
			visit(&next, transition{kindArrive, 0, uint8(n)})
		}
	}
}

// idle reports whether no actor reconciles or has a reason to.
func (w *model) idle() bool {
	for a := range w.count {
		if w.actors[a].busy() {
			return false
		}
	}
	return true
}

// busy reports whether the actor reconciles or has a reason to.
func (me *actor) busy() bool { return me.running || me.dirty }

// advance lets time pass until something happens. It reports whether anything
// will. A cache that is behind catches up after one sleep.
func (w *model) advance() bool {
	next := w.nextMoment()
	switch {
	case w.frozen != nil && (next == 0 || w.frozenSleeps > 0):
		w.thaw()
		return true
	case next == 0:
		return false
	}
	w.now = max(w.now, next)
	if w.frozen != nil {
		w.frozenSleeps++
	}
	w.settle()
	for a := range w.count {
		if me := &w.actors[a]; me.wake != 0 && me.wake <= w.now {
			me.wake, me.dirty = 0, true
		}
	}
	return true
}

// nextMoment returns when the next thing happens by itself or the next actor
// wakes, or 0.
func (w *model) nextMoment() time.Duration {
	next := w.timers()
	for a := range w.count {
		if wake := w.actors[a].wake; wake != 0 && (next == 0 || wake < next) {
			next = wake
		}
	}
	return next
}

// apply carries out a transition, and describes it.
func (x *exploration) apply(w *model, l transition) {
	w.said = ""
	switch l.kind {
	case kindStep:
		a := int(l.actor)
		f, s := w.plan(a)
		said := fmt.Sprintf("%s: %s %s", actorNames[a].Name, s.describe(), outcomeNames[l.n])
		w.execute(a, f, s, outcome(l.n))
		w.said = said + w.said
	case kindTime:
		before := w.now
		w.advance()
		w.said = fmt.Sprintf("%s pass; %s", w.now-before, w.said)
	case kindArrive:
		w.arrive(int(l.n))
	case kindEvent:
		x.events[l.n].apply(w, int(l.actor))
		w.said = fmt.Sprintf("*** %s: %s", actorNames[l.actor].Name, x.events[l.n].name)
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

// replay returns the world of a node, and what led to it.
func (x *exploration) replay(path []transition) (*model, []string) {
	w := x.root()
	var lines []string
	for _, l := range path {
		at := w.now - time.Hour
		x.apply(w, l)
		lines = append(lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), w.said))
	}
	return w, lines
}

// trace describes what led to a violation.
func (x *exploration) trace(v violation) string {
	path := x.path(v.from)
	if v.tail == nil {
		path = append(path, v.last)
	}
	_, lines := x.replay(path)
	return strings.Join(append(lines, v.tail...), "\n")
}

func TestExplore(t *testing.T) {
	total := 0
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			x := explore(s)
			cycles, longest := x.settleAll()
			total += len(x.nodes)
			t.Logf("%d states within %d faults and changes; %d ways to end, at most %d transitions later",
				len(x.nodes), x.depth, cycles, longest)
			for n, v := range x.found {
				if n == 6 {
					t.Errorf("and %d more", len(x.found)-n)
					break
				}
				t.Errorf("%s\n%s", v.message, x.trace(v))
			}
		})
	}
	t.Logf("%d states in all", total)
}
