package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a forged record", lifecycle, Ordered, ContinueOnFailure, func() {
	forgeries := allForgeries()
	var s *siege

	// All attacks run in one world, so that the controller starts only twice.
	BeforeAll(func(ctx SpecContext) {
		s = newSiege(forgeries)
		s.start()
		s.serveVictims(ctx)
		s.attack(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return f.down }))
		s.attackWhileDown(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return !f.down }))
	})

	for _, f := range forgeries {
		It("harms no other Gateway: "+f.String(), func() {
			Expect(s.damage(f)).To(BeEmpty())
		})
	}
})

// stored is what the simulator stores for a tunnel.
type stored struct {
	tunnel        string // its ID
	configuration string
	version       int64
}

// stored reads what the simulator stores for the tunnel of that ID, which may be
// deleted.
func (w *world) stored(tunnel string) stored {
	configuration, version := w.edge.StoredConfiguration(tunnel)
	return stored{tunnel: tunnel, configuration: string(configuration), version: version}
}

// isLive reports whether the tunnel of that ID exists and is not deleted.
func (w *world) isLive(tunnel string) bool {
	for _, t := range w.edge.Tunnels() {
		if t.ID == tunnel {
			return !t.Deleted
		}
	}
	return false
}
