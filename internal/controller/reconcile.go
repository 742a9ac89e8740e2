package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// slowPush is how long a push may take before the statuses are written without
// its outcome.
const slowPush = 2 * time.Second

// reconciler works on one key at a time: load, build, push, report.
type reconciler struct {
	loader    state.Loader
	decisions gateway.Options
	tunnels   *tunnels
	overlaps  *overlaps
	writer    *status.Writer
	observer  *observer
	now       func() time.Time
}

// Reconcile brings the tunnel and the statuses of a key up to date.
func (r *reconciler) Reconcile(ctx context.Context, key state.Key) (reconcile.Result, error) {
	// Changes that come fast are taken together: the tunnel's connector drops
	// its connections to the origins at every push.
	if wait := r.tunnels.pacing(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ctx, end := r.observer.span(ctx, "reconcile", key)
	since, p := r.observer.changes.take(key), &pass{}
	again, err := r.pass(ctx, key, p)
	r.observer.passed(key, p, since, err)
	end(err)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// pass is one pass over a key. It returns when to come back.
func (r *reconciler) pass(ctx context.Context, key state.Key, p *pass) (time.Duration, error) {
	loaded, err := r.load(ctx, key)
	if err != nil {
		return 0, err
	}
	deleting := loaded.Gateway != nil && !loaded.Gateway.DeletionTimestamp.IsZero()
	switch {
	case loaded.Ours && !deleting:
		return r.serve(ctx, key, loaded, p)
	case loaded.Gateway != nil && loaded.Classless && !deleting:
		// A class that is missing may be back in a moment, so nothing is let go.
		r.overlaps.gone(key.NamespacedName)
		p.unknown = true
		return 0, nil
	default:
		return r.release(ctx, key, loaded, p)
	}
}

func (r *reconciler) load(ctx context.Context, key state.Key) (*state.Loaded, error) {
	ctx, end := r.observer.span(ctx, "load", key)
	loaded, err := r.loader.Load(ctx, key)
	if err != nil {
		end(err)
		return nil, err
	}
	end(nil, attribute.Bool("gateway.ours", loaded.Ours))
	return loaded, nil
}

// build decides about a Gateway of ours.
func (r *reconciler) build(ctx context.Context, key state.Key, loaded *state.Loaded) *gateway.Result {
	_, end := r.observer.span(ctx, "build", key)
	loaded.Snapshot.Now = r.now()
	result := gateway.Build(loaded.Snapshot, r.decisions)
	end(nil, attribute.Int("gateway.listeners", len(result.Listeners)), attribute.Int("gateway.routes", len(result.Routes)),
		attribute.Int("tunnel.rules", len(result.Rules)), attribute.Bool("gateway.accepted", result.Rejected == nil))
	return result
}

// report writes what there is to say about a Gateway of ours, and notes it.
func (r *reconciler) report(ctx context.Context, key state.Key, result *gateway.Result, o gateway.Outcome, p *pass) error {
	report := result.Report(o)
	if err := r.write(ctx, key, func(ctx context.Context) error { return r.writer.Write(ctx, key.NamespacedName, report) }); err != nil {
		return err
	}
	p.report, p.outcome = &report, o
	return nil
}

// write writes statuses.
func (r *reconciler) write(ctx context.Context, key state.Key, statuses func(context.Context) error) error {
	ctx, end := r.observer.span(ctx, "report", key)
	err := statuses(ctx)
	end(err)
	return err
}

// serve carries out the decision about a Gateway of ours.
func (r *reconciler) serve(ctx context.Context, key state.Key, loaded *state.Loaded, p *pass) (time.Duration, error) {
	result := r.build(ctx, key, loaded)
	shared, err := r.overlaps.serve(ctx, loaded.Gateway, result.Hostnames())
	if err != nil {
		return 0, err
	}
	t := r.tunnels.of(loaded)
	p.tunnel, p.paused = t, paused(loaded.Gateway)
	connectors, err := r.tunnels.connectorsReady(ctx, t, loaded.Gateway, result.Settings)
	if err != nil {
		return 0, err
	}
	if want := result.Configuration(); want != nil {
		p.document = want.Hash()
	}
	push, again := r.push(ctx, t, loaded, result, gateway.Outcome{Shared: shared, Connectors: connectors})
	if ctx.Err() != nil {
		return 0, nil // the controller ends; the next one looks again
	}
	if connectors, err = r.tunnels.connectorsReady(ctx, t, loaded.Gateway, result.Settings); err != nil {
		return 0, err
	}
	outcome := gateway.Outcome{Push: push, Tunnel: r.tunnels.ownTunnel(t), Shared: shared, Connectors: connectors}
	if err := r.report(ctx, key, result, outcome, p); err != nil {
		return 0, err
	}
	return again, nil
}

// push puts the decision into effect and returns how it went and when to come
// back. While it takes long, the statuses say all but its outcome: meanwhile is
// the rest of it.
func (r *reconciler) push(
	ctx context.Context, t *tunnel, loaded *state.Loaded, result *gateway.Result, meanwhile gateway.Outcome,
) (gateway.Push, time.Duration) {
	want := result.Configuration()
	if want == nil {
		return gateway.Push{State: gateway.PushOutstanding}, 0
	}
	meanwhile.Tunnel = r.tunnels.ownTunnel(t)
	key := loadedKey(loaded.Gateway)
	ctx, end := r.observer.span(ctx, "push", key)
	type outcome struct {
		push  gateway.Push
		again time.Duration
	}
	done := make(chan outcome, 1)
	go func() {
		push, again := r.tunnels.apply(ctx, t, loaded.Gateway, result.Settings, *want)
		again = min(again, r.tunnels.connect(ctx, t, loaded.Gateway, result))
		done <- outcome{push, again}
	}()
	slow := time.NewTimer(slowPush)
	defer slow.Stop()
	var o outcome
	select {
	case o = <-done:
	case <-slow.C:
		report := result.Report(meanwhile)
		if err := r.write(ctx, key, func(ctx context.Context) error { return r.writer.Write(ctx, key.NamespacedName, report) }); err != nil {
			log.FromContext(ctx).Error(err, "statuses were not written while a push is under way")
		}
		o = <-done
	}
	end(pushError(o.push, t.happened.failures), append(pushed(o.push, o.again), attribute.String("tunnel.id", string(t.record.Tunnel)),
		attribute.Int("tunnel.pushes", len(t.happened.pushed)))...)
	return o.push, o.again
}

// release lets go of a Gateway that is being deleted or is not ours any more,
// and takes back what was said about it. For a key that never was ours there is
// nothing to take back.
func (r *reconciler) release(ctx context.Context, key state.Key, loaded *state.Loaded, p *pass) (time.Duration, error) {
	if key.Kind == gateway.KindGateway {
		r.overlaps.gone(key.NamespacedName)
	}
	report := gateway.Withdraw(key, loaded.Snapshot)
	if !r.tunnels.holds(loaded) {
		r.tunnels.forget(key)
		p.gone = true
		if !loaded.Ours {
			// Without our finalizer nobody can tell who spoke about the sets.
			report.ListenerSets = nil
		}
		return 0, r.withdraw(ctx, key, report)
	}
	t := r.tunnels.of(loaded)
	p.tunnel = t
	var result *gateway.Result
	var settings *gateway.Settings
	if loaded.Ours {
		result = r.build(ctx, key, loaded)
		settings = result.Settings
		t.fallback = fallback(loaded.Snapshot.ClassConfiguration)
	}
	if problem, again := r.letGo(ctx, key, t, loaded.Gateway, settings); problem != "" {
		return again, r.reportHeld(ctx, key, result, loaded.Gateway, problem, p)
	}
	if err := r.withdraw(ctx, key, report); err != nil {
		return 0, err
	}
	if err := r.tunnels.unclaim(ctx, loaded.Gateway); err != nil {
		return 0, err
	}
	r.tunnels.leave(key, t)
	p.gone = true
	return 0, nil
}

// withdraw takes back what was said about what is attached to the Gateway.
func (r *reconciler) withdraw(ctx context.Context, key state.Key, report gateway.Report) error {
	return r.write(ctx, key, func(ctx context.Context) error { return r.writer.WriteAttached(ctx, report) })
}

// letGo gives back what the Gateway has. It returns why that is not done yet, or
// "", and when to come back.
func (r *reconciler) letGo(
	ctx context.Context, key state.Key, t *tunnel, g *gatewayv1.Gateway, settings *gateway.Settings,
) (string, time.Duration) {
	ctx, end := r.observer.span(ctx, "let go", key)
	problem, again := r.tunnels.letGo(ctx, t, g, settings)
	end(errors.Join(t.happened.failures...), attribute.String("tunnel.id", string(t.record.Tunnel)))
	return problem, again
}

// fallback is what a class alone says of the account, for a Gateway whose own
// settings are gone.
func fallback(class *v1alpha1.TunnelConfiguration) *gateway.Settings {
	if class == nil {
		return nil
	}
	return &gateway.Settings{Spec: v1alpha1.TunnelConfigurationSpec{Account: class.Spec.Account}, AccountNamespace: class.Namespace}
}

// reportHeld keeps the statuses of a Gateway current that cannot be let go
// yet. The status of one that is not ours is not ours to write: result is nil.
func (r *reconciler) reportHeld(
	ctx context.Context, key state.Key, result *gateway.Result, g *gatewayv1.Gateway, problem string, p *pass,
) error {
	if result == nil {
		p.unknown = true
		return nil
	}
	connectors, err := r.tunnels.connectorsReady(ctx, p.tunnel, g, result.Settings)
	if err != nil {
		return err
	}
	return r.report(ctx, key, result, gateway.Outcome{
		Push: gateway.Push{State: gateway.PushFailed, Message: problem}, Tunnel: r.tunnels.ownTunnel(p.tunnel), Connectors: connectors,
	}, p)
}
