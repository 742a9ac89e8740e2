package plan

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// assume handles a step in a data plane change that must not be executed, as if it had
// succeeded. It returns false for other steps. The plan assumes that the controller
// runs all connectors, because it does not know the pods.
func (i *inspection) assume(step tunnel.Step) bool {
	change := tunnel.Programmed(i.facts).DataPlaneChange
	if change == nil || change.Reason != conditions.ReasonDataPlaneChanging {
		return false
	}
	switch {
	case step.Action == tunnel.ListConnections:
		i.facts.Memory = tunnel.Conclude(i.facts.Memory, step, tunnel.Result{Uptime: uptime})
	case step.Action == tunnel.Configure:
		i.assumeWrite(step)
	case step.Action == tunnel.ReadConfiguration && i.write != nil:
		i.facts.Memory.Remote.Configuration.Confirmed = true
		i.facts.Memory.LateWrites = tunnel.LateWrites{}
	default:
		return false
	}
	return true
}

// assumeWrite continues as if the configuration had been written.
func (i *inspection) assumeWrite(step tunnel.Step) {
	remote := i.facts.Memory.Remote.Configuration
	if i.write == nil {
		i.write, i.remote = &step, &remote
	}
	if step.Record != nil {
		i.facts.Object.Status = *step.Record
	}
	i.facts.Memory.InEffect = step.Hash
	i.facts.Memory.Remote.Configuration = tunnel.RemoteConfiguration{
		Known: true, Configuration: remote.Configuration, Hash: step.Hash, Version: remote.Version, NextRead: 2 * uptime, Settled: true, Confirmed: true,
	}
}

// noteChange adds a note about a phase in a data plane change.
func (i *inspection) noteChange(c *v1alpha1.DataPlaneChange) {
	if c == nil {
		return
	}
	var note string
	switch {
	case i.facts.Desired != nil && c.To != i.facts.Desired.DataPlane:
		note = fmt.Sprintf("The settings ask for %s again, so the controller reverses the data plane change to %s.", i.facts.Desired.DataPlane, c.To)
	case c.Phase == v1alpha1.DataPlaneAddingEnvoy:
		note = "The data plane changes to Envoy. First, the controller adds Envoy to the connectors, while the ingress rules serve the Gateway."
	case c.Phase == v1alpha1.DataPlaneRemovingEnvoy:
		note = "Once the ingress rules serve the Gateway, the controller removes Envoy from the connectors."
	case c.To == v1alpha1.DataPlaneEnvoy:
		note = "When every connector has Envoy, the controller replaces the tunnel configuration, and Envoy serves the Gateway."
	default:
		note = "The data plane changes to ingress rules. First, the controller replaces the tunnel configuration."
	}
	i.notes = append(i.notes, note)
}

// lastConfiguration returns the configuration that the tunnel has after the steps.
func (i *inspection) lastConfiguration() provider.Configuration {
	return *i.decision.Plane(i.facts.Object).Configuration
}
