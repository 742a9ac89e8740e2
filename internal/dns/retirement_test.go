package dns

import (
	"testing"
	"time"
)

// settle follows the world for a while, and fails the test if an invariant is violated.
func (w *modelWorld) settle(t *testing.T, d time.Duration) {
	t.Helper()
	w.follow(d)
	if w.violation != "" {
		t.Fatal(w.violation)
	}
}

// expectTarget fails the test if the record of the name does not lead to the tunnel. An empty
// tunnel expects no record.
func (w *modelWorld) expectTarget(t *testing.T, name, tunnel string) {
	t.Helper()
	got := ""
	if r := w.zone.address(name); r != nil {
		got = r.Content
	}
	if got != tunnel {
		t.Errorf("the record of %s leads to %q, not %q", name, got, tunnel)
	}
}

// TestRetirementHandsOverRecords retires a Gateway. Its records are deleted or handed over
// within its namespace before its tunnel, and one that another namespace wants moves after
// the deletion delay, although the tunnel is gone by then.
func TestRetirementHandsOverRecords(t *testing.T) {
	const g1 = "tunnel-0-1-0.cfargotunnel.com"
	for name, test := range map[string]struct {
		namespace string
		// first is where the record leads when the tunnel is deleted, and handed when it
		// has moved at the latest.
		first  string
		handed time.Duration
	}{
		"within a namespace": {namespace: "one", first: g1, handed: 2 * time.Minute},
		"to another one":     {namespace: "two", first: modelG0, handed: modelDeletionDelay + 2*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld()
			in := &w.installs[0]
			in.gateways[1].namespace = test.namespace
			starting(wanting(0, modelA, modelB), published, wanting(1, modelB), published)(w)
			begin := w.now
			deleted(0, false).apply(w)
			for in.gateways[0].tunnel {
				w.settle(t, time.Second)
			}
			if since := w.now - begin; since > 2*time.Minute {
				t.Errorf("the tunnel exists for %s", since)
			}
			w.expectTarget(t, modelA, "")
			w.expectTarget(t, modelB, test.first)
			w.settle(t, test.handed-(w.now-begin))
			w.expectTarget(t, modelB, g1)
		})
	}
}
