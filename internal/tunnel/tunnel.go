// Package tunnel decides the next step in the life of a Gateway's tunnel: which
// call, read or write comes next, given what is known. It is pure: no client, no
// context, no clock and no I/O belong here.
//
// The controller gathers the [Facts], asks [Decide] for a [Step], executes it,
// and hands the [Result] to [Conclude], until the step is to wait. The rules are
// those of docs/tunnels.md; each has a row in the golden table of this package,
// and an exhaustive exploration shows that they hold together.
package tunnel

import "github.com/tunnel-gateway/tunnel-gateway/provider"

// Decide returns the next step: one API call, one read or one write. The Facts
// are not changed. It never returns a step that executes an action twice without
// a wait or a change of the facts in between.
func Decide(f Facts) Step {
	if f.Object == nil {
		return begin(f)
	}
	if problem := f.unusable(); problem != nil {
		return blocked(problem)
	}
	switch f.life() {
	case lifeServe:
		return serve(f)
	case lifeReturned:
		return returned(f)
	case lifeRetire:
		return retire(f)
	default: // lifeUnknown, lifeMissing
		return keep(f)
	}
}

// begin decides about a Gateway without a Tunnel object.
func begin(f Facts) Step {
	d := f.Desired
	if f.Gateway.State != GatewayExists || d == nil || d.Configuration == nil || f.Gateway.Paused {
		return Step{Action: None}
	}
	if wait := f.Memory.Backoffs[TrackTunnel].wait(f.Uptime, provider.PriorityChange); wait > 0 {
		return waitFor(wait)
	}
	return Step{Action: Claim}
}
