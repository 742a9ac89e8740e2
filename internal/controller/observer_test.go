package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// recordChange simulates a watch event for an object that affects the Gateway.
func (h *harness) recordChange() { h.observer.pending.add(h.key) }

func TestMetricsOverTheLifetimeOfAGateway(t *testing.T) {
	h := newHarness(t)
	h.recordChange()
	h.advance(2 * time.Second)
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{
		"gateway_programmed": 1, "rules": 2, "pushes_total": 1, "change_to_push_seconds": 2, "drift_repairs_total": 0,
		"listeners programmed": 1, "routes accepted": 1, "reconcile_errors_total CloudflareUnavailable": 0,
		"connectors_ready": -1, "gateway_missing_timestamp_seconds": -1,
	})
	if got := h.metric("pushed_bytes_total"); got < 10 {
		t.Errorf("%v bytes were written, want at least 10", got)
	}
	h.advance(time.Minute)
	h.recordChange()
	h.advance(time.Second)
	h.reconcileOnce() // the configuration does not change
	h.wantMetrics(map[string]float64{"pushes_total": 1, "change_to_push_seconds": 2, "oldest_change_timestamp_seconds": -1})

	h.delete(h.gateway())
	h.recordChange()
	missing := float64(h.wallTime.Unix())
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"gateway_programmed": -1, "listeners programmed": -1, "pushes_total": 1, "gateway_missing_timestamp_seconds": missing})
	h.restart()
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"gateway_missing_timestamp_seconds": missing})
	h.reconcileFor(2 * time.Minute)
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"pushes_total": -1, "gateway_missing_timestamp_seconds": -1, "oldest_change_timestamp_seconds": -1})
}

func TestConnectorMetricsFollowTheDeployment(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	h.wantMetrics(map[string]float64{"connectors_ready": 0, "connectors_wanted": 2, "connectors_available": 0})
	h.rollOut()
	h.reconcileFor(time.Second)
	h.wantMetrics(map[string]float64{"connectors_ready": 1, "connectors_wanted": 2, "connectors_available": 2})
}

func TestDataPlaneChangeMetricFollowsTheTunnel(t *testing.T) {
	// The Gateway is paused, so that nothing but this test changes the record.
	const name = "tunnel_data_plane_change_start_time_seconds"
	h := newServedHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{name: -1})
	started := metav1.NewTime(h.wallTime.Add(-time.Hour))
	record := func(change *v1alpha1.DataPlaneChange) {
		t.Helper()
		object := h.tunnelObject()
		object.Status.DataPlaneChange = change
		if err := h.kube.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		h.reconcileFor(time.Minute)
	}
	record(&v1alpha1.DataPlaneChange{To: v1alpha1.DataPlaneEnvoy, Phase: v1alpha1.DataPlaneAddingEnvoy, StartedAt: started})
	h.wantMetrics(map[string]float64{name: float64(started.Unix())})
	h.restart()
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{name: float64(started.Unix())})
	record(nil)
	h.wantMetrics(map[string]float64{name: -1})
}

func TestChangeToPushIncludesFailedAttempts(t *testing.T) {
	// The time from a change to its push includes failed attempts.
	h := newHarness(t)
	h.cloud.Fail(fakeprovider.OpConfigure, errReset)
	h.recordChange()
	recorded := float64(h.wallTime.Unix())
	h.advance(time.Second)
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"change_to_push_seconds": 0, "oldest_change_timestamp_seconds": recorded})
	h.recordChange()
	h.advance(time.Minute)
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"change_to_push_seconds": 61, "oldest_change_timestamp_seconds": -1})
}

func TestChangeThatRequiresActionIsNotPending(t *testing.T) {
	// A change that waits for user action does not count as pending.
	h := newHarness(t)
	id := h.createUnmanagedTunnel("by hand")
	h.cloud.SetConfiguration(id, unmanagedConfiguration("old.example.com"))
	h.adopt(string(id), false)
	h.recordChange()
	h.reconcileFor(time.Hour)
	h.wantMetrics(map[string]float64{"oldest_change_timestamp_seconds": -1, "gateway_programmed": 0})
}

func TestRepairIsNotAChange(t *testing.T) {
	// Repairing an external change does not count as pushing a change from the cluster.
	h := newServedHarness(t)
	h.cloud.SetConfiguration(h.tunnelID(), unmanagedConfiguration("other.example.com"))
	h.advance(driftInterval)
	h.recordChange()
	h.advance(time.Second)
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"drift_repairs_total": 1, "change_to_push_seconds": 0})
}

func TestStartIsNotAChange(t *testing.T) {
	// The initial watch events after a start do not count as pending changes.
	h := newServedHarness(t)
	h.restart()
	h.cloud.Fail(fakeprovider.OpConfiguration, errReset)
	h.recordChange()
	h.reconcileOnce()
	h.wantMetrics(map[string]float64{"oldest_change_timestamp_seconds": -1})
}

func TestOldestChangeIncludesTheRunningReconcile(t *testing.T) {
	// A change is pending until the reconcile that processes it has ended.
	h := newServedHarness(t)
	checkOldest := func(description string, want float64) {
		t.Helper()
		if got := h.metric("oldest_change_timestamp_seconds"); got != want {
			t.Errorf("%s: the oldest change is %v, want %v", description, got, want)
		}
	}
	first := float64(h.wallTime.Unix())
	h.recordChange()
	checkOldest("before a reconcile", first)
	h.observer.pending.start(h.key)
	checkOldest("during a reconcile", first)
	h.advance(time.Minute)
	h.recordChange()
	checkOldest("with another change", first)
	h.observer.pending.finish(h.key, false)
	checkOldest("after the reconcile", float64(h.wallTime.Unix()))
	h.observer.pending.start(h.key)
	h.observer.pending.finish(h.key, false)
	checkOldest("after the next one", -1)
}

func TestUnmanagedKeysHaveNoSeries(t *testing.T) {
	// An unmanaged Gateway and a missing ListenerSet have no series, and the controller
	// keeps no state for them.
	h := newHarness(t)
	for _, key := range []state.Key{
		state.GatewayKey("infra", "other"), {Kind: gateway.KindListenerSet, NamespacedName: h.key.NamespacedName},
	} {
		h.key = key
		h.recordChange()
		h.reconcileOnce()
	}
	h.wantMetrics(map[string]float64{"gateway_programmed": -1, "pushes_total": -1, "oldest_change_timestamp_seconds": -1})
	if got := len(h.memories.byKey); got > 0 {
		t.Errorf("the controller keeps state for %d keys, want 0", got)
	}
}

func TestUnknownStateClearsTheGauges(t *testing.T) {
	// If it is unknown whether a Gateway exists, it has counters but no gauges.
	h := newServedHarness(t)
	h.delete(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}})
	h.reconcileFor(time.Minute)
	h.wantMetrics(map[string]float64{"gateway_programmed": -1, "rules": -1, "listeners programmed": -1, "pushes_total": 1})
}

// newCondition returns a condition that is True or False.
func newCondition[T ~string](kind T, status bool) metav1.Condition {
	c := metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func TestStatesAreDerivedFromConditions(t *testing.T) {
	// The states are derived from the conditions.
	const accepted, programmed, conflicted, resolved, partial = gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerConditionProgrammed,
		gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerConditionResolvedRefs, gatewayv1.RouteConditionPartiallyInvalid
	type conditions = []metav1.Condition
	listener := func(a, c, r, p bool) conditions {
		return conditions{newCondition(accepted, a), newCondition(conflicted, c), newCondition(resolved, r), newCondition(programmed, p)}
	}
	for want, conditions := range map[metrics.ListenerState]conditions{
		metrics.ListenerProgrammed: listener(true, false, true, true),
		metrics.ListenerPending:    listener(true, false, true, false),
		metrics.ListenerConflicted: listener(false, true, true, false),
		metrics.ListenerUnresolved: listener(true, false, false, false),
		metrics.ListenerRejected:   listener(false, false, false, false),
	} {
		if got := listenerState(conditions); got != want {
			t.Errorf("a listener is %s, want %s", got, want)
		}
	}
	for want, conditions := range map[metrics.ListenerSetState]conditions{
		metrics.ListenerSetProgrammed: {newCondition(accepted, true), newCondition(programmed, true)},
		metrics.ListenerSetPending:    {newCondition(accepted, true), newCondition(programmed, false)},
		metrics.ListenerSetRejected:   {newCondition(accepted, false), newCondition(programmed, false)},
	} {
		if got := listenerSetState(conditions); got != want {
			t.Errorf("a ListenerSet is %s, want %s", got, want)
		}
	}
	good := gatewayv1.RouteParentStatus{Conditions: conditions{newCondition(accepted, true), newCondition(resolved, true)}}
	for want, other := range map[metrics.RouteState]conditions{
		metrics.RouteAccepted:         good.Conditions,
		metrics.RoutePartiallyInvalid: append(slices.Clone(good.Conditions), newCondition(partial, true)),
		metrics.RouteUnresolved:       {newCondition(accepted, true), newCondition(resolved, false)},
		metrics.RouteRejected:         {newCondition(accepted, false), newCondition(resolved, false)},
	} {
		if got := routeState([]gatewayv1.RouteParentStatus{good, {Conditions: other}, good}); got != want {
			t.Errorf("a route is %s, want %s", got, want)
		}
	}
}

// newTracedHarness returns a harness and an exporter for its spans.
func newTracedHarness(t *testing.T) (*harness, *tracetest.InMemoryExporter) {
	t.Helper()
	h, spans := newHarness(t), tracetest.NewInMemoryExporter()
	h.observer.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("")
	return h, spans
}

func attributesOf(span tracetest.SpanStub) map[string]string {
	attributes := map[string]string{}
	for _, a := range span.Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	return attributes
}

// wantSpans compares the names of the child spans in the first reconcile, and returns
// their attributes.
func wantSpans(t *testing.T, spans *tracetest.InMemoryExporter, names ...string) map[string]map[string]string {
	t.Helper()
	all, found := spans.GetSpans(), map[string]map[string]string{}
	i := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == "reconcile" })
	var got []string
	for _, span := range all {
		if i >= 0 && span.Parent.SpanID() == all[i].SpanContext.SpanID() {
			got = append(got, span.Name)
			found[span.Name] = attributesOf(span)
		}
		if attributes := attributesOf(span); attributes["k8s.namespace.name"] != "infra" || attributes["gateway.name"] != "shared" {
			t.Errorf("span %s has attributes %v, want those of Gateway infra/shared", span.Name, attributes)
		}
		expected := strings.Contains(span.Status.Description, "refused") || strings.Contains(span.Status.Description, errReset.Error())
		if span.Status.Code == codes.Error && !expected {
			t.Errorf("span %s failed: %s", span.Name, span.Status.Description)
		}
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("child spans differ (-want +got):\n%s", diff)
	}
	return found
}

func TestReconcileHasASpanForEachPhase(t *testing.T) {
	// Every reconcile has a span with a child span for each phase.
	h, spans := newTracedHarness(t)
	h.reconcileOnce()
	found := wantSpans(t, spans, "load", "build", "manage", "report")
	if found["manage"]["tunnel.id"] != string(h.tunnelID()) || found["build"]["tunnel.rules"] != "2" {
		t.Errorf("unexpected attributes: %v", found)
	}
	spans.Reset()
	h.advance(time.Second)
	h.cloud.Fail(fakeprovider.OpConfigure, errReset)
	h.setHostname("b.example.com")
	h.reconcileOnce()
	found = wantSpans(t, spans, "load", "build", "manage", "report")
	if !strings.Contains(found["manage"]["tunnel.message"], "Cloudflare API") || found["manage"]["tunnel.again"] != "1s" {
		t.Errorf("unexpected attributes: %v", found)
	}
	spans.Reset()
	h.delete(h.gateway())
	h.advance(time.Second)
	h.reconcileOnce()
	wantSpans(t, spans, "load", "manage")
}

func TestFailedPhaseHasAnErrorSpan(t *testing.T) {
	// A status that cannot be written appears in its phase's span, but does not fail
	// the reconcile.
	h, spans := newTracedHarness(t)
	h.refuseStatus("Gateway")
	h.reconcileOnce()
	wantSpans(t, spans, "load", "build", "manage", "report")
	for _, span := range spans.GetSpans() {
		if failed := span.Status.Code == codes.Error; failed != (span.Name == "report") {
			t.Errorf("span %s failed: %t", span.Name, failed)
		}
	}
}
