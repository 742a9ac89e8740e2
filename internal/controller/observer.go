package controller

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// reconcileSummary is what one reconcile of a key came to: for the metrics, which are recorded
// from it at the end, and for the trace.
type reconcileSummary struct {
	// managed is the Gateway's Tunnel; nil when the reconcile did not come to it.
	managed *managedTunnel
	// report was written last, and outcome is what it says; nil when the reconcile
	// did not come to it.
	report  *gateway.Report
	outcome gateway.Outcome
	// paused is whether changes are not to be pushed, and needsPerson whether they
	// cannot be pushed before a person acts.
	paused, needsPerson bool
	// configurationHash is that of the desired configuration; empty when there is none.
	configurationHash string
	// unmanaged is whether the key's Gateway is not managed, or does not exist.
	unmanaged bool
	// stateUnknown is whether nothing can be said about the Gateway.
	stateUnknown bool
}

// observer records reconciles.
type observer struct {
	metrics *metrics.Metrics
	pending *pendingChanges
	tracer  trace.Tracer
	now     func() time.Time
}

func newObserver(m *metrics.Metrics, tracer trace.Tracer, now func() time.Time) *observer {
	return &observer{metrics: m, pending: newPendingChanges(now, m.SetOldestChange), tracer: tracer, now: now}
}

// record records a reconcile of a Gateway; since is the first change that it
// processed, or zero.
func (o *observer) record(key state.Key, r *reconcileSummary, since time.Time, err error) {
	if key.Kind != gateway.KindGateway {
		o.pending.finish(key, false)
		return
	}
	done := o.recordActivity(key, r.managed)
	if err != nil {
		o.metrics.RecordError(key.NamespacedName, tunnel.ReasonKubernetes)
	}
	// The repair of an external change carries out nothing that changed beside it.
	if len(done.pushedBytes) > 0 && !done.repaired && !since.IsZero() {
		o.metrics.ObserveChangeToPush(o.now().Sub(since))
	}
	o.pending.finish(key, len(done.pushedBytes) == 0 && (err != nil || r.pending()))
	o.recordState(key, r, err)
}

// recordState records the state of the Gateway after the reconcile.
func (o *observer) recordState(key state.Key, r *reconcileSummary, err error) {
	if r.managed != nil {
		o.metrics.SetGatewayMissing(key.NamespacedName, r.missingSince())
	}
	switch {
	case r.unmanaged && err == nil:
		o.metrics.DeleteGateway(key.NamespacedName)
	case r.stateUnknown:
		o.metrics.ClearGateway(key.NamespacedName)
	case r.report != nil:
		o.metrics.SetGateway(key.NamespacedName, gatewayMetrics(r))
	}
}

// missingSince returns since when the Gateway of the Tunnel is gone, or zero.
func (r *reconcileSummary) missingSince() time.Time {
	if r.managed.object == nil {
		return time.Time{}
	}
	status := r.managed.object.Status
	if status.MissingSince == nil || status.Phase == v1alpha1.TunnelRetained {
		return time.Time{}
	}
	return status.MissingSince.Time
}

// pending reports whether a change is still to be pushed, and does not wait for a
// person. Many events change no configuration: the first look at all objects
// after a start, or the statuses that the controller writes itself.
func (r *reconcileSummary) pending() bool {
	if r.report == nil || r.paused || r.needsPerson || r.managed == nil || r.outcome.Push.State == gateway.PushSucceeded {
		return false
	}
	recorded := r.managed.object != nil && r.managed.object.Status.Configuration.Hash == r.configurationHash && len(r.managed.memory.Late.Hashes) == 0
	return isTrue(r.report.Gateway.Conditions, gatewayv1.GatewayConditionAccepted) && !recorded
}

// recordActivity records what was done to the tunnel, and returns it.
func (o *observer) recordActivity(key state.Key, m *managedTunnel) activity {
	if m == nil {
		return activity{}
	}
	done := m.activity
	m.activity = activity{}
	for _, bytes := range done.pushedBytes {
		o.metrics.RecordPush(key.NamespacedName, bytes)
	}
	if done.repaired {
		o.metrics.RecordDriftRepair(key.NamespacedName)
	}
	if done.contested {
		o.metrics.RecordDriftContested(key.NamespacedName)
	}
	for _, failure := range done.failures {
		o.metrics.RecordError(key.NamespacedName, failure.reason)
	}
	return done
}

// gatewayMetrics says how the Gateway stands by what was reported.
func gatewayMetrics(r *reconcileSummary) metrics.Gateway {
	g := metrics.Gateway{
		Programmed: isTrue(r.report.Gateway.Conditions, gatewayv1.GatewayConditionProgrammed), Paused: r.paused,
		Listeners: map[metrics.ListenerState]int{}, ListenerSets: map[metrics.SetState]int{}, Routes: map[metrics.RouteState]int{},
	}
	if r.managed != nil && r.managed.memory.Remote.Configuration.Known {
		n := len(r.managed.memory.Remote.Configuration.Configuration.Ingress)
		g.Rules = &n
	}
	for _, listener := range r.report.Gateway.Listeners {
		g.Listeners[listenerState(listener.Conditions)]++
	}
	for _, set := range r.report.ListenerSets {
		g.ListenerSets[setState(set.Status.Conditions)]++
		for _, listener := range set.Status.Listeners {
			g.Listeners[listenerState(listener.Conditions)]++
		}
	}
	for _, route := range r.report.Routes {
		if len(route.Parents) > 0 {
			g.Routes[routeState(route.Parents)]++
		}
	}
	if ready := r.outcome.Connectors; ready != nil {
		g.Connectors = &metrics.Connectors{
			Ready: ready.Status == metav1.ConditionTrue, Desired: int(ready.Wanted), Available: int(ready.Available),
		}
	}
	return g
}

func isTrue[T ~string](conditions []metav1.Condition, kind T) bool {
	return meta.IsStatusConditionTrue(conditions, string(kind))
}

func listenerState(conditions []metav1.Condition) metrics.ListenerState {
	switch {
	case isTrue(conditions, gatewayv1.ListenerConditionProgrammed):
		return metrics.ListenerProgrammed
	case isTrue(conditions, gatewayv1.ListenerConditionConflicted):
		return metrics.ListenerConflicted
	case !isTrue(conditions, gatewayv1.ListenerConditionAccepted):
		return metrics.ListenerRejected
	case !isTrue(conditions, gatewayv1.ListenerConditionResolvedRefs):
		return metrics.ListenerUnresolved
	default:
		return metrics.ListenerPending
	}
}

func setState(conditions []metav1.Condition) metrics.SetState {
	switch {
	case isTrue(conditions, gatewayv1.ListenerSetConditionProgrammed):
		return metrics.SetProgrammed
	case isTrue(conditions, gatewayv1.ListenerSetConditionAccepted):
		return metrics.SetPending
	default:
		return metrics.SetRejected
	}
}

// routeState is the worst that any of the parents says.
func routeState(parents []gatewayv1.RouteParentStatus) metrics.RouteState {
	unresolved, partial := false, false
	for _, parent := range parents {
		if !isTrue(parent.Conditions, gatewayv1.RouteConditionAccepted) {
			return metrics.RouteRejected
		}
		unresolved = unresolved || !isTrue(parent.Conditions, gatewayv1.RouteConditionResolvedRefs)
		partial = partial || isTrue(parent.Conditions, gatewayv1.RouteConditionPartiallyInvalid)
	}
	switch {
	case unresolved:
		return metrics.RouteUnresolved
	case partial:
		return metrics.RoutePartial
	default:
		return metrics.RouteAccepted
	}
}

// span begins a span of a pass. The returned function ends it, with the error
// that it ended with or nil.
func (o *observer) span(ctx context.Context, name string, key state.Key) (context.Context, func(error, ...attribute.KeyValue)) {
	ctx, span := o.tracer.Start(ctx, name, trace.WithAttributes(
		attribute.String("k8s.namespace.name", key.Namespace), attribute.String(strings.ToLower(key.Kind)+".name", key.Name),
	))
	return ctx, func(err error, attributes ...attribute.KeyValue) {
		span.SetAttributes(attributes...)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
