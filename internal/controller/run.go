package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// run reconciles one Gateway once.
type run struct {
	process *process
	key     state.Key
	memory  *memory
	// tunnel is what the process remembered about the tunnel when the run began.
	tunnel *tunnelMemory
	// gateway is nil when the cache does not contain the Gateway.
	gateway *gatewayv1.Gateway
	// state is the Gateway's state as it was last read.
	state tunnel.Gateway
	// decision is nil when the controller does not manage the Gateway.
	decision *decision.Decision
	// snapshot contains the objects whose status entries are removed when the Tunnel
	// retires.
	snapshot *gateway.Snapshot
	requests requests
	// stale means that the Tunnel must be read from the API server because it may
	// have changed.
	stale bool
	// applied is the hash of the connector objects that this run has applied.
	applied string
	// departure is what becomes of the DNS records if the Gateway is gone.
	departure tunnel.Departure
	// confirmed are the rivals that a claim found in the API server.
	confirmed []tunnel.Rival
}

// maxSteps limits the steps in one run. A run that exceeds it is a bug.
const maxSteps = 100

// throttledPace is the minimum time between two reconciles while a write waits for a
// token, so that frequent changes cost as little as while they are written.
const throttledPace = time.Second

// manage makes and executes decisions until no step can be executed now. It returns the
// outcome for the Gateway's conditions and the delay until the next reconcile; 0 means
// to wait for a change. The outcome is nil when the run did not finish: with a delay,
// it waits for Envoys.
func (r *run) manage(ctx context.Context) (*tunnel.Outcome, time.Duration, error) {
	m := r.tunnel
	if found := r.process.memories.takeFinding(r.key); found != nil {
		m.memory = m.memory.MarkSuspect(found.missing)
	}
	defer r.process.reservations.release(r.key)
	defer r.forgetAfterPanic()
	for range maxSteps {
		facts, err := r.gatherFacts(ctx)
		if err != nil {
			return nil, 0, err
		}
		m.memory = tunnel.Observe(facts)
		facts.Memory = m.memory
		step := tunnel.Decide(facts)
		if step.AwaitsEnvoys {
			return nil, step.Delay, nil
		}
		if step.Ends() {
			if facts.Object != nil {
				r.departure = tunnel.DepartureOf(facts)
			}
			err := r.finish(ctx, facts, step.Problem)
			facts.Object = m.object // with the time when a pause began
			outcome := tunnel.Programmed(facts)
			if m.notBefore = 0; outcome.Reason == conditions.ReasonConfigurationThrottled {
				m.notBefore = facts.Uptime + min(throttledPace, step.Delay)
			}
			return &outcome, step.Delay, err
		}
		if err := r.executeStep(ctx, facts, step); err != nil {
			return nil, 0, err
		}
		if ctx.Err() != nil {
			return nil, 0, nil // the process is shutting down
		}
	}
	return nil, 0, fmt.Errorf("the tunnel lifecycle of %s did not finish within %d steps", r.key, maxSteps)
}

// forgetAfterPanic forgets the Gateway's tunnel during a panic, because it is unknown
// what the panicking step has changed. The next reconcile reads everything, as after
// the process starts.
func (r *run) forgetAfterPanic() {
	if recovered := recover(); recovered != nil {
		r.memory.tunnel = newTunnelMemory()
		panic(recovered) // in the same stack, so that the log shows the original panic
	}
}

// gatherFacts gathers the input for the next decision.
func (r *run) gatherFacts(ctx context.Context) (tunnel.Facts, error) {
	object, err := r.readTunnel(ctx)
	if err != nil {
		return tunnel.Facts{}, err
	}
	if r.tunnel.object != nil && object != nil && object.UID != r.tunnel.object.UID {
		r.tunnel.memory = r.tunnel.memory.WithoutObject() // the Tunnel was deleted and created again
	}
	r.tunnel.object = object
	f := tunnel.Facts{
		Uptime: r.process.clock.uptime(), Clock: r.process.clock.now(), Options: r.process.options.Tunnel,
		Name: r.key.NamespacedName, Object: object, Gateway: r.state, Memory: r.tunnel.memory,
		Envoys: r.process.envoys.facts(r.key.NamespacedName),
	}
	if r.decision != nil {
		if f.Desired = r.decision.Desired(object); f.Desired != nil {
			f.Desired.RulesUnknown = r.awaitsRules(object)
		}
	}
	if tunnel.DependsOnChanges(f) {
		f.ChangedNamespaces = r.changedNamespaces()
	}
	if object == nil {
		return f, nil
	}
	f.DNS, f.Access = r.dnsFacts(object), r.accessFacts(object)
	tunnels, err := r.process.objects.list(ctx, r.process.objects.client)
	if err != nil {
		return f, err
	}
	f.Rivals = append(tunnel.Rivals(object, tunnels), r.confirmed...)
	f.OtherRotating = isRotating(tunnels, object.Name)
	if object.Spec.Existing != nil {
		f.Reserved = r.process.reservations.reserve(object.Spec.Existing.ID, r.key)
	}
	f.Credentials = r.process.accounts.checkCredentials(ctx, object)
	f.Token = r.process.tokens.check(ctx, object, &r.tunnel.token)
	f.Connectors, err = r.process.connectors.check(ctx, f, r.decision.Settings(), r.memory.applied, r.applied)
	return f, err
}

// readTunnel returns the Tunnel. It reads from the cache only if the cache contains
// the version that was last written or read.
func (r *run) readTunnel(ctx context.Context) (*v1alpha1.Tunnel, error) {
	cached, err := r.process.objects.read(ctx, r.process.objects.client, r.key.NamespacedName)
	if err != nil {
		return nil, err
	}
	if !r.stale && cached != nil && r.tunnel.object != nil && cached.ResourceVersion == r.tunnel.object.ResourceVersion {
		return cached, nil
	}
	r.stale = false
	return r.process.objects.read(ctx, r.process.objects.live, r.key.NamespacedName)
}

// executeStep executes one step. It returns only errors that are not input for the next
// decision.
func (r *run) executeStep(ctx context.Context, f tunnel.Facts, s tunnel.Step) error {
	log.FromContext(ctx).V(1).Info("executing step", "action", s.Action, "record", s.Record != nil)
	if s.Destructive() {
		confirmed, err := r.confirmUnchanged(ctx, f)
		if err != nil || !confirmed {
			r.stale = true
			return err
		}
	}
	if s.Record != nil && s.Action != tunnel.Claim {
		written, err := r.process.objects.writeStatus(ctx, f.Object, *s.Record)
		if err != nil {
			r.writeFailed(ctx, tunnel.Step{Action: tunnel.Record, Record: s.Record}, err)
			return nil
		}
		r.tunnel.object, f.Object = written, written
	}
	if s.Event != nil {
		r.process.notify.emitStep(r.gateway, f.Object, *s.Event)
	}
	result := r.executeAction(ctx, f, s)
	if result.Err != nil && changesObject(s.Action) {
		r.writeFailed(ctx, s, result.Err)
		return nil
	}
	r.stale = r.stale || s.Action == tunnel.DeleteObject
	r.conclude(ctx, s, result)
	return nil
}

// changesObject reports whether the action writes the Tunnel object.
func changesObject(a tunnel.Action) bool { return a == tunnel.Claim || a == tunnel.DeleteObject }

// writeFailed records that writing the Tunnel failed. The next decision is based on the
// Tunnel in the API server.
func (r *run) writeFailed(ctx context.Context, s tunnel.Step, err error) {
	r.stale = true
	r.conclude(ctx, s, tunnel.Result{Uptime: r.process.clock.uptime(), Err: err, Stale: isStale(err)})
}

// confirmUnchanged reads the Tunnel and the Gateway from the API server. It reports
// whether both still match the facts.
func (r *run) confirmUnchanged(ctx context.Context, f tunnel.Facts) (bool, error) {
	live, err := r.process.objects.read(ctx, r.process.objects.live, r.key.NamespacedName)
	if err != nil {
		return false, err
	}
	if live == nil || live.ResourceVersion != f.Object.ResourceVersion {
		return false, nil
	}
	current := r.process.gateways.read(ctx, r.key.NamespacedName)
	if r.decision != nil && !r.decision.Paused() && v1alpha1.RequestsPause(r.gateway) {
		current.Paused = false // the GatewayClass forbids pausing
	}
	unchanged := current == r.state
	r.state = current
	return unchanged, nil
}

// finish emits an event for a new problem that requires user action, and writes the
// conditions and other derived fields in the Tunnel's status.
func (r *run) finish(ctx context.Context, f tunnel.Facts, p *tunnel.Problem) error {
	if p == nil || !p.RequiresAction {
		r.tunnel.reportedProblem = conditions.Reason{}
	} else if r.tunnel.reportedProblem != p.Reason {
		r.tunnel.reportedProblem = p.Reason
		r.process.notify.emitProblem(r.gateway, f.Object, *p)
	}
	if f.Object == nil {
		return nil
	}
	switch o := tunnel.Programmed(f); {
	case o.Reason == conditions.ReasonConfigurationThrottled:
		r.reportThrottling(f)
	case o.State == tunnel.OutcomeInEffect && r.tunnel.contributions.written == nil:
		r.recordInEffect(f.Desired.Hash)
	}
	written, err := r.process.objects.writeStatus(ctx, f.Object, tunnel.Status(f))
	switch {
	case err == nil:
		r.tunnel.object = written
		return r.removeAdopted(ctx)
	case isStale(err):
		return nil // the watch of the changed Tunnel requeues the Gateway
	}
	return err
}

// conclude records a step's result and reports a failure.
func (r *run) conclude(ctx context.Context, s tunnel.Step, result tunnel.Result) {
	if ctx.Err() != nil {
		return // the process is shutting down
	}
	before := r.tunnel.memory
	r.tunnel.memory = tunnel.Conclude(r.tunnel.memory, s, result)
	r.reportFailure(ctx, before.Backoffs, result)
	if s.Action == tunnel.Configure && r.tunnel.memory.Push != before.Push { // otherwise no request was sent
		r.memory.access.lastWrite = &result.Uptime
		r.recordWrite(s)
	}
	switch {
	case result.Err != nil:
	case s.Action == tunnel.Configure:
		r.tunnel.activity.pushedBytes = append(r.tunnel.activity.pushedBytes, result.Configuration.Size())
		r.tunnel.activity.repaired = r.tunnel.activity.repaired || s.ExternalChange != 0
	case s.Action == tunnel.Record && s.ExternalChange != 0:
		r.tunnel.activity.contested = true
	}
}

// reportFailure emits an event if the step has failed, or if the configuration track
// has recovered from a failure.
func (r *run) reportFailure(ctx context.Context, before [tunnel.TrackCount]tunnel.Backoff, result tunnel.Result) {
	for track, b := range r.tunnel.memory.Backoffs {
		switch previous := before[track].Problem; {
		case result.Err != nil && b.Problem != nil && b != before[track]:
			r.tunnel.activity.failures = append(r.tunnel.activity.failures, failure{reason: b.Problem.Reason, err: result.Err})
			if b.Problem.RequiresAction {
				r.tunnel.reportedProblem = b.Problem.Reason
			}
			r.process.notify.emitFailure(ctx, r.gateway, r.tunnel.object, previous, b, result.Err)
		case previous != nil && b.Problem == nil && tunnel.Track(track) == tunnel.TrackConfiguration:
			r.process.notify.emitRecovery(r.gateway, r.tunnel.object)
		}
	}
}
