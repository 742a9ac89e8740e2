package dns

import (
	"fmt"
	"time"
)

// modelSettled is the time after which a final state must be correct.
const modelSettled = 3 * time.Hour

// Verdict returns why a final state is wrong, or "".
func (s *modelScenario) Verdict(w *modelWorld, start time.Duration) string {
	if w.applied >= start+modelSettled/3 {
		return fmt.Sprintf("the zone still changes %s after the last fault", w.applied-start)
	}
	return w.verdict()
}

// Next returns what happens next without a fault or change.
func (s *modelScenario) Next(w *modelWorld) (modelTransition, bool) {
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

// follow applies what happens without a fault or change for a while, or until an invariant
// is violated.
func (w *modelWorld) follow(d time.Duration) {
	s := &modelScenario{}
	for start := w.now; w.now-start < d && w.violation == ""; {
		l, ok := s.Next(w)
		if !ok {
			return
		}
		s.Apply(w, l)
	}
}
