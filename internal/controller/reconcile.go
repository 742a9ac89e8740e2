package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
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
	now       func() time.Time
}

// Reconcile brings the tunnel and the statuses of a key up to date.
func (r *reconciler) Reconcile(ctx context.Context, key state.Key) (reconcile.Result, error) {
	// Changes that come fast are taken together: the tunnel's connector drops
	// its connections to the origins at every push.
	if wait := r.tunnels.pacing(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	loaded, err := r.loader.Load(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	deleting := loaded.Gateway != nil && !loaded.Gateway.DeletionTimestamp.IsZero()
	switch {
	case loaded.Ours && !deleting:
		return r.serve(ctx, key, loaded)
	case loaded.Gateway != nil && loaded.Classless && !deleting:
		// A class that is missing may be back in a moment, so nothing is let go.
		r.overlaps.gone(key.NamespacedName)
		return reconcile.Result{}, nil
	default:
		return r.release(ctx, key, loaded)
	}
}

// serve carries out the decision about a Gateway of ours.
func (r *reconciler) serve(ctx context.Context, key state.Key, loaded *state.Loaded) (reconcile.Result, error) {
	loaded.Snapshot.Now = r.now()
	result := gateway.Build(loaded.Snapshot, r.decisions)
	shared, err := r.overlaps.serve(ctx, loaded.Gateway, result.Hostnames())
	if err != nil {
		return reconcile.Result{}, err
	}
	t := r.tunnels.of(loaded)
	connectors, err := r.tunnels.connectorsReady(ctx, t, loaded.Gateway, result.Settings)
	if err != nil {
		return reconcile.Result{}, err
	}
	push, again := r.push(ctx, t, loaded, result, gateway.Outcome{Shared: shared, Connectors: connectors})
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // the controller ends; the next one looks again
	}
	if connectors, err = r.tunnels.connectorsReady(ctx, t, loaded.Gateway, result.Settings); err != nil {
		return reconcile.Result{}, err
	}
	report := result.Report(gateway.Outcome{Push: push, Tunnel: r.tunnels.ownTunnel(t), Shared: shared, Connectors: connectors})
	if err := r.writer.Write(ctx, key.NamespacedName, report); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
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
	select {
	case o := <-done:
		return o.push, o.again
	case <-slow.C:
		if err := r.writer.Write(ctx, client.ObjectKeyFromObject(loaded.Gateway), result.Report(meanwhile)); err != nil {
			log.FromContext(ctx).Error(err, "statuses were not written while a push is under way")
		}
	}
	o := <-done
	return o.push, o.again
}

// release lets go of a Gateway that is being deleted or is not ours any more,
// and takes back what was said about it. For a key that never was ours there is
// nothing to take back.
func (r *reconciler) release(ctx context.Context, key state.Key, loaded *state.Loaded) (reconcile.Result, error) {
	if key.Kind == gateway.KindGateway {
		r.overlaps.gone(key.NamespacedName)
	}
	report := gateway.Withdraw(key, loaded.Snapshot)
	if !r.tunnels.holds(loaded) {
		r.tunnels.forget(key)
		if !loaded.Ours {
			// Without our finalizer nobody can tell who spoke about the sets.
			report.ListenerSets = nil
		}
		return reconcile.Result{}, r.writer.WriteAttached(ctx, report)
	}
	t := r.tunnels.of(loaded)
	var result *gateway.Result
	var settings *gateway.Settings
	if loaded.Ours {
		loaded.Snapshot.Now = r.now()
		result = gateway.Build(loaded.Snapshot, r.decisions)
		settings = result.Settings
		t.fallback = fallback(loaded.Snapshot.ClassConfiguration)
	}
	if problem, again := r.tunnels.letGo(ctx, t, loaded.Gateway, settings); problem != "" {
		if err := r.reportHeld(ctx, t, result, loaded.Gateway, problem); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if err := r.writer.WriteAttached(ctx, report); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.tunnels.unclaim(ctx, loaded.Gateway); err != nil {
		return reconcile.Result{}, err
	}
	r.tunnels.leave(key, t)
	return reconcile.Result{}, nil
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
func (r *reconciler) reportHeld(ctx context.Context, t *tunnel, result *gateway.Result, g *gatewayv1.Gateway, problem string) error {
	if result == nil {
		return nil
	}
	connectors, err := r.tunnels.connectorsReady(ctx, t, g, result.Settings)
	if err != nil {
		return err
	}
	report := result.Report(gateway.Outcome{
		Push: gateway.Push{State: gateway.PushFailed, Message: problem}, Tunnel: r.tunnels.ownTunnel(t), Connectors: connectors,
	})
	return r.writer.Write(ctx, client.ObjectKeyFromObject(g), report)
}
