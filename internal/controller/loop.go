package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// loop executes the decisions about one Tunnel during one reconcile.
type loop struct {
	*lifecycle
	target
	*managedTunnel
	requests requests
	// stale means that the Tunnel must be read from the API server because it may
	// have changed.
	stale bool
	// applied is the hash of the connector objects that this loop has applied.
	applied string
	// confirmed are the rivals that a claim found in the API server.
	confirmed []tunnel.Rival
}

// gatherFacts gathers the input of the next decision.
func (l *loop) gatherFacts(ctx context.Context) (tunnel.Facts, error) {
	object, err := l.readTunnel(ctx)
	if err != nil {
		return tunnel.Facts{}, err
	}
	if l.object != nil && object != nil && object.UID != l.object.UID {
		l.memory = l.memory.WithoutObject() // the Tunnel was deleted and created again
	}
	l.object = object
	f := tunnel.Facts{
		Uptime: l.clock.uptime(), Clock: l.clock.now(), Options: l.options,
		Name: l.key.NamespacedName, Object: object, Gateway: l.state, Memory: l.memory,
		Envoys: l.envoys.facts(l.key.NamespacedName),
	}
	if l.decision != nil {
		f.Desired = l.decision.Desired(object)
	}
	if tunnel.DependsOnChanges(f) {
		f.ChangedNamespaces = l.changedNamespaces()
	}
	if object == nil {
		return f, nil
	}
	tunnels, err := l.objects.list(ctx, l.client())
	if err != nil {
		return f, err
	}
	f.Rivals = append(tunnel.Rivals(object, tunnels), l.confirmed...)
	f.OtherRotating = isRotating(tunnels, object.Name)
	if object.Spec.Existing != nil {
		f.Reserved = l.reservations.reserve(object.Spec.Existing.ID, l.key)
	}
	f.Credentials = l.accounts.checkCredentials(ctx, object)
	f.Token = l.tokens.check(ctx, object, &l.token)
	f.Connectors, err = l.connectors.check(ctx, f, l.decision.Settings(), l.applied)
	return f, err
}

// readTunnel returns the Tunnel. It reads from the cache only if the cache contains
// the version that was last written or read.
func (l *loop) readTunnel(ctx context.Context) (*v1alpha1.Tunnel, error) {
	cached, err := l.objects.read(ctx, l.client(), l.key.NamespacedName)
	if err != nil {
		return nil, err
	}
	if !l.stale && cached != nil && l.object != nil && cached.ResourceVersion == l.object.ResourceVersion {
		return cached, nil
	}
	l.stale = false
	return l.objects.read(ctx, l.objects.live, l.key.NamespacedName)
}

// executeStep executes one step. It returns only errors that are not input of the next
// decision.
func (l *loop) executeStep(ctx context.Context, f tunnel.Facts, s tunnel.Step) error {
	log.FromContext(ctx).V(1).Info("executing step", "action", s.Action, "record", s.Record != nil)
	if s.Destructive() {
		confirmed, err := l.confirmUnchanged(ctx, f)
		if err != nil || !confirmed {
			l.stale = true
			return err
		}
	}
	if s.Record != nil && s.Action != tunnel.Claim {
		written, err := l.objects.writeStatus(ctx, f.Object, *s.Record)
		if err != nil {
			l.writeFailed(ctx, tunnel.Step{Action: tunnel.Record, Record: s.Record}, err)
			return nil
		}
		l.object, f.Object = written, written
	}
	if s.Event != nil {
		l.notify.emitStep(l.gateway, f.Object, *s.Event)
	}
	result := l.executeAction(ctx, f, s)
	if result.Err != nil && changesObject(s.Action) {
		l.writeFailed(ctx, s, result.Err)
		return nil
	}
	l.stale = l.stale || s.Action == tunnel.DeleteObject
	l.conclude(ctx, s, result)
	return nil
}

// changesObject reports whether the action writes the Tunnel object.
func changesObject(a tunnel.Action) bool { return a == tunnel.Claim || a == tunnel.DeleteObject }

// writeFailed records a failed write of the Tunnel. The next decision is based on the
// Tunnel in the API server.
func (l *loop) writeFailed(ctx context.Context, s tunnel.Step, err error) {
	l.stale = true
	l.conclude(ctx, s, tunnel.Result{Uptime: l.clock.uptime(), Err: err, Stale: isStale(err)})
}

// confirmUnchanged reads the Tunnel and the Gateway from the API server. It reports
// whether both still match the facts.
func (l *loop) confirmUnchanged(ctx context.Context, f tunnel.Facts) (bool, error) {
	live, err := l.objects.read(ctx, l.objects.live, l.key.NamespacedName)
	if err != nil {
		return false, err
	}
	if live == nil || live.ResourceVersion != f.Object.ResourceVersion {
		return false, nil
	}
	current := l.gateways.read(ctx, l.key.NamespacedName)
	if l.decision != nil && !l.decision.Paused() && v1alpha1.RequestsPause(l.gateway) {
		current.Paused = false // the class forbids pausing
	}
	unchanged := current == l.state
	l.state = current
	return unchanged, nil
}

// finish emits an event for a new problem that requires user action, and writes the
// conditions and other derived fields of the Tunnel's status.
func (l *loop) finish(ctx context.Context, f tunnel.Facts, p *tunnel.Problem) error {
	if p == nil || !p.RequiresAction {
		l.reportedProblem = conditions.Reason{}
	} else if l.reportedProblem != p.Reason {
		l.reportedProblem = p.Reason
		l.notify.emitProblem(l.gateway, f.Object, *p)
	}
	if f.Object == nil {
		return nil
	}
	switch o := tunnel.Programmed(f); {
	case o.Reason == conditions.ReasonConfigurationThrottled:
		l.reportThrottling(f)
	case o.State == tunnel.OutcomeInEffect && l.contributions.written == nil:
		l.recordInEffect(f.Desired.Hash)
	}
	written, err := l.objects.writeStatus(ctx, f.Object, tunnel.Status(f))
	switch {
	case err == nil:
		l.object = written
	case isStale(err):
		return nil // the watch of the changed Tunnel requeues the Gateway
	}
	return err
}

// conclude records the result of a step and reports a failure.
func (l *loop) conclude(ctx context.Context, s tunnel.Step, r tunnel.Result) {
	if ctx.Err() != nil {
		return // the process is shutting down
	}
	before := l.memory
	l.memory = tunnel.Conclude(l.memory, s, r)
	l.reportFailure(ctx, before.Backoffs, r)
	if s.Action == tunnel.Configure && l.memory.Push != before.Push { // otherwise no request was sent
		l.recordWrite(s)
	}
	switch {
	case r.Err != nil:
	case s.Action == tunnel.Configure:
		l.activity.pushedBytes = append(l.activity.pushedBytes, r.Configuration.Size())
		l.activity.repaired = l.activity.repaired || s.ExternalChange != 0
	case s.Action == tunnel.Record && s.ExternalChange != 0:
		l.activity.contested = true
	}
}

// reportFailure emits an event if the step has failed, or if the track of the
// configuration has recovered from a failure.
func (l *loop) reportFailure(ctx context.Context, before [tunnel.TrackCount]tunnel.Backoff, r tunnel.Result) {
	for track, b := range l.memory.Backoffs {
		switch previous := before[track].Problem; {
		case r.Err != nil && b.Problem != nil && b != before[track]:
			l.activity.failures = append(l.activity.failures, failure{reason: b.Problem.Reason, err: r.Err})
			if b.Problem.RequiresAction {
				l.reportedProblem = b.Problem.Reason
			}
			l.notify.emitFailure(ctx, l.gateway, l.object, previous, b, r.Err)
		case previous != nil && b.Problem == nil && tunnel.Track(track) == tunnel.TrackConfiguration:
			l.notify.emitRecovery(l.gateway, l.object)
		}
	}
}
