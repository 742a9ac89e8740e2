package dns

import (
	"testing"
	"time"
)

// settle follows the world for a while, and returns what was violated.
func (w *modelWorld) settle(d time.Duration) string {
	x := &modelExploration{}
	for start := w.now; w.now-start < d && w.violation == "" && x.advanceOnce(w, nil); {
		continue
	}
	return w.violation
}

// TestRetirementHandsOverRecords retires a Gateway. Its records are deleted or handed over
// within its namespace before its tunnel, and one that another namespace wants moves after
// the deletion delay, although the tunnel is gone by then.
func TestRetirementHandsOverRecords(t *testing.T) {
	for name, test := range map[string]struct {
		namespace       string
		gone, handed    time.Duration // how long the tunnel and the old record exist at most
		leadsAtDeletion string
	}{
		"within a namespace": {namespace: "one", gone: 2 * time.Minute, handed: 2 * time.Minute, leadsAtDeletion: "tunnel-0-1-0"},
		"to another one":     {namespace: "two", gone: 2 * time.Minute, handed: modelDeletionDelay + 2*time.Minute, leadsAtDeletion: "tunnel-0-0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld()
			in := &w.installs[0]
			in.gateways[1].namespace = test.namespace
			starting(wanting(0, modelA, modelB), published, wanting(1, modelB), published)(w)
			deleted := w.now
			if !deleteGateway(w) {
				t.Fatal("there is no Gateway")
			}
			for in.gateways[0].tunnel && w.now-deleted < time.Hour {
				if problem := w.settle(time.Second); problem != "" {
					t.Fatal(problem)
				}
			}
			if since := w.now - deleted; since > test.gone {
				t.Errorf("the tunnel exists for %s", since)
			}
			if w.zone.address(modelA) != nil {
				t.Errorf("the record of %s outlives its tunnel", modelA)
			}
			if r := w.zone.address(modelB); r == nil || r.Content != test.leadsAtDeletion+".cfargotunnel.com" {
				t.Errorf("when the tunnel is deleted, the record of %s is %+v", modelB, r)
			}
			if problem := w.settle(test.handed - (w.now - deleted)); problem != "" {
				t.Fatal(problem)
			}
			if r := w.zone.address(modelB); r == nil || r.Content != "tunnel-0-1-0.cfargotunnel.com" {
				t.Errorf("in the end, the record of %s is %+v", modelB, r)
			}
		})
	}
}

// deleteGateway deletes g0, whose Tunnel retires.
func deleteGateway(w *modelWorld) bool { return deleted(0, false).apply(w) }
