package dns

import (
	"fmt"
	"time"
)

// modelSettled is the time after which a final state must be correct.
const modelSettled = 3 * time.Hour

// settleAll follows every state without further faults until it no longer changes, and
// checks the final state.
func (x *modelExploration) settleAll() (cycles, longest int) {
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
func (x *modelExploration) checkCycle(i int32) {
	w, _ := x.replay(x.path(i))
	problem := x.settle(w)
	if problem == "" || x.seen[problem] {
		return
	}
	x.seen[problem] = true
	v := modelViolation{message: problem, from: i, tail: []string{"--- then repeatedly:"}}
	w, _ = x.replay(x.path(i))
	for range 12 {
		if !x.advanceOnce(w, &v.tail) {
			break
		}
	}
	x.found = append(x.found, v)
}

// settle follows the world until it has been unchanged for long, and returns what is wrong
// with it then.
func (x *modelExploration) settle(w *modelWorld) string {
	start := w.now
	for steps := 0; w.now-start < modelSettled && x.advanceOnce(w, nil); steps++ {
		switch {
		case w.violation != "":
			return w.violation
		case steps > 100*modelMaxSteps:
			return "the steps do not end"
		}
	}
	if w.applied >= start+modelSettled/3 {
		return fmt.Sprintf("the zone still changes %s after the last fault", w.applied-start)
	}
	return w.verdict()
}

// advanceOnce applies the next transition without a fault or change.
func (x *modelExploration) advanceOnce(w *modelWorld, lines *[]string) bool {
	l, ok := w.nextTransition()
	if !ok {
		return false
	}
	at := w.now - time.Hour
	x.apply(w, l)
	if lines != nil {
		*lines = append(*lines, fmt.Sprintf("%9s  %s", at.Round(time.Millisecond), w.note))
	}
	return true
}

// nextTransition returns what happens next without a fault or change.
func (w *modelWorld) nextTransition() (modelTransition, bool) {
	for i := range w.count {
		if w.installs[i].due {
			return modelTransition{modelStep, uint8(i), uint8(modelSucceeds)}, true // #nosec G115 -- small
		}
	}
	for i := range w.count {
		in := &w.installs[i]
		if !in.listed {
			return modelTransition{modelLearn, uint8(i), modelLists}, true // #nosec G115 -- small
		}
		for g := range in.gateways {
			if gw := &in.gateways[g]; !gw.known && (gw.exists || gw.tunnel) {
				return modelTransition{modelLearn, uint8(i), uint8(g)}, true // #nosec G115 -- small
			}
		}
	}
	return modelTransition{kind: modelTime}, w.nextMoment() != 0
}
