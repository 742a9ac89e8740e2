package controller

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// pass is what one pass over a key came to: for the metrics, which are recorded
// from it when the pass has ended, and for the trace.
type pass struct {
	// tunnel of the Gateway; nil when the pass did not come to it.
	tunnel *tunnel
	// report that was written last, and the outcome that it tells; nil when the
	// pass did not come to it.
	report  *gateway.Report
	outcome gateway.Outcome
	// paused: what changed is not to be pushed.
	paused bool
	// document is the hash of the wanted one; empty when there is none.
	document string
	// gone: the key's Gateway is not ours, or does not exist.
	gone bool
	// unknown: nothing can be said of how the Gateway stands.
	unknown bool
}

// happened is what was done to a tunnel since it was last recorded.
type happened struct {
	pushed   []int // the documents that were written, in bytes
	repaired bool  // somebody else's change was put right
	fought   bool  // there were too many of them, and writing stopped
	failures []error
}

// observer records passes.
type observer struct {
	metrics *metrics.Metrics
	changes *changes
	tracer  trace.Tracer
	now     func() time.Time
}

func newObserver(m *metrics.Metrics, tracer trace.Tracer, now func() time.Time) *observer {
	return &observer{metrics: m, changes: newChanges(now, m.Waits), tracer: tracer, now: now}
}

// passed records a pass over a Gateway; since is the first change that it looked
// at, or zero.
func (o *observer) passed(key state.Key, p *pass, since time.Time, err error) {
	if key.Kind != gateway.KindGateway {
		o.changes.ended(key, false)
		return
	}
	h := o.recordHappened(key, p.tunnel)
	if err != nil {
		o.metrics.Failed(key.NamespacedName, metrics.ErrorKubernetes)
	}
	// A repair is somebody else's doing: whatever changed beside it is not what it
	// carried out.
	if len(h.pushed) > 0 && !h.repaired && !since.IsZero() {
		o.metrics.CarriedOut(o.now().Sub(since))
	}
	o.changes.ended(key, len(h.pushed) == 0 && (err != nil || p.owes()))
	switch {
	case p.gone && err == nil:
		o.metrics.Forget(key.NamespacedName)
	case p.unknown:
		o.metrics.Unknown(key.NamespacedName)
	case p.report != nil:
		o.metrics.Stands(key.NamespacedName, stands(p))
	}
}

// owes reports whether what changed is still to be pushed, and is not waiting for
// a person. Much of what is noticed changes no document: the first look at all
// objects after a start, or the statuses that we write ourselves.
func (p *pass) owes() bool {
	return p.report != nil && !p.paused && p.outcome.Push.State != gateway.PushSucceeded &&
		holds(p.report.Gateway.Conditions, gatewayv1.GatewayConditionAccepted) &&
		!p.tunnel.fault.needsPerson && !p.tunnel.hasRecorded(p.document)
}

// recordHappened records what was done to the tunnel, and returns it.
func (o *observer) recordHappened(key state.Key, t *tunnel) happened {
	if t == nil {
		return happened{}
	}
	h := t.happened
	t.happened = happened{}
	for _, bytes := range h.pushed {
		o.metrics.Pushed(key.NamespacedName, bytes)
	}
	if h.repaired {
		o.metrics.Repaired(key.NamespacedName)
	}
	if h.fought {
		o.metrics.Fought(key.NamespacedName)
	}
	for _, failure := range h.failures {
		o.metrics.Failed(key.NamespacedName, errorKind(failure))
	}
	return h
}

// stands says how the Gateway stands by what was reported.
func stands(p *pass) metrics.Gateway {
	g := metrics.Gateway{
		Programmed: holds(p.report.Gateway.Conditions, gatewayv1.GatewayConditionProgrammed), Paused: p.paused,
		Listeners: map[metrics.ListenerState]int{}, ListenerSets: map[metrics.SetState]int{}, Routes: map[metrics.RouteState]int{},
	}
	if p.tunnel != nil && p.tunnel.remote.known {
		n := len(p.tunnel.remote.document.Ingress)
		g.Rules = &n
	}
	for _, listener := range p.report.Gateway.Listeners {
		g.Listeners[listenerState(listener.Conditions)]++
	}
	for _, set := range p.report.ListenerSets {
		g.ListenerSets[setState(set.Status.Conditions)]++
		for _, listener := range set.Status.Listeners {
			g.Listeners[listenerState(listener.Conditions)]++
		}
	}
	for _, route := range p.report.Routes {
		if len(route.Parents) > 0 {
			g.Routes[routeState(route.Parents)]++
		}
	}
	if ready := p.outcome.Connectors; ready != nil {
		g.Connectors = &metrics.Connectors{
			Ready: ready.Status == metav1.ConditionTrue, Wanted: int(ready.Wanted), Available: int(ready.Available),
		}
	}
	return g
}

func holds[T ~string](conditions []metav1.Condition, kind T) bool {
	return meta.IsStatusConditionTrue(conditions, string(kind))
}

func listenerState(conditions []metav1.Condition) metrics.ListenerState {
	switch {
	case holds(conditions, gatewayv1.ListenerConditionProgrammed):
		return metrics.ListenerProgrammed
	case holds(conditions, gatewayv1.ListenerConditionConflicted):
		return metrics.ListenerConflicted
	case !holds(conditions, gatewayv1.ListenerConditionAccepted):
		return metrics.ListenerRejected
	case !holds(conditions, gatewayv1.ListenerConditionResolvedRefs):
		return metrics.ListenerUnresolved
	default:
		return metrics.ListenerPending
	}
}

func setState(conditions []metav1.Condition) metrics.SetState {
	switch {
	case holds(conditions, gatewayv1.ListenerSetConditionProgrammed):
		return metrics.SetProgrammed
	case holds(conditions, gatewayv1.ListenerSetConditionAccepted):
		return metrics.SetPending
	default:
		return metrics.SetRejected
	}
}

// routeState is the worst that any of the parents says.
func routeState(parents []gatewayv1.RouteParentStatus) metrics.RouteState {
	unresolved, partial := false, false
	for _, parent := range parents {
		if !holds(parent.Conditions, gatewayv1.RouteConditionAccepted) {
			return metrics.RouteRejected
		}
		unresolved = unresolved || !holds(parent.Conditions, gatewayv1.RouteConditionResolvedRefs)
		partial = partial || holds(parent.Conditions, gatewayv1.RouteConditionPartiallyInvalid)
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

// pushError is what a push failed at, for its span: the errors themselves say
// more than the message that the statuses have.
func pushError(push gateway.Push, failures []error) error {
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if push.State == gateway.PushFailed {
		return errors.New(push.Message)
	}
	return nil
}

// pushed says how far a push came, which need not be an error, and when it goes on.
func pushed(push gateway.Push, again time.Duration) []attribute.KeyValue {
	state := map[gateway.PushState]string{
		gateway.PushOutstanding: "outstanding", gateway.PushFailed: "failed", gateway.PushSucceeded: "succeeded",
	}[push.State]
	return []attribute.KeyValue{
		attribute.String("push.state", state), attribute.String("push.message", push.Message), attribute.String("push.again", again.String()),
	}
}
