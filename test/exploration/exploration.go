// Package exploration visits every state that a model of the controller and its environment
// can reach with a limited number of faults and changes, and follows each of them until it
// settles. Only tests use it.
//
// A model is a value with everything that happens: copies are independent. A transition
// without a fault costs nothing, and a fault or a change from outside costs one. The
// exploration first visits all states with no fault, then those with one, and so on.
package exploration

import (
	"fmt"
	"strings"
	"time"
)

// Model is a model whose states have the type W and whose transitions have the type L.
type Model[W, L any] interface {
	// Root returns the first state.
	Root() *W
	// Key returns the state's canonical form: two states with the same key behave the same.
	Key(w *W) [2]uint64
	// Violation returns the invariant that the last transition violated, or "".
	Violation(w *W) string
	// Expand calls visit with each next state at that cost: 0 without a fault or change,
	// 1 with one. At no cost, the first one is what [Model.Next] returns.
	Expand(w *W, cost int, visit func(next *W, l L))
	// Quiet reports whether no further fault needs to be tried in the state, because it
	// was tried in an earlier one.
	Quiet(w *W) bool
	// Next returns what happens next without a fault or change.
	Next(w *W) (L, bool)
	// Apply applies the transition and describes it.
	Apply(w *W, l L) string
	// Now returns the time in the model.
	Now(w *W) time.Duration
	// Describe describes the state for the end of a trace.
	Describe(w *W) string
	// Verdict returns what is wrong with a state in which nothing has happened for hours,
	// or "". since is the time for which it was followed without faults.
	Verdict(w *W, start time.Duration) string
}

// Limits bound an exploration.
type Limits struct {
	// Faults is the maximum number of faults and changes in a trace.
	Faults int
	// States is the number of states above which a model has no end.
	States int
	// Enough is how many violations end the exploration; 0 means that it searches for all.
	Enough int
	// Settled is the time after which a final state must be correct, and Steps how many
	// transitions it can take.
	Settled time.Duration
	Steps   int
}

// node is a reached state.
type node[L any] struct {
	parent, next int32 // next is the next state without a fault or change
	label        L
}

type pending[W any] struct {
	world *W
	node  int32
}

// Violation is a violated invariant, with the transitions that lead to it.
type Violation[L any] struct {
	Text string
	from int32
	last L
	// tail describes what follows from, instead of last.
	tail []string
}

// Exploration is the result of [Explore].
type Exploration[W, L any] struct {
	Found  []Violation[L]
	model  Model[W, L]
	limits Limits
	index  map[[2]uint64]int32
	nodes  []node[L]
	queue  []pending[W]
	seen   map[string]bool
}

// Explore visits every state within the limits.
func Explore[W, L any](m Model[W, L], limits Limits) *Exploration[W, L] {
	x := &Exploration[W, L]{model: m, limits: limits, index: map[[2]uint64]int32{}, seen: map[string]bool{}}
	var none L
	x.visit(m.Root(), -1, none)
	level := x.queue
	for faults := 0; faults <= limits.Faults && !x.done(); faults++ {
		// First visit every state with this number of faults, then those with one more.
		x.queue = level
		for head := 0; head < len(x.queue); head++ {
			x.expand(x.queue[head], 0)
		}
		level, x.queue = x.queue, nil
		x.expandLevel(level, faults)
		level, x.queue = x.queue, nil
	}
	return x
}

// expandLevel visits the states with one fault more than the level. The states with the
// most faults are not kept.
func (x *Exploration[W, L]) expandLevel(level []pending[W], faults int) {
	for head, p := range level {
		if faults < x.limits.Faults && !x.model.Quiet(p.world) {
			x.expand(p, 1)
		}
		level[head] = pending[W]{}
		if faults+1 == x.limits.Faults {
			x.drain()
		}
	}
}

// drain visits the states that follow the last visited states without faults or changes.
func (x *Exploration[W, L]) drain() {
	for len(x.queue) > 0 {
		p := x.queue[len(x.queue)-1]
		x.queue = x.queue[:len(x.queue)-1]
		x.expand(p, 0)
	}
}

func (x *Exploration[W, L]) done() bool {
	return x.limits.Enough > 0 && len(x.Found) >= x.limits.Enough
}

// States counts the visited states.
func (x *Exploration[W, L]) States() int { return len(x.nodes) }

// visit adds a state and returns its node.
func (x *Exploration[W, L]) visit(w *W, parent int32, l L) int32 {
	if x.done() {
		return -1
	}
	message := x.model.Violation(w)
	if len(x.nodes) > x.limits.States {
		message = fmt.Sprintf("the exploration has more than %d states", x.limits.States)
	}
	if message != "" {
		x.report(Violation[L]{Text: message, from: parent, last: l})
		return -1
	}
	key := x.model.Key(w)
	if i, known := x.index[key]; known {
		return i
	}
	i := int32(len(x.nodes)) // #nosec G115 -- the memory is exhausted before
	x.index[key] = i
	x.nodes = append(x.nodes, node[L]{parent: parent, next: -1, label: l})
	x.queue = append(x.queue, pending[W]{w, i})
	return i
}

func (x *Exploration[W, L]) report(v Violation[L]) {
	if line, _, _ := strings.Cut(v.Text, "\n"); !x.seen[line] {
		x.seen[line] = true
		x.Found = append(x.Found, v)
	}
}

// expand visits the next states at that cost.
func (x *Exploration[W, L]) expand(p pending[W], cost int) {
	first := true
	x.model.Expand(p.world, cost, func(next *W, l L) {
		j := x.visit(next, p.node, l)
		if first && cost == 0 {
			x.nodes[p.node].next = j
		}
		first = false
	})
	if first && cost == 0 {
		x.nodes[p.node].next = p.node
	}
}
