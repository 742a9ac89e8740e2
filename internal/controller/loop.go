package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// loop is one run of decisions about one Tunnel.
type loop struct {
	*lifecycle
	target
	*managed
	requests requests
	// stale is whether the Tunnel has to be read from the API server: a write has
	// failed because it had changed.
	stale bool
	// applied identifies the connectors that this loop has applied.
	applied string
	// confirmed are the rivals that a claim found with a live list.
	confirmed []tunnel.Rival
}

// facts gathers what the next decision depends on.
func (l *loop) facts(ctx context.Context) (tunnel.Facts, error) {
	object, err := l.read(ctx)
	if err != nil {
		return tunnel.Facts{}, err
	}
	if l.object != nil && object != nil && object.UID != l.object.UID {
		l.memory = l.memory.WithoutObject() // it is another Tunnel
	}
	l.object = object
	f := tunnel.Facts{
		Uptime: l.clock.uptime(), Clock: l.clock.now(), Options: l.options,
		Name: l.key.NamespacedName, Object: object, Gateway: l.state, Desired: l.desired(l.target), Memory: l.memory,
	}
	if object == nil {
		return f, nil
	}
	tunnels, err := l.objects.list(ctx, l.client())
	if err != nil {
		return f, err
	}
	f.Rivals = append(tunnel.Rivals(object, tunnels), l.confirmed...)
	f.OtherRotating = rotating(tunnels, object.Name)
	if object.Spec.Existing != nil {
		f.Reserved = l.reserved.take(object.Spec.Existing.ID, l.key)
	}
	f.Credentials = l.accounts.check(ctx, object)
	f.Token = l.tokens.look(ctx, object, &l.token)
	f.Connectors, err = l.connectors.look(ctx, f, l.result, l.applied)
	return f, err
}

// read returns the Tunnel. The cache is good when it has what was written last.
func (l *loop) read(ctx context.Context) (*v1alpha1.Tunnel, error) {
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

// step executes one step. An error is one that the decisions know nothing of.
func (l *loop) step(ctx context.Context, f tunnel.Facts, s tunnel.Step) error {
	log.FromContext(ctx).V(1).Info("executing a step", "action", s.Action, "record", s.Record != nil)
	if s.Destructive() {
		confirmed, err := l.confirm(ctx, f)
		if err != nil || !confirmed {
			l.stale = true
			return err
		}
	}
	if s.Record != nil && s.Action != tunnel.Claim {
		written, err := l.objects.writeStatus(ctx, f.Object, *s.Record)
		if err != nil {
			l.unwritten(ctx, tunnel.Step{Action: tunnel.Record, Record: s.Record}, err)
			return nil
		}
		l.object, f.Object = written, written
	}
	if s.Event != nil {
		l.notify.step(l.gateway, f.Object, *s.Event)
	}
	result := l.execute(ctx, f, s)
	if result.Err != nil && changesObject(s.Action) {
		l.unwritten(ctx, s, result.Err)
		return nil
	}
	l.stale = l.stale || s.Action == tunnel.DeleteObject
	l.conclude(ctx, s, result)
	return nil
}

// changesObject reports whether the action writes the Tunnel object.
func changesObject(a tunnel.Action) bool { return a == tunnel.Claim || a == tunnel.DeleteObject }

// unwritten handles a write of the Tunnel that failed: after a conflict the
// Tunnel is read and everything decided again.
func (l *loop) unwritten(ctx context.Context, s tunnel.Step, err error) {
	l.stale = true
	l.conclude(ctx, s, tunnel.Result{Uptime: l.clock.uptime(), Err: err, Stale: isStale(err)})
}

// confirm reads Tunnel and Gateway from the API server, and reports whether both
// are as the facts say.
func (l *loop) confirm(ctx context.Context, f tunnel.Facts) (bool, error) {
	live, err := l.objects.read(ctx, l.objects.live, l.key.NamespacedName)
	if err != nil {
		return false, err
	}
	if live == nil || live.ResourceVersion != f.Object.ResourceVersion {
		return false, nil
	}
	now := l.gateways.read(ctx, l.key.NamespacedName)
	same := now == l.state
	l.state = now
	return same, nil
}

// end emits an event for a new problem that a person has to solve, and writes
// what is derived for people to read.
func (l *loop) end(ctx context.Context, f tunnel.Facts, p *tunnel.Problem) error {
	if p == nil || !p.NeedsPerson {
		l.reported = ""
	} else if l.reported != p.Reason {
		l.reported = p.Reason
		l.notify.problem(l.gateway, f.Object, *p)
	}
	if f.Object == nil {
		return nil
	}
	written, err := l.objects.writeStatus(ctx, f.Object, tunnel.Status(f))
	switch {
	case err == nil:
		l.object = written
	case isStale(err):
		return nil // the change wakes the Gateway
	}
	return err
}

// conclude remembers the result of a step, and reports a failure once.
func (l *loop) conclude(ctx context.Context, s tunnel.Step, r tunnel.Result) {
	if ctx.Err() != nil {
		return // the process ends
	}
	before := l.memory.Backoffs
	l.memory = tunnel.Conclude(l.memory, s, r)
	l.reportFailure(ctx, before, r)
	switch {
	case r.Err != nil:
	case s.Action == tunnel.Configure:
		l.done.pushed = append(l.done.pushed, r.Configuration.Size())
		l.done.repaired = l.done.repaired || s.ExternalChange != 0
	case s.Action == tunnel.Record && s.ExternalChange != 0:
		l.done.contested = true
	}
}

// reportFailure reports a failure of the step, or that the configuration's track
// has recovered from one.
func (l *loop) reportFailure(ctx context.Context, before [tunnel.TrackCount]tunnel.Backoff, r tunnel.Result) {
	for track, b := range l.memory.Backoffs {
		switch was := before[track].Problem; {
		case r.Err != nil && b.Problem != nil && b != before[track]:
			l.done.failures = append(l.done.failures, failure{reason: b.Problem.Reason, err: r.Err})
			if b.Problem.NeedsPerson {
				l.reported = b.Problem.Reason
			}
			l.notify.failed(ctx, l.gateway, l.object, was, b, r.Err)
		case was != nil && b.Problem == nil && tunnel.Track(track) == tunnel.TrackConfiguration:
			l.notify.recovered(l.gateway, l.object)
		}
	}
}
