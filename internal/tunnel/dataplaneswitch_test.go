package tunnel

import (
	"testing"
	"time"
)

// A route change must not take the token that the switch to Envoy waits for, because
// the list of connectors is old when the token accrues.
func TestChangesOfRoutesDoNotDelayTheSwitch(t *testing.T) {
	f := serving()
	combine(changing(envoy, switching), everyPodHasEnvoy, connections(time.Minute), routesChanged)(&f)
	if step := Decide(f); step.Action != ListConnections {
		t.Errorf("the step is %s, want %s", step.Action, ListConnections)
	}
}
