package exploration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// maxReported is how many violations a test prints.
const maxReported = 6

// Settle follows every state without further faults until it no longer changes, and checks
// the final state. It returns the number of final cycles, and how many transitions the
// longest way to one has.
func (x *Exploration[W, L]) Settle() (cycles, longest int) {
	state := make([]uint8, len(x.nodes)) // 1: on the path, 2: done
	length := make([]int32, len(x.nodes))
	for i := range x.nodes {
		var path []int32
		j := int32(i) // #nosec G115 -- memory ends before
		for j >= 0 && state[j] == 0 {
			state[j] = 1
			path = append(path, j)
			j = x.nodes[j].next
		}
		if j >= 0 && state[j] == 1 {
			cycles++
			x.checkCycle(j)
			if x.done() {
				return cycles, longest
			}
		}
		for k := len(path) - 1; k >= 0; k-- {
			n := path[k]
			state[n] = 2
			if next := x.nodes[n].next; next >= 0 && next != n {
				length[n] = length[next] + 1
			}
			longest = max(longest, int(length[n]))
		}
	}
	return cycles, longest
}

// checkCycle checks a cycle of states without faults and changes.
func (x *Exploration[W, L]) checkCycle(i int32) {
	w, _ := x.replay(x.path(i))
	problem := x.settle(w)
	if problem == "" || x.seen[problem] {
		return
	}
	x.seen[problem] = true
	v := Violation[L]{Text: problem, from: i, tail: []string{"--- then repeatedly:"}}
	w, _ = x.replay(x.path(i))
	for range 12 {
		if !x.advance(w, &v.tail) {
			break
		}
	}
	x.Found = append(x.Found, v)
}

// settle follows the state until it has been unchanged for long, and returns what is wrong
// with it then.
func (x *Exploration[W, L]) settle(w *W) string {
	start := x.model.Now(w)
	for steps := 0; x.model.Now(w)-start < x.limits.Settled && x.advance(w, nil); steps++ {
		if message := x.model.Violation(w); message != "" {
			return message
		}
		if steps > x.limits.Steps {
			return "the steps do not end"
		}
	}
	return x.model.Verdict(w, start)
}

// advance applies the next transition without a fault or change.
func (x *Exploration[W, L]) advance(w *W, lines *[]string) bool {
	l, ok := x.model.Next(w)
	if !ok {
		return false
	}
	line := x.apply(w, l)
	if lines != nil {
		*lines = append(*lines, line)
	}
	return true
}

// apply applies a transition and returns its line in a trace.
func (x *Exploration[W, L]) apply(w *W, l L) string {
	at := x.model.Now(w) - time.Hour
	return fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), x.model.Apply(w, l))
}

// path returns the transitions that lead to a node.
func (x *Exploration[W, L]) path(i int32) []L {
	var path []L
	for ; i > 0; i = x.nodes[i].parent {
		path = append(path, x.nodes[i].label)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// replay applies the transitions on a path. It returns the state and a description of each
// transition.
func (x *Exploration[W, L]) replay(path []L) (*W, []string) {
	w := x.model.Root()
	lines := []string{x.model.Describe(w)}
	for _, l := range path {
		lines = append(lines, x.apply(w, l))
	}
	return w, lines
}

// Trace describes the transitions that led to a violation.
func (x *Exploration[W, L]) Trace(v Violation[L]) string {
	path := x.path(v.from)
	if v.tail == nil && v.from >= 0 {
		path = append(path, v.last)
	}
	w, lines := x.replay(path)
	return strings.Join(append(lines, append(v.tail, x.model.Describe(w))...), "\n")
}

// Report makes the test fail with the violations.
func (x *Exploration[W, L]) Report(t testing.TB) {
	t.Helper()
	for n, v := range x.Found {
		if n == maxReported {
			t.Errorf("%d more violations", len(x.Found)-n)
			return
		}
		t.Errorf("%s\n%s", v.Text, x.Trace(v))
	}
}

// Find returns the trace of the first violation, which must contain the text. It makes the
// test fail if there is none.
func (x *Exploration[W, L]) Find(t testing.TB, text string) string {
	t.Helper()
	if len(x.Found) == 0 {
		x.Settle()
	}
	if len(x.Found) == 0 {
		t.Fatalf("the exploration of %d states finds nothing", len(x.nodes))
	}
	v := x.Found[0]
	if !strings.Contains(v.Text, text) {
		t.Fatalf("the exploration finds another violation: %s\n%s", v.Text, x.Trace(v))
	}
	return fmt.Sprintf("after %d states: %s\n%s", len(x.nodes), v.Text, x.Trace(v))
}
