package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a forged record", lifecycle, Ordered, ContinueOnFailure, func() {
	forgeries := allForgeries()
	var s *siege

	// All attacks use one environment, so that the controller starts only twice.
	BeforeAll(func(ctx SpecContext) {
		s = newSiege(forgeries)
		s.start()
		s.serveVictims(ctx)
		s.attack(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return f.down }))
		s.attackWhileDown(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return !f.down }))
	})

	for _, f := range forgeries {
		It("does not affect another Gateway: "+f.String(), func() {
			Expect(s.damage(f)).To(BeEmpty())
		})
	}
})

// tunnelState is the configuration of a tunnel as stored by the simulator.
type stored struct {
	tunnel        string // ID
	configuration string
	version       int64
}

// tunnelState returns the state of the tunnel with this ID, even after the
// tunnel was deleted.
func (w *world) stored(tunnel string) stored {
	configuration, version := w.edge.StoredConfiguration(tunnel)
	return stored{tunnel: tunnel, configuration: string(configuration), version: version}
}

// isLive reports whether the tunnel with this ID exists and is not deleted.
func (w *world) isLive(tunnel string) bool {
	for _, t := range w.edge.Tunnels() {
		if t.ID == tunnel {
			return !t.Deleted
		}
	}
	return false
}
