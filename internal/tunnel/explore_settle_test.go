package tunnel

import (
	"fmt"
	"time"
)

// settleAll follows every state without further faults until it no longer changes, and
// checks the final state.
func (x *exploration) settleAll() (cycles, longest int) {
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

// settleTimeout is the time after which a final state must be correct.
const settleTimeout = 3 * time.Hour

// checkCycle checks a cycle of states without faults and changes.
func (x *exploration) checkCycle(i int32) {
	m, _ := x.replay(x.path(i))
	start := m.now
	bad, steps := "", 0
	for m.now-start < settleTimeout {
		if m.idle() && m.staleCache == nil {
			if bad = m.verdict(); bad == "" {
				return
			}
		}
		before := m.now
		if !x.advanceOnce(m, nil) {
			break
		}
		if m.violation != "" {
			bad = m.violation
			break
		}
		if steps++; m.now != before {
			steps = 0
		}
		if steps > 10*maxSteps {
			bad = "the steps continue without a wait"
			break
		}
	}
	if x.seen[bad] {
		return
	}
	x.seen[bad] = true
	v := violation{message: bad, from: i, tail: []string{"--- then repeatedly:"}}
	m, _ = x.replay(x.path(i))
	for range 12 {
		if !x.advanceOnce(m, &v.tail) {
			break
		}
	}
	x.found = append(x.found, v)
}

// advanceOnce applies the next transition without a fault or change.
func (x *exploration) advanceOnce(m *model, lines *[]string) bool {
	l := transition{kind: kindTime}
	for a := m.count - 1; a >= 0; a-- {
		if m.actors[a].busy() {
			l = transition{kindStep, uint8(a), uint8(outcomeSucceeds)} // #nosec G115 -- small
		}
	}
	if l.kind == kindTime {
		probe := *m
		if !probe.advance() {
			return false
		}
	}
	at := m.now - time.Hour
	x.apply(m, l)
	if lines != nil {
		*lines = append(*lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), m.description))
	}
	return true
}
