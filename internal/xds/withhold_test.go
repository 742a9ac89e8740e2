package xds_test

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// When a Gateway's publication is withheld, its Envoys keep their streams and what they
// have. A new stream gets nothing either, and the next publication reaches both.
func TestWithheldPublications(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.Withhold(shared) // nothing was published
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.Withhold(shared)
		c.more(routes, "open", "protected")
		again := b.envoy(t)
		defer again.close()
		again.subscribe(clusters)
		again.subscribe(routes, "open", "protected")
		elapse(time.Hour)
		c.wantNothing()
		again.wantNothing()
		b.wantState(t, xds.State{Connected: 2, Known: true})
		b.publish(t, publication(1, "v2", "b"))
		if got := c.settle(); got != "clusters b; routes open; routes protected; clusters -a" {
			t.Errorf("got %q", got)
		}
		again.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 1})
	})
}
