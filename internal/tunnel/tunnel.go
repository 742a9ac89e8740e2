// Package tunnel decides the next step in the life of a Gateway's tunnel: which
// call, read or write comes next, given what is known. It is pure: no client, no
// context, no clock and no I/O belong here.
//
// The controller gathers the [Facts], asks [Decide] for a [Step], executes it,
// and hands the [Result] to [Conclude], until the step is to wait. The rules are
// those of docs/tunnels.md; each has a row in the golden table of this package,
// and an exhaustive exploration shows that they hold together.
package tunnel

// Decide returns the next step: one API call, one read or one write. The Facts
// are not changed. It never returns a step that executes an action twice without
// a wait or a change of the facts in between.
func Decide(f Facts) Step {
	return f.whenWritable(next(f))
}

// whenWritable returns the step, or the wait until the Tunnel object that it
// writes can be written again.
func (f Facts) whenWritable(step Step) Step {
	if !step.Ends() && (step.Record != nil || trackOf(step.Action) == TrackObject) {
		return f.attempt(TrackObject, step)
	}
	return step
}

// next returns the next step, also one that writes the Tunnel object while that
// is in backoff.
func next(f Facts) Step {
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
	switch {
	case f.Gateway.State != GatewayExists || d == nil || d.Configuration == nil:
		return Step{Action: None}
	case f.Gateway.Paused:
		return blocked(pausedProblem())
	}
	return f.attempt(TrackObject, Step{Action: Claim})
}
