package tunnel

import (
	"fmt"
	"time"
)

// settleAll follows every state until nothing changes any more, and checks what
// it has become.
func (x *exploration) settleAll() (cycles, longest int) {
	state := make([]uint8, len(x.nodes)) // 1 on the path, 2 done
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

// settleTimeout is for how long a state may go on before it must have become good.
const settleTimeout = 3 * time.Hour

// checkCycle checks a cycle of states in which nothing special happens.
func (x *exploration) checkCycle(i int32) {
	w, _ := x.replay(x.path(i))
	start := w.now
	bad, steps := "", 0
	for w.now-start < settleTimeout {
		if w.idle() && w.frozen == nil {
			if bad = w.verdict(); bad == "" {
				return
			}
		}
		before := w.now
		if !x.advanceOnce(w, nil) {
			break
		}
		if w.violation != "" {
			bad = w.violation
			break
		}
		if steps++; w.now != before {
			steps = 0
		}
		if steps > 10*maxSteps {
			bad = "the steps go on without a wait"
			break
		}
	}
	if x.seen[bad] {
		return
	}
	x.seen[bad] = true
	v := violation{message: bad, from: i, tail: []string{"--- and then, again and again:"}}
	w, _ = x.replay(x.path(i))
	for range 12 {
		if !x.advanceOnce(w, &v.tail) {
			break
		}
	}
	x.found = append(x.found, v)
}

// advanceOnce lets the next thing happen, as it does when nothing special does.
func (x *exploration) advanceOnce(w *model, lines *[]string) bool {
	l := transition{kind: kindTime}
	for a := w.count - 1; a >= 0; a-- {
		if w.actors[a].busy() {
			l = transition{kindStep, uint8(a), uint8(outcomeSucceeds)} // #nosec G115 -- small
		}
	}
	if l.kind == kindTime {
		probe := *w
		if !probe.advance() {
			return false
		}
	}
	at := w.now - time.Hour
	x.apply(w, l)
	if lines != nil {
		*lines = append(*lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), w.said))
	}
	return true
}
