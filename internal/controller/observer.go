package controller

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// reconcileSummary is what the metrics need to know about one reconcile.
type reconcileSummary struct {
	// since is when the oldest change arrived that the reconcile processes, or zero.
	since time.Time
	// recorded means that the reconcile's metrics are recorded.
	recorded bool
	// managed is what the process remembers about the Gateway's Tunnel; nil if the
	// reconcile did not manage a tunnel.
	managed *tunnelMemory
	// report contains the statuses that the reconcile reports; nil if it reports none.
	report *gateway.Report
	// routes are the states of the routes in the last report, and then in this one; nil without a
	// report.
	routes *routeStates
	// outcome is the outcome that the report contains.
	outcome gateway.Outcome
	// usage describes how close the Gateway is to the limits in its GatewayClass; nil
	// if unknown.
	usage *gateway.Usage
	// uncounted describes what the metrics by route do not count separately; nil without
	// such metrics.
	uncounted *gateway.Uncounted
	// paused means that the Gateway is paused.
	paused bool
	// requiresAction means that the controller cannot push changes until a user fixes a
	// problem.
	requiresAction bool
	// awaitsEnvoys means that the reconcile continues when Envoys have acknowledged
	// their routes.
	awaitsEnvoys bool
	// configurationHash is the desired configuration's hash, or "".
	configurationHash string
	// unmanaged means that the key has neither a managed Gateway nor a Tunnel.
	unmanaged bool
	// stateUnknown means that it is unknown whether the Gateway exists, or that it is
	// no longer managed but still has a Tunnel.
	stateUnknown bool
}

// observer records metrics and traces for reconciles.
type observer struct {
	metrics *metrics.Metrics
	pending *pendingChanges
	tracer  trace.Tracer
	now     func() time.Time
}

func newObserver(m *metrics.Metrics, tracer trace.Tracer, now func() time.Time, remembered *memories) *observer {
	return &observer{metrics: m, pending: &pendingChanges{now: now, report: m.SetOldestChange, memories: remembered}, tracer: tracer, now: now}
}

// record records a reconcile's metrics, unless they are recorded already.
func (o *observer) record(key state.Key, summary *reconcileSummary, err error) {
	if summary.recorded {
		return
	}
	summary.recorded = true
	if key.Kind != gateway.KindGateway {
		o.pending.finish(key, false)
		return
	}
	activity := o.recordActivity(key, summary.managed)
	switch {
	case errors.Is(err, errPanic):
		o.metrics.RecordError(key.NamespacedName, conditions.ReasonFailed)
	case err != nil:
		o.metrics.RecordError(key.NamespacedName, conditions.ReasonKubernetesUnavailable)
	}
	// Repairing an external change does not push a change from the cluster.
	if len(activity.pushedBytes) > 0 && !activity.repaired && !summary.since.IsZero() {
		o.metrics.ObserveChangeToPush(o.now().Sub(summary.since))
	}
	o.pending.finish(key, len(activity.pushedBytes) == 0 && (err != nil || summary.pending()))
	o.recordState(key, summary, err)
}

// recordState records the Gateway's state after the reconcile.
func (o *observer) recordState(key state.Key, summary *reconcileSummary, err error) {
	if summary.managed != nil {
		o.metrics.SetGatewayMissing(key.NamespacedName, summary.missingSince())
	}
	switch {
	case summary.unmanaged && err == nil:
		o.metrics.DeleteGateway(key.NamespacedName)
	case summary.stateUnknown:
		o.metrics.ClearGateway(key.NamespacedName)
	case summary.report != nil:
		o.metrics.SetGateway(key.NamespacedName, gatewayMetrics(summary))
	}
}

// missingSince returns since when the Tunnel's Gateway has been gone, or zero.
func (s *reconcileSummary) missingSince() time.Time {
	if s.managed.object == nil {
		return time.Time{}
	}
	status := s.managed.object.Status
	if status.MissingSince == nil || status.Phase == v1alpha1.TunnelRetained {
		return time.Time{}
	}
	return status.MissingSince.Time
}

// dataPlaneChangeStart returns when the data plane change started that the Tunnel
// records, or zero.
func (s *reconcileSummary) dataPlaneChangeStart() time.Time {
	if s.managed == nil || s.managed.object == nil || s.managed.object.Status.DataPlaneChange == nil {
		return time.Time{}
	}
	return s.managed.object.Status.DataPlaneChange.StartedAt.Time
}

// pausedSince returns when the pause began that the Tunnel records, or the zero time.
func (s *reconcileSummary) pausedSince() time.Time {
	if s.managed == nil || s.managed.object == nil || s.managed.object.Status.PausedSince == nil {
		return time.Time{}
	}
	return s.managed.object.Status.PausedSince.Time
}

// pending reports whether a change must still be pushed and does not wait for user
// action. Many watch events do not change the configuration, such as the initial list
// after a start or the statuses that the controller writes.
func (s *reconcileSummary) pending() bool {
	if s.awaitsEnvoys {
		return true
	}
	if s.report == nil || s.paused || s.requiresAction || s.managed == nil || s.outcome.Push.State == gateway.PushSucceeded {
		return false
	}
	recorded := s.managed.object != nil && s.managed.object.Status.Configuration.Hash == s.configurationHash && len(s.managed.memory.LateWrites.Hashes) == 0
	return conditions.TypeAccepted.IsTrue(s.report.Gateway.Conditions) && !recorded
}

// recordActivity records the changes to the tunnel in the metrics, and returns them.
func (o *observer) recordActivity(key state.Key, m *tunnelMemory) activity {
	if m == nil {
		return activity{}
	}
	recorded := m.activity
	m.activity = activity{}
	for _, bytes := range recorded.pushedBytes {
		o.metrics.RecordPush(key.NamespacedName, bytes)
	}
	if recorded.repaired {
		o.metrics.RecordDriftRepair(key.NamespacedName)
	}
	if recorded.contested {
		o.metrics.RecordDriftContested(key.NamespacedName)
	}
	for _, namespace := range recorded.changedNamespaces {
		o.metrics.RecordConfigurationChange(key.NamespacedName, namespace)
	}
	for _, failure := range recorded.failures {
		o.metrics.RecordError(key.NamespacedName, failure.reason)
	}
	return recorded
}

// gatewayMetrics derives the Gateway's metrics from the reported statuses.
func gatewayMetrics(s *reconcileSummary) metrics.Gateway {
	g := metrics.Gateway{
		Programmed: conditions.TypeProgrammed.IsTrue(s.report.Gateway.Conditions), Paused: s.paused,
		PausedSince: s.pausedSince(), Throttled: s.outcome.Push.State == gateway.PushDelayed, DataPlaneChangeStart: s.dataPlaneChangeStart(),
		Listeners: map[metrics.ListenerState]int{}, ListenerSets: map[metrics.ListenerSetState]int{}, Routes: s.routes.update(s.report.Routes),
	}
	if s.managed != nil && s.managed.memory.Remote.Configuration.Known {
		n := len(s.managed.memory.Remote.Configuration.Configuration.Ingress)
		g.Rules = &n
	}
	for _, listener := range s.report.Gateway.Listeners {
		g.Listeners[listenerState(listener.Conditions)]++
	}
	for _, set := range s.report.ListenerSets {
		g.ListenerSets[listenerSetState(set.Status.Conditions)]++
		for _, listener := range set.Status.Listeners {
			g.Listeners[listenerState(listener.Conditions)]++
		}
	}
	if s.usage != nil {
		g.Limits = map[limits.Name]metrics.LimitUsage{}
		for _, limit := range s.usage.ByLimit() {
			g.Limits[limit.Name] = metrics.LimitUsage{Used: limit.Used, Limit: limit.Limit}
		}
		routes, listeners := s.usage.Refused()
		g.AboveLimit = map[metrics.LimitedKind]int{metrics.LimitedRoute: routes, metrics.LimitedListener: listeners}
	}
	g.UncountedPairs = s.uncounted.Amount()
	if ready := s.outcome.Connectors; ready != nil {
		g.Connectors = &metrics.Connectors{
			Ready: ready.Status == metav1.ConditionTrue, Desired: int(ready.Wanted), Available: int(ready.Available),
		}
	}
	if e := s.outcome.Envoys; e != nil {
		g.DataPlane = &metrics.DataPlane{
			Ready: conditions.TypeDataPlaneReady.IsTrue(s.report.Gateway.Conditions), Rejected: e.Rejected != "", LimitExceeded: e.Excess != "",
		}
	}
	return g
}

func listenerState(list []metav1.Condition) metrics.ListenerState {
	switch {
	case conditions.TypeProgrammed.IsTrue(list):
		return metrics.ListenerProgrammed
	case conditions.TypeConflicted.IsTrue(list):
		return metrics.ListenerConflicted
	case !conditions.TypeAccepted.IsTrue(list):
		return metrics.ListenerRejected
	case !conditions.TypeResolvedRefs.IsTrue(list):
		return metrics.ListenerUnresolved
	default:
		return metrics.ListenerPending
	}
}

func listenerSetState(list []metav1.Condition) metrics.ListenerSetState {
	switch {
	case conditions.TypeProgrammed.IsTrue(list):
		return metrics.ListenerSetProgrammed
	case conditions.TypeAccepted.IsTrue(list):
		return metrics.ListenerSetPending
	default:
		return metrics.ListenerSetRejected
	}
}

// span starts a span in a reconcile. The returned function ends the span with an error
// or nil.
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
