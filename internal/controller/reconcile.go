package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Reconcile updates a key's tunnel and statuses.
func (p *process) Reconcile(ctx context.Context, key state.Key) (reconcile.Result, error) {
	// Changes in quick succession are pushed together, because connectors drop their
	// connections to the backends at every push. Envoy does not: a route change does
	// not wait for Access rules to be pushed.
	if wait := p.writeDelay(key); wait > 0 && !p.envoys.hasPublished(key.NamespacedName) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	requeueAfter, err := p.observe(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	delay := sooner(p.envoys.closingDelay(key.NamespacedName), p.accessDelay(key))
	return reconcile.Result{RequeueAfter: sooner(requeueAfter, delay)}, nil
}

// sooner returns the shorter delay, where 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// errPanic is recorded when a reconcile panics.
var errPanic = errors.New("the reconcile panicked")

// observe reconciles the key and records the reconcile, even if it panics.
func (p *process) observe(ctx context.Context, key state.Key) (requeueAfter time.Duration, err error) {
	ctx, end := p.observer.span(ctx, "reconcile", key)
	summary := &reconcileSummary{since: p.observer.pending.start(key)}
	err = errPanic
	defer func() {
		p.observer.record(key, summary, err)
		end(err)
	}()
	requeueAfter, err = p.reconcile(p.own.reconciling(ctx, key), key, summary)
	return requeueAfter, err
}

// reconcile updates the key and returns the delay until its next reconcile, or 0.
func (p *process) reconcile(ctx context.Context, key state.Key, summary *reconcileSummary) (time.Duration, error) {
	p.envoys.closeOverdue(ctx, key.NamespacedName)
	p.memories.resetAccessUntil(key)
	if err := errors.Join(p.dns.initialize(ctx), p.access.initialize(ctx)); err != nil {
		return 0, err
	}
	loaded, err := p.load(ctx, key)
	if err != nil {
		return 0, err
	}
	if loaded.Managed && loaded.Gateway.DeletionTimestamp.IsZero() {
		return p.reconcileManaged(ctx, key, loaded, summary)
	}
	return p.reconcileUnmanaged(ctx, key, loaded, summary)
}

// load reads the objects that affect the key.
func (p *process) load(ctx context.Context, key state.Key) (*state.Loaded, error) {
	ctx, end := p.observer.span(ctx, "load", key)
	loaded, err := p.reload(ctx, key)
	if err != nil {
		end(err)
		return nil, err
	}
	end(nil, attribute.Bool("gateway.managed", loaded.Managed))
	return loaded, nil
}

// reload reads what has changed since the key was last loaded. Only a managed Gateway's
// objects are remembered. After a panic or an error, everything is read.
func (p *process) reload(ctx context.Context, key state.Key) (*state.Loaded, error) {
	var previous state.Previous
	if m := p.memories.find(key); m != nil {
		previous, m.loaded = m.loaded, state.Previous{}
	}
	loaded, err := p.loader.Reload(ctx, key, &previous)
	if err != nil || !loaded.Managed {
		return loaded, err
	}
	m := p.memories.of(key)
	m.loaded = previous
	m.statuses.Changed(loaded.Changed)
	return loaded, nil
}

// decide makes the decision about a managed Gateway with the Tunnel object, which can
// be nil.
func (p *process) decide(ctx context.Context, key state.Key, loaded *state.Loaded, object *v1alpha1.Tunnel) *decision.Decision {
	_, end := p.observer.span(ctx, "build", key)
	loaded.Snapshot.Now = p.clock.now()
	d, rules := p.decideAgain(key, loaded.Snapshot, object), 0
	plane := d.Plane(object)
	if plane.Configuration != nil {
		rules = len(plane.Configuration.Ingress)
	}
	end(nil, attribute.Int("gateway.listeners", len(plane.Result.Listeners)), attribute.Int("gateway.routes", len(plane.Result.Routes)),
		attribute.Int("tunnel.rules", rules), attribute.Bool("gateway.accepted", plane.Result.Rejected == nil),
		attribute.String("gateway.data_plane", string(plane.Result.DataPlane)))
	return d
}

// decideAgain decides with what the last decision about the Gateway has left.
func (p *process) decideAgain(key state.Key, s *gateway.Snapshot, object *v1alpha1.Tunnel) *decision.Decision {
	m := p.memories.of(key)
	remembered := m.decisions
	if m.decisions = nil; remembered == nil {
		remembered = &decision.Memory{}
	}
	d := decision.Decide(s, object, p.options, remembered)
	m.decisions = remembered
	return d
}

// reconcileManaged updates a managed Gateway's tunnel and statuses.
func (p *process) reconcileManaged(ctx context.Context, key state.Key, loaded *state.Loaded, summary *reconcileSummary) (time.Duration, error) {
	p.sets.record(key.NamespacedName, loaded.Snapshot.ListenerSets)
	r := p.newRun(key, loaded)
	object := r.latest(loaded.Tunnel)
	loaded.Snapshot.Access = r.knownAccess(object)
	d := p.decide(ctx, key, loaded, object)
	r.decision, r.state = d, tunnel.Gateway{State: tunnel.GatewayExists, UID: loaded.Gateway.UID, Paused: d.Paused()}
	result := d.Plane(object).Result
	shared, err := p.hostnames.update(ctx, loaded.Gateway, result.Hostnames())
	if err != nil {
		return 0, err
	}
	r.memory.warned = p.notify.emitHostnameWarnings(loaded.Snapshot, r.memory.warned, result.HostnameWarnings())
	summary.managed, summary.paused = r.tunnel, r.state.Paused
	r.emitWarnings(result.Warnings)
	r.expose(result, false) // from now on, an open hostname waits for its protection
	first, err := r.publish(ctx, object)
	if err != nil {
		return 0, err
	}
	interim := r.outcome(ctx, shared, tunnel.Outcome{Tunnel: loaded.Snapshot.Tunnel}, object)
	outcome, requeueAfter, err := r.manageTunnel(ctx, func() gateway.Report { return result.Report(interim) })
	if outcome == nil {
		summary.awaitsEnvoys = requeueAfter > 0
		return requeueAfter, err
	}
	if r.awaitsRules(r.tunnel.object) && r.tunnel.memory.KnowsRules() {
		loaded.Tunnel = r.tunnel.object
		return p.reconcileManaged(ctx, key, loaded, summary) // the decision depends on the rules in effect
	}
	r.expose(d.Plane(r.tunnel.object).Result, outcome.State == tunnel.OutcomeInEffect)
	r.recordDNS(*outcome)
	r.recordAccess()
	if err := r.publishAgain(ctx, first); err != nil {
		return 0, err
	}
	// A failed renewal does not prevent the statuses, which follow the data plane in
	// effect now.
	err = errors.Join(err, r.renewWhilePaused(ctx))
	object = summary.managed.object
	plane := d.Plane(object)
	summary.configurationHash = plane.Hash
	summary.requiresAction = outcome.RequiresAction() || d.AccountProblem() != ""
	summary.outcome = r.outcome(ctx, shared, *outcome, object)
	report := plane.Result.Report(summary.outcome)
	summary.report, summary.routes, summary.usage, summary.uncounted = &report, &r.memory.routes, plane.Result.Usage, plane.Result.Uncounted
	// Record the metrics before the statuses, which can take long.
	p.observer.record(key, summary, err)
	p.writeStatuses(ctx, key, func(ctx context.Context) error { return p.writer.Write(ctx, key, report, &r.memory.statuses) })
	return requeueAfter, err
}

// writeStatuses runs write in a span. A status that cannot be written does not fail the
// reconcile: the [status.Writer] retries it.
func (p *process) writeStatuses(ctx context.Context, key state.Key, write func(context.Context) error) {
	ctx, end := p.observer.span(ctx, "report", key)
	end(write(ctx))
}

// reconcileUnmanaged reconciles a key without a managed Gateway. Its Tunnel retires
// after the retirement delay. Without a Tunnel, the status entries are removed once the
// API server confirms that the Gateway is gone or not managed.
func (p *process) reconcileUnmanaged(ctx context.Context, key state.Key, loaded *state.Loaded, summary *reconcileSummary) (time.Duration, error) {
	if key.Kind != gateway.KindGateway {
		summary.unmanaged = true
		p.reconcileListenerSet(ctx, key, loaded.Snapshot)
		return 0, nil
	}
	p.leave(key)
	found := p.gateways.read(ctx, key.NamespacedName)
	if found.State == tunnel.GatewayExists {
		found.State = tunnel.GatewayUnknown // the cache is behind the API server
	}
	object, err := p.objects.read(ctx, p.objects.client, key.NamespacedName)
	if err != nil {
		return 0, err
	}
	if object != nil {
		r := p.newRun(key, loaded)
		r.state, summary.managed, summary.stateUnknown = found, r.tunnel, true
		_, requeueAfter, err := r.manageInSpan(ctx)
		if err == nil {
			r.recordDeparture()
			r.recordAccessDeparture()
		}
		return requeueAfter, err
	}
	if found.State == tunnel.GatewayUnknown {
		summary.stateUnknown = true
		p.dns.suspend(key.NamespacedName, "", "")
		p.access.suspend(key.NamespacedName, accountKey{}, false)
		return p.unknownRetry(key, loaded), nil
	}
	summary.unmanaged = true
	p.forget(key)
	p.withdraw(ctx, key, decision.Withdraw(key, loaded.Snapshot, loaded.Managed))
	return 0, nil
}

// unknownRetry returns the delay until the next reconcile if the Gateway has no Tunnel
// and it is unknown whether it exists. It returns 0 for a Gateway in the cache, because
// a change to it triggers a reconcile.
func (p *process) unknownRetry(key state.Key, loaded *state.Loaded) time.Duration {
	if loaded.Gateway != nil || !p.gateways.inScope(key.Namespace) {
		return 0
	}
	return maxRetryDelay
}

// withdraw removes status entries.
func (p *process) withdraw(ctx context.Context, key state.Key, report gateway.Report) {
	p.writeStatuses(ctx, key, func(ctx context.Context) error { return p.writer.WriteAttached(ctx, key, report) })
}

// newRun returns the run for a Gateway that is managed or has a Tunnel.
func (p *process) newRun(key state.Key, loaded *state.Loaded) *run {
	m := p.memories.of(key)
	return &run{
		process: p, key: key, memory: m, tunnel: m.tunnel, gateway: loaded.Gateway, snapshot: loaded.Snapshot,
		requests: requests{},
	}
}

// latest returns the Gateway's Tunnel as this process last wrote or read it, or else
// the Tunnel from the cache, which can be older. If the cache says that a newer
// controller version serves the Tunnel, the cache counts.
func (r *run) latest(cached *v1alpha1.Tunnel) *v1alpha1.Tunnel {
	if known := r.tunnel.object; cached != nil && known != nil && known.UID == cached.UID && !tunnel.IsNewer(cached) {
		return known
	}
	return cached
}

// writeDelay returns how long to delay the next reconcile, so that changes in quick
// succession are written together.
func (p *process) writeDelay(key state.Key) time.Duration {
	m := p.memories.find(key)
	if m == nil {
		return 0
	}
	uptime := p.clock.uptime()
	return max(m.tunnel.memory.Pacing(uptime), m.tunnel.notBefore-uptime)
}
