// Package tunnel decides the next step in the lifecycle of a Gateway's tunnel: one API
// call, one read or one write. The package is pure: it contains no client, no context,
// no clock and no I/O.
//
// The controller gathers the [Facts], calls [Decide] to get a [Step], executes the
// step, and passes its [Result] to [Conclude], until the step is to wait.
// docs/tunnels.md describes the rules. The golden tables in this package contain one
// row for each rule, and an exhaustive exploration checks that the rules work together.
//
// [Decide] first determines where the Tunnel is in its lifecycle (lifecycle.go). While
// the Gateway exists, the rules in serve.go follow: each rule is a function that
// returns the next step for one aspect of the Tunnel, such as locate,
// applyConfiguration or rotateToken. When the Gateway is gone, retire.go decides. If a
// newer controller version serves the Tunnel, this version does nothing
// (schemaversion.go).
//
// The files dataplane*.go contain the rules about the data plane. It changes in phases,
// which the Tunnel records:
//
//	to Envoy          AddingEnvoy, Switching
//	to ingress rules  Switching, RemovingEnvoy
//
// A reversed change ends, or continues with a phase in the other direction.
// [Programmed] and [Status] report what Decide waits for.
package tunnel

// Decide returns the next step: one API call, one read or one write. It does not modify
// the Facts. It never returns the same action twice unless there is a wait in between
// or the Facts change.
func Decide(f Facts) Step {
	return f.whenWritable(f.wakeForRefresh(f.recordVersionFirst(next(f))))
}

// whenWritable returns the step. If the step writes the Tunnel object and that track
// is in backoff, it returns a wait instead.
func (f Facts) whenWritable(step Step) Step {
	if !step.Ends() && (step.Record != nil || trackOf(step.Action) == TrackObject) {
		return f.attempt(TrackObject, step)
	}
	return step
}

// next returns the next step, regardless of the Tunnel object's backoff.
func next(f Facts) Step {
	if f.Object == nil {
		return createObject(f)
	}
	if problem := f.objectProblem(); problem != nil {
		return blocked(problem)
	}
	switch f.lifecycle() {
	case lifecycleServing:
		return serve(f)
	case lifecycleReturned:
		return resume(f)
	case lifecycleRetiring:
		return retire(f)
	default: // lifecycleUnknown, lifecycleMissing
		return waitForGateway(f)
	}
}

// createObject decides whether a Gateway without a Tunnel object gets one.
func createObject(f Facts) Step {
	d := f.Desired
	switch {
	case f.Gateway.State != GatewayExists || d == nil || d.Configuration == nil:
		return Step{Action: None}
	case f.Gateway.Paused:
		return blocked(f.pausedProblem())
	}
	return f.attempt(TrackObject, Step{Action: Claim})
}
