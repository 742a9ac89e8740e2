package access

import (
	"flag"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

var exploreDepth = flag.Int("access.depth", 0, "maximum number of faults and changes in a trace of the exploration; 0 means the depth of each scenario")

// explore visits every state that the scenario can reach.
func (s modelScenario) explore(enough int) *exploration.Exploration[modelWorld, modelTransition] {
	depth := max(1, s.depth-fewerFaults)
	if *exploreDepth > 0 {
		depth = *exploreDepth
	}
	return exploration.Explore(&s, exploration.Limits{Faults: depth, States: 1_000_000, Enough: enough, Settled: 3 * time.Hour, Steps: 100 * modelMaxSteps})
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

// TestDecisionsChangeNoArgument explores scenarios and checks that the functions are pure.
func TestDecisionsChangeNoArgument(t *testing.T) {
	for _, s := range modelScenarios() {
		if s.name == "a protected hostname with everything" || s.name == "two classes" {
			s.rules = &modelRules{pure: true}
			x := s.explore(0)
			t.Logf("%s: %d states", s.name, x.States())
			x.Report(t)
		}
	}
}
