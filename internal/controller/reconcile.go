package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// interimStatusDelay is how long the lifecycle of a tunnel may run before the reconciler
// writes interim statuses without its outcome.
const interimStatusDelay = 2 * time.Second

// reconciler reconciles a key in phases: it loads the state, makes the decisions about the
// Gateway, publishes the routes for Envoy, manages the tunnel and reports the statuses.
type reconciler struct {
	loader    state.Loader
	options   decision.Options
	lifecycle *lifecycle
	hostnames *sharedHostnames
	warnings  *hostnameWarnings
	writer    *status.Writer
	observer  *observer
	envoys    *envoys
	sets      listenerSetGateways
	now       func() time.Time
}

// Reconcile updates the tunnel and the statuses of a key.
func (r *reconciler) Reconcile(ctx context.Context, key state.Key) (reconcile.Result, error) {
	// Changes in quick succession are pushed together, because connectors drop
	// their connections to the backends at every push. Envoy does not: a change of its
	// routes does not wait for the pushes of Access rules.
	if wait := r.lifecycle.writeDelay(key); wait > 0 && !r.envoys.hasPublished(key.NamespacedName) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	requeueAfter, err := r.observe(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: sooner(requeueAfter, r.envoys.closingDelay(key.NamespacedName))}, nil
}

// sooner returns the shorter of two delays, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// errPanic is recorded as the error of a reconcile that panics.
var errPanic = errors.New("the reconcile panicked")

// observe reconciles the key and records the reconcile, even if it panics.
func (r *reconciler) observe(ctx context.Context, key state.Key) (requeueAfter time.Duration, err error) {
	ctx, end := r.observer.span(ctx, "reconcile", key)
	summary := &reconcileSummary{since: r.observer.pending.start(key)}
	err = errPanic
	defer func() {
		r.observer.record(key, summary, err)
		end(err)
	}()
	requeueAfter, err = r.reconcile(ctx, key, summary)
	return requeueAfter, err
}

// reconcile updates the key and returns the delay of its next reconcile, or 0.
func (r *reconciler) reconcile(ctx context.Context, key state.Key, summary *reconcileSummary) (time.Duration, error) {
	r.envoys.closeOverdue(ctx, key.NamespacedName)
	loaded, err := r.load(ctx, key)
	if err != nil {
		return 0, err
	}
	if loaded.Managed && loaded.Gateway.DeletionTimestamp.IsZero() {
		return r.reconcileManaged(ctx, key, loaded, summary)
	}
	return r.reconcileUnmanaged(ctx, key, loaded, summary)
}

// load reads the objects that affect the key.
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

// decide makes the decision about a managed Gateway with the Tunnel object, which can be nil.
func (r *reconciler) decide(ctx context.Context, key state.Key, loaded *state.Loaded, object *v1alpha1.Tunnel) *decision.Decision {
	_, end := r.observer.span(ctx, "build", key)
	loaded.Snapshot.Now = r.now()
	d, rules := decision.Decide(loaded.Snapshot, object, r.options), 0
	p := d.Plane(object)
	if p.Configuration != nil {
		rules = len(p.Configuration.Ingress)
	}
	end(nil, attribute.Int("gateway.listeners", len(p.Result.Listeners)), attribute.Int("gateway.routes", len(p.Result.Routes)),
		attribute.Int("tunnel.rules", rules), attribute.Bool("gateway.accepted", p.Result.Rejected == nil),
		attribute.String("gateway.data_plane", string(p.Result.DataPlane)))
	return d
}

// reconcileManaged updates the tunnel and the statuses of a managed Gateway.
func (r *reconciler) reconcileManaged(ctx context.Context, key state.Key, loaded *state.Loaded, summary *reconcileSummary) (time.Duration, error) {
	r.sets.record(key.NamespacedName, loaded.Snapshot.ListenerSets)
	object := r.lifecycle.latest(key, loaded.Tunnel)
	d := r.decide(ctx, key, loaded, object)
	t := target{key: key, gateway: loaded.Gateway, decision: d, snapshot: loaded.Snapshot}
	t.state = tunnel.Gateway{State: tunnel.GatewayExists, UID: loaded.Gateway.UID, Paused: d.Paused()}
	result := d.Plane(object).Result
	shared, err := r.hostnames.update(ctx, loaded.Gateway, result.Hostnames())
	if err != nil {
		return 0, err
	}
	r.warnings.emit(key, loaded.Snapshot, result.HostnameWarnings())
	summary.managed, summary.paused = r.lifecycle.tunnelFor(key), t.state.Paused
	r.lifecycle.emitWarnings(loaded.Gateway, summary.managed, result.Warnings)
	first, err := r.publish(ctx, t, object)
	if err != nil {
		return 0, err
	}
	interim := r.outcome(ctx, t, shared, tunnel.Outcome{Tunnel: loaded.Snapshot.Tunnel}, object)
	outcome, requeueAfter, err := r.manageTunnel(ctx, t, func() gateway.Report { return result.Report(interim) })
	if outcome == nil {
		return 0, err
	}
	if err := r.publishAgain(ctx, t, first); err != nil {
		return 0, err
	}
	// A failed renewal does not prevent the statuses, which follow the data plane in effect now.
	err = errors.Join(err, r.renewWhilePaused(ctx, t))
	object = summary.managed.object
	plane := d.Plane(object)
	summary.configurationHash = plane.Hash
	summary.requiresAction = outcome.RequiresAction() || d.AccountProblem() != ""
	summary.outcome = r.outcome(ctx, t, shared, *outcome, object)
	report := plane.Result.Report(summary.outcome)
	summary.report, summary.usage = &report, plane.Result.Usage
	// Record the metrics before the statuses, which can take long.
	r.observer.record(key, summary, err)
	r.writeStatuses(ctx, key, func(ctx context.Context) error { return r.writer.Write(ctx, key, report) })
	return requeueAfter, err
}

// outcome returns the outcome for the statuses, with the evidence of the connectors.
func (r *reconciler) outcome(ctx context.Context, t target, shared gateway.Shared, o tunnel.Outcome, object *v1alpha1.Tunnel) gateway.Outcome {
	return t.decision.Outcome(object, o, decision.Evidence{
		Shared: shared, Connectors: r.lifecycle.connectors.readiness(ctx, object, t.decision.Settings()),
		Envoys: r.envoys.state(t, object, o.DataPlaneChange, r.lifecycle.lastConfiguration(t.key)),
	})
}

// renewWhilePaused renews the certificates of a paused Gateway's Envoys. The lifecycle of the
// tunnel changes nothing while the Gateway is paused.
func (r *reconciler) renewWhilePaused(ctx context.Context, t target) error {
	object := r.lifecycle.tunnelFor(t.key).object
	if !t.state.Paused || !tunnel.UsesIdentity(object) || tunnel.IsNewer(object) {
		return nil
	}
	return r.lifecycle.connectors.renew(ctx, object)
}

// manageTunnel runs the lifecycle of the tunnel. If it takes longer than
// [interimStatusDelay], manageTunnel writes the interim statuses.
//
// The lifecycle runs in the goroutine of the reconcile, because controller-runtime
// recovers from a panic only there.
func (r *reconciler) manageTunnel(ctx context.Context, t target, interim func() gateway.Report) (*tunnel.Outcome, time.Duration, error) {
	stop := r.scheduleInterimStatuses(ctx, t, interim)
	defer stop()
	return r.runLifecycle(ctx, t)
}

// scheduleInterimStatuses writes the interim statuses after
// [interimStatusDelay]. The returned function cancels that and waits for its end.
func (r *reconciler) scheduleInterimStatuses(ctx context.Context, t target, interim func() gateway.Report) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(interimStatusDelay, func() {
		defer close(done)
		err := recovery.Call(ctx, func() error {
			report := interim()
			r.writeStatuses(ctx, t.key, func(ctx context.Context) error { return r.writer.Write(ctx, t.key, report) })
			return nil
		})
		if err != nil {
			log.FromContext(ctx).Error(err, "failed to write interim statuses")
		}
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-done
		}
	}
}

// runLifecycle runs the lifecycle of the tunnel in a span. The span contains the errors
// of failed steps.
func (r *reconciler) runLifecycle(ctx context.Context, t target) (*tunnel.Outcome, time.Duration, error) {
	ctx, end := r.observer.span(ctx, "manage", t.key)
	outcome, requeueAfter, err := r.lifecycle.run(ctx, t)
	errs := []error{err}
	for _, failure := range r.lifecycle.tunnelFor(t.key).activity.failures {
		errs = append(errs, failure.err)
	}
	var attributes []attribute.KeyValue
	if outcome != nil {
		attributes = append(attributes, attribute.String("tunnel.id", string(outcome.Tunnel)),
			attribute.String("tunnel.message", outcome.Message), attribute.String("tunnel.again", requeueAfter.String()))
	}
	end(errors.Join(errs...), attributes...)
	return outcome, requeueAfter, err
}

// writeStatuses runs write in a span. A status that cannot be written does not fail the
// reconcile: the [status.Writer] retries it.
func (r *reconciler) writeStatuses(ctx context.Context, key state.Key, write func(context.Context) error) {
	ctx, end := r.observer.span(ctx, "report", key)
	end(write(ctx))
}

// reconcileUnmanaged reconciles a key without a managed Gateway. Its Tunnel retires
// after the retirement delay. Without a Tunnel, the status entries are removed once the
// API server confirms that the Gateway is gone or not managed.
func (r *reconciler) reconcileUnmanaged(ctx context.Context, key state.Key, loaded *state.Loaded, summary *reconcileSummary) (time.Duration, error) {
	if key.Kind != gateway.KindGateway {
		summary.unmanaged = true
		r.reconcileListenerSet(ctx, key, loaded.Snapshot)
		return 0, nil
	}
	// Another controller may write the statuses now.
	r.writer.Forget(key)
	r.hostnames.remove(key.NamespacedName)
	r.warnings.emit(key, loaded.Snapshot, nil)
	t := target{
		key: key, gateway: loaded.Gateway, snapshot: loaded.Snapshot,
		state: r.lifecycle.gateways.read(ctx, key.NamespacedName),
	}
	if t.state.State == tunnel.GatewayExists {
		t.state.State = tunnel.GatewayUnknown // the cache is behind the API server
	}
	object, err := r.lifecycle.objects.read(ctx, r.lifecycle.client(), key.NamespacedName)
	if err != nil {
		return 0, err
	}
	if object != nil {
		summary.managed, summary.stateUnknown = r.lifecycle.tunnelFor(key), true
		_, requeueAfter, err := r.runLifecycle(ctx, t)
		return requeueAfter, err
	}
	if t.state.State == tunnel.GatewayUnknown {
		summary.stateUnknown = true
		return r.unknownRetry(key, loaded), nil
	}
	summary.unmanaged = true
	r.envoys.remove(key.NamespacedName)
	r.lifecycle.forget(key)
	r.withdraw(ctx, key, decision.Withdraw(key, loaded.Snapshot, loaded.Managed))
	return 0, nil
}

// unknownRetry returns the delay of the next reconcile for a Gateway of unknown state
// without a Tunnel. It returns 0 for a Gateway in the cache, because a change of it
// triggers a reconcile.
func (r *reconciler) unknownRetry(key state.Key, loaded *state.Loaded) time.Duration {
	if loaded.Gateway != nil || !r.lifecycle.gateways.inScope(key.Namespace) {
		return 0
	}
	return maxRetryDelay
}

// withdraw removes status entries.
func (r *reconciler) withdraw(ctx context.Context, key state.Key, report gateway.Report) {
	r.writeStatuses(ctx, key, func(ctx context.Context) error { return r.writer.WriteAttached(ctx, key, report) })
}
