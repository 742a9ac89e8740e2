package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a forged record", ownership, Ordered, ContinueOnFailure, func() {
	forgeries := allForgeries()
	var env *attackEnvironment

	// All attacks use one environment, so that the controller starts only twice.
	BeforeAll(func(ctx SpecContext) {
		env = newAttackEnvironment(forgeries)
		env.start()
		env.createVictims(ctx)
		env.attack(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return f.whileStopped }))
		env.attackWhileStopped(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return !f.whileStopped }))
	})

	for _, f := range forgeries {
		It("does not affect another Gateway: "+f.String(), func() {
			Expect(env.damage(f)).To(BeEmpty())
		})
	}
})

// tunnelState is a tunnel's configuration as the simulator stores it.
type tunnelState struct {
	tunnel        string // ID
	configuration string
	version       int64
}

// tunnelState returns the state of the tunnel with this ID, even after the tunnel was
// deleted.
func (env *environment) tunnelState(tunnel string) tunnelState {
	configuration, version := env.cloudflare.StoredConfiguration(tunnel)
	return tunnelState{tunnel: tunnel, configuration: string(configuration), version: version}
}

// isLive reports whether the tunnel with this ID exists and is not deleted.
func (env *environment) isLive(tunnel string) bool {
	for _, t := range env.cloudflare.Tunnels() {
		if t.ID == tunnel {
			return !t.Deleted
		}
	}
	return false
}
