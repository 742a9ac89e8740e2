package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// slowLoop is how long a loop of decisions may take before the statuses are
// written without its outcome.
const slowLoop = 2 * time.Second

// reconciler works on one key at a time: load, build, manage the tunnel, report.
type reconciler struct {
	loader    state.Loader
	decisions gateway.Options
	lifecycle *lifecycle
	overlaps  *overlaps
	writer    *status.Writer
	observer  *observer
	now       func() time.Time
}

// Reconcile brings the tunnel and the statuses of a key up to date.
func (r *reconciler) Reconcile(ctx context.Context, key state.Key) (reconcile.Result, error) {
	// Changes in quick succession are pushed together: a connector drops its
	// connections to the backends at every push.
	if wait := r.lifecycle.pacing(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ctx, end := r.observer.span(ctx, "reconcile", key)
	since, run := r.observer.changes.take(key), &run{}
	again, err := r.reconcile(ctx, key, run)
	r.observer.finished(key, run, since, err)
	end(err)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// reconcile returns when to come back.
func (r *reconciler) reconcile(ctx context.Context, key state.Key, run *run) (time.Duration, error) {
	loaded, err := r.load(ctx, key)
	if err != nil {
		return 0, err
	}
	if loaded.Managed && loaded.Gateway.DeletionTimestamp.IsZero() {
		return r.serve(ctx, key, loaded, run)
	}
	return r.leave(ctx, key, loaded, run)
}

func (r *reconciler) load(ctx context.Context, key state.Key) (*state.Loaded, error) {
	ctx, end := r.observer.span(ctx, "load", key)
	loaded, err := r.loader.Load(ctx, key)
	if err != nil {
		end(err)
		return nil, err
	}
	end(nil, attribute.Bool("gateway.managed", loaded.Managed))
	return loaded, nil
}

// build decides about the routes of a managed Gateway.
func (r *reconciler) build(ctx context.Context, key state.Key, loaded *state.Loaded) *gateway.Result {
	_, end := r.observer.span(ctx, "build", key)
	loaded.Snapshot.Now = r.now()
	result := gateway.Build(loaded.Snapshot, r.decisions)
	end(nil, attribute.Int("gateway.listeners", len(result.Listeners)), attribute.Int("gateway.routes", len(result.Routes)),
		attribute.Int("tunnel.rules", len(result.Rules)), attribute.Bool("gateway.accepted", result.Rejected == nil))
	return result
}

// serve carries out the decision about a managed Gateway.
func (r *reconciler) serve(ctx context.Context, key state.Key, loaded *state.Loaded, run *run) (time.Duration, error) {
	result := r.build(ctx, key, loaded)
	shared, err := r.overlaps.serve(ctx, loaded.Gateway, result.Hostnames())
	if err != nil {
		return 0, err
	}
	t := target{
		key: key, gateway: loaded.Gateway, result: result, snapshot: loaded.Snapshot,
		state: tunnel.Gateway{State: tunnel.GatewayExists, UID: loaded.Gateway.UID, Paused: isPaused(loaded.Gateway)},
	}
	run.managed, run.paused = r.lifecycle.of(key), t.state.Paused
	if want := result.Configuration(); want != nil {
		run.hash = want.Hash()
	}
	meanwhile := r.outcome(ctx, t, shared, tunnel.Outcome{Tunnel: loaded.Snapshot.Tunnel}, loaded.Tunnel)
	found, again, err := r.manage(ctx, t, meanwhile)
	if found == nil {
		return 0, err
	}
	run.needsPerson = found.NeedsPerson() || r.lifecycle.accountProblem(t) != ""
	return again, errors.Join(err, r.report(ctx, key, result, r.outcome(ctx, t, shared, *found, run.managed.object), run))
}

// outcome returns what the statuses report besides the decision.
func (r *reconciler) outcome(ctx context.Context, t target, shared gateway.Shared, found tunnel.Outcome, object *v1alpha1.Tunnel) gateway.Outcome {
	return gateway.Outcome{
		Push: push(t.result, found, r.lifecycle.accountProblem(t)), Tunnel: found.Tunnel, Shared: shared,
		Connectors: r.lifecycle.connectors.readiness(ctx, object, t),
	}
}

// push translates the outcome for the conditions.
func push(result *gateway.Result, found tunnel.Outcome, noAccount string) gateway.Push {
	p := gateway.Push{Message: found.Message}
	switch {
	case result.Configuration() == nil:
		return gateway.Push{State: gateway.PushOutstanding}
	case noAccount != "":
		return gateway.Push{State: gateway.PushFailed, Message: noAccount}
	case found.State == tunnel.OutcomeInEffect:
		p.State = gateway.PushSucceeded
	case found.State == tunnel.OutcomeFailed:
		p.State = gateway.PushFailed
		if found.Reason == tunnel.ReasonSettingsNotApplied {
			p.Reason = string(found.Reason)
		}
	}
	return p
}

// manage runs the decisions about the tunnel. While they take long, the statuses
// are written with all but their outcome: meanwhile is the rest of it.
func (r *reconciler) manage(ctx context.Context, t target, meanwhile gateway.Outcome) (outcome *tunnel.Outcome, again time.Duration, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, again, err = r.decide(ctx, t)
	}()
	slow := time.NewTimer(slowLoop)
	defer slow.Stop()
	select {
	case <-done:
	case <-slow.C:
		report := t.result.Report(meanwhile)
		if err := r.write(ctx, t.key, func(ctx context.Context) error { return r.writer.Write(ctx, t.key.NamespacedName, report) }); err != nil {
			log.FromContext(ctx).Error(err, "the statuses could not be written while the tunnel is managed")
		}
		<-done
	}
	return outcome, again, err
}

// decide runs the decisions about the tunnel in a span, which ends with the
// failures of the steps.
func (r *reconciler) decide(ctx context.Context, t target) (*tunnel.Outcome, time.Duration, error) {
	ctx, end := r.observer.span(ctx, "manage", t.key)
	outcome, again, err := r.lifecycle.run(ctx, t)
	failed := []error{err}
	for _, failure := range r.lifecycle.of(t.key).done.failures {
		failed = append(failed, failure.err)
	}
	var attributes []attribute.KeyValue
	if outcome != nil {
		attributes = append(attributes, attribute.String("tunnel.id", string(outcome.Tunnel)),
			attribute.String("tunnel.message", outcome.Message), attribute.String("tunnel.again", again.String()))
	}
	end(errors.Join(failed...), attributes...)
	return outcome, again, err
}

// report writes the statuses of a managed Gateway, and notes them.
func (r *reconciler) report(ctx context.Context, key state.Key, result *gateway.Result, o gateway.Outcome, run *run) error {
	report := result.Report(o)
	if err := r.write(ctx, key, func(ctx context.Context) error { return r.writer.Write(ctx, key.NamespacedName, report) }); err != nil {
		return err
	}
	run.report, run.outcome = &report, o
	return nil
}

// write writes statuses.
func (r *reconciler) write(ctx context.Context, key state.Key, statuses func(context.Context) error) error {
	ctx, end := r.observer.span(ctx, "report", key)
	err := statuses(ctx)
	end(err)
	return err
}

// leave decides about a key without a managed Gateway: its Tunnel retires in
// time, and status entries are removed when the Gateway is gone for certain.
func (r *reconciler) leave(ctx context.Context, key state.Key, loaded *state.Loaded, run *run) (time.Duration, error) {
	if key.Kind != gateway.KindGateway {
		run.gone = true
		return 0, r.withdraw(ctx, key, gateway.ResetReport(key, loaded.Snapshot))
	}
	r.overlaps.gone(key.NamespacedName)
	t := target{
		key: key, gateway: loaded.Gateway, snapshot: loaded.Snapshot,
		state: r.lifecycle.gateways.read(ctx, key.NamespacedName),
	}
	if t.state.State == tunnel.GatewayExists {
		t.state.State = tunnel.GatewayUnknown // the cache will follow
	}
	object, err := r.lifecycle.objects.read(ctx, r.lifecycle.client(), key.NamespacedName)
	if err != nil {
		return 0, err
	}
	if object != nil {
		run.managed, run.unknown = r.lifecycle.of(key), true
		_, again, err := r.decide(ctx, t)
		return again, err
	}
	if t.state.State == tunnel.GatewayUnknown {
		run.unknown = true
		return r.unknownRetry(key, loaded), nil
	}
	run.gone = true
	r.lifecycle.forget(key)
	return 0, r.withdraw(ctx, key, r.withdrawal(key, loaded))
}

// unknownRetry returns when to look again for a Gateway of unknown state that has
// no Tunnel: an event tells when anything changes for one that is in the cache.
func (r *reconciler) unknownRetry(key state.Key, loaded *state.Loaded) time.Duration {
	if loaded.Gateway != nil || !r.lifecycle.gateways.inScope(key.Namespace) {
		return 0
	}
	return lastRetry
}

// withdrawal returns which status entries to remove for a Gateway without a
// Tunnel. Another controller may have written the statuses of the ListenerSets of
// a Gateway that is not managed.
func (r *reconciler) withdrawal(key state.Key, loaded *state.Loaded) gateway.Report {
	report := gateway.ResetReport(key, loaded.Snapshot)
	if !loaded.Managed {
		report.ListenerSets = nil
	}
	return report
}

// withdraw removes status entries.
func (r *reconciler) withdraw(ctx context.Context, key state.Key, report gateway.Report) error {
	return r.write(ctx, key, func(ctx context.Context) error { return r.writer.WriteAttached(ctx, report) })
}
