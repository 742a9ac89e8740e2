package controller

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	goToken "go/token"
	"maps"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// observer is one that nobody looks at.
func (l *life) observer() *observer {
	return newObserver(metrics.New(prometheus.NewRegistry()), noop.NewTracerProvider().Tracer(""), l.now)
}

// observed is a process whose metrics and spans are looked at.
type observed struct {
	*life
	*reconciler
	registry *prometheus.Registry
	spans    *tracetest.InMemoryExporter
}

// observe has a Gateway with one listener, whose connectors somebody else runs.
func observe(t *testing.T) *observed {
	o := &observed{life: newLife(t), registry: prometheus.NewRegistry(), spans: tracetest.NewInMemoryExporter()}
	settings := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "settings"}}
	settings.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
	if err := o.client.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	g := o.loaded().Gateway
	g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
		Group: gatewayv1.Group(v1alpha1.GroupVersion.Group), Kind: "TunnelConfiguration", Name: "settings",
	}}
	g.Spec.Listeners = []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	if err := o.client.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	o.reconciler = o.process()
	o.reconciler.observer = newObserver(metrics.New(o.registry), sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans)).Tracer(""), o.now)
	return o
}

// pass is a whole pass, some time after a change when one is given.
func (o *observed) pass(change ...time.Duration) {
	o.t.Helper()
	for _, ago := range change {
		o.observer().changes.notice(o.key)
		o.clock = o.clock.Add(ago)
	}
	if _, err := o.Reconcile(o.t.Context(), o.key); err != nil {
		o.t.Fatal(err)
	}
}

func (o *observed) observer() *observer { return o.reconciler.observer }

// value returns that of the Gateway's series, with further labels in their
// order; -1 when there is none. Of a histogram it is the sum.
func (o *observed) value(name string, labels ...string) float64 {
	o.t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				if label.GetName() != "gateway" && label.GetName() != "gateway_namespace" {
					values = append(values, label.GetValue())
				}
			}
			if family.GetName() == "tunnel_gateway_"+name && slices.Equal(values, labels) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return -1
}

func (o *observed) want(when string, values map[string]float64) {
	o.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts := strings.Fields(name)
		if got := o.value(parts[0], parts[1:]...); got != values[name] {
			o.t.Errorf("%s: %s is %v, want %v", when, name, got, values[name])
		}
	}
}

func TestMetricsOfALife(t *testing.T) {
	o := observe(t)
	o.pass(2 * time.Second)
	o.want("after the first push", map[string]float64{
		"gateway_programmed": 1, "rules": 1, "pushes_total": 1, "change_to_push_seconds": 2, "drift_repairs_total": 0,
		"listeners programmed": 1, "reconcile_errors_total unavailable": 0,
	})
	if got := o.value("pushed_bytes_total"); got < 10 {
		t.Errorf("%v bytes were pushed", got)
	}

	o.clock = o.clock.Add(time.Hour)
	o.pass(time.Second)
	o.want("after a change with nothing to push", map[string]float64{"pushes_total": 1, "change_to_push_seconds": 2})

	o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
	o.clock = o.clock.Add(time.Hour)
	o.pass()
	o.want("after somebody else's change", map[string]float64{
		"drift_repairs_total": 1, "pushes_total": 2, "drift_fights_total": 0, "change_to_push_seconds": 2,
	})

	for range 2 {
		o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
		o.clock = o.clock.Add(2 * time.Minute)
		o.pass()
	}
	o.want("after the third", map[string]float64{
		"drift_repairs_total": 2, "drift_fights_total": 1, "pushes_total": 3,
		"gateway_programmed": 0, "listeners programmed": 0, "listeners pending": 1, "reconcile_errors_total drift_fight": 1,
	})

	o.remove()
	o.want("when it is gone", map[string]float64{
		"gateway_programmed": -1, "pushes_total": -1, "drift_fights_total": -1, "rules": -1, "listeners programmed": -1,
		"reconcile_errors_total drift_fight": -1, "change_to_push_seconds": 2,
	})
}

// remove deletes the Gateway and lets it go.
func (o *observed) remove() {
	o.t.Helper()
	if err := o.client.Delete(o.t.Context(), o.loaded().Gateway); err != nil {
		o.t.Fatal(err)
	}
	o.clock = o.clock.Add(time.Hour)
	for range 2 { // the second finds nothing
		o.pass()
	}
}

// A repair counts when it is made, however often it was tried.
func TestRepairThatFailsFirst(t *testing.T) {
	o := observe(t)
	o.pass()
	o.cloud.SetDocument(o.tunnelID(), wants("foreign.example.com"))
	o.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: errors.New("reset")})
	o.clock = o.clock.Add(time.Hour)
	o.pass()
	o.want("when it failed", map[string]float64{
		"drift_repairs_total": 0, "pushes_total": 1, "reconcile_errors_total unavailable": 1, "gateway_programmed": 0,
	})
	o.clock = o.clock.Add(time.Minute)
	o.pass()
	o.want("when it was made", map[string]float64{"drift_repairs_total": 1, "pushes_total": 2, "gateway_programmed": 1})
}

// The time of a change counts from the first attempt on.
func TestChangeToPushCountsFailures(t *testing.T) {
	o := observe(t)
	o.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: errors.New("reset")})
	o.pass(time.Second)
	o.want("when it failed", map[string]float64{"change_to_push_seconds": 0})
	o.pass(time.Minute)
	o.want("when it was pushed", map[string]float64{"change_to_push_seconds": 61})
}

// What changes while a Gateway is paused waits for a person and not for us.
func TestChangeToPushLeavesPausesOut(t *testing.T) {
	o := observe(t)
	g := o.loaded().Gateway
	o.pause(g, "true")
	o.pass(time.Second)
	o.pause(o.loaded().Gateway, "false")
	o.clock = o.clock.Add(time.Hour)
	o.pass(time.Second)
	o.want("after the pause", map[string]float64{"change_to_push_seconds": 1, "pushes_total": 1})
}

// pause gives the Gateway the annotation for it.
func (o *observed) pause(g *gatewayv1.Gateway, value string) {
	o.t.Helper()
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, state.PausedAnnotation, value)
	if err := o.client.Update(o.t.Context(), g); err != nil {
		o.t.Fatal(err)
	}
}

// route attaches a route without backends: the document has a rule for it.
func (o *observed) route() {
	o.t.Helper()
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "web"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "shared"}}
	route.Spec.Hostnames = []gatewayv1.Hostname{"a.example.com"}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{}}
	if err := o.client.Create(o.t.Context(), route); err != nil {
		o.t.Fatal(err)
	}
}

// A Gateway that is not ours, and a ListenerSet that does not exist, have no
// series.
func TestOthersHaveNoSeries(t *testing.T) {
	o := observe(t)
	o.key = state.GatewayKey("platform", "other")
	o.pass(time.Second)
	o.key = state.Key{Kind: gateway.KindListenerSet, NamespacedName: o.key.NamespacedName}
	o.pass(time.Second)
	o.want("after passes", map[string]float64{"gateway_programmed": -1, "pushes_total": -1})
}

func TestErrorKinds(t *testing.T) {
	seen := map[string]bool{}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "gateways"}, "shared")
	for kind, all := range map[metrics.ErrorKind][]error{
		metrics.ErrorUnauthorized:    {provider.ErrUnauthorized},
		metrics.ErrorRateLimited:     {&provider.RateLimitedError{}},
		metrics.ErrorUnavailable:     {&provider.UnavailableError{Err: errors.New("reset")}},
		metrics.ErrorInvalid:         {&provider.InvalidError{}},
		metrics.ErrorNotFound:        {provider.ErrNotFound, &missingError{}},
		metrics.ErrorConnected:       {provider.ErrConnected},
		metrics.ErrorLocal:           {&localError{}, provider.ErrLocallyManaged},
		metrics.ErrorCredentials:     {&credentialsError{}},
		metrics.ErrorDriftFight:      {&contestedError{}},
		metrics.ErrorForeignDocument: {&foreignError{}},
		metrics.ErrorTunnelConflict:  {&takenError{}, &strangerError{}, &otherTunnelError{}, &accountError{}},
		metrics.ErrorObjectTaken:     {&secretTakenError{}, &objectTakenError{}},
		metrics.ErrorHeld:            {&heldError{}},
		metrics.ErrorDeletion:        {&policyError{}, &pausedError{}},
		metrics.ErrorKubernetes:      {missing, &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED}},
		metrics.ErrorOther:           {errors.New("anything else")},
	} {
		for _, err := range all {
			if got := errorKind(fmt.Errorf("doing something: %w", err)); got != kind {
				t.Errorf("%T is of the kind %s, want %s", err, got, kind)
			}
			seen[fmt.Sprintf("%T", err)] = true
		}
	}
	for _, name := range errorsForPersons(t) {
		if !seen["*controller."+name] {
			t.Errorf("%s is in no kind here", name)
		}
	}
}

// errorsForPersons returns the names of the types that are a personError.
func errorsForPersons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(goToken.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == "askPerson" {
			names = append(names, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
		}
	}
	if len(names) == 0 {
		t.Fatal("none are found")
	}
	return names
}

func condition[T ~string](kind T, status bool) metav1.Condition {
	c := metav1.Condition{Type: string(kind), Status: metav1.ConditionFalse}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// The states are told from what the statuses say.
func TestStates(t *testing.T) {
	const accepted, programmed, conflicted, resolved, partial = gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerConditionProgrammed,
		gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerConditionResolvedRefs, "PartiallyInvalid"
	type conditions = []metav1.Condition
	listener := func(a, c, r, p bool) conditions {
		return conditions{condition(accepted, a), condition(conflicted, c), condition(resolved, r), condition(programmed, p)}
	}
	for want, given := range map[metrics.ListenerState]conditions{
		metrics.ListenerProgrammed: listener(true, false, true, true),
		metrics.ListenerPending:    listener(true, false, true, false),
		metrics.ListenerConflicted: listener(false, true, true, false),
		metrics.ListenerUnresolved: listener(true, false, false, false),
		metrics.ListenerRejected:   listener(false, false, false, false),
	} {
		if got := listenerState(given); got != want {
			t.Errorf("a listener is %s, want %s", got, want)
		}
	}
	for want, given := range map[metrics.SetState]conditions{
		metrics.SetProgrammed: {condition(accepted, true), condition(programmed, true)},
		metrics.SetPending:    {condition(accepted, true), condition(programmed, false)},
		metrics.SetRejected:   {condition(accepted, false), condition(programmed, false)},
	} {
		if got := setState(given); got != want {
			t.Errorf("a set is %s, want %s", got, want)
		}
	}
	good := gatewayv1.RouteParentStatus{Conditions: conditions{condition(accepted, true), condition(resolved, true)}}
	for want, other := range map[metrics.RouteState]conditions{
		metrics.RouteAccepted:   good.Conditions,
		metrics.RoutePartial:    append(slices.Clone(good.Conditions), condition(gatewayv1.RouteConditionType(partial), true)),
		metrics.RouteUnresolved: {condition(accepted, true), condition(resolved, false)},
		metrics.RouteRejected:   {condition(accepted, false), condition(resolved, false)},
	} {
		if got := routeState([]gatewayv1.RouteParentStatus{good, {Conditions: other}, good}); got != want {
			t.Errorf("a route is %s, want %s", got, want)
		}
	}
}

// Every pass is a span; what it does are its children.
func TestSpans(t *testing.T) {
	o := observe(t)
	o.pass()
	o.wantSpans("load", "build", "push", "report")
	for _, span := range o.spans.GetSpans() {
		attributes := attributesOf(span)
		if attributes["k8s.namespace.name"] != "platform" || attributes["gateway.name"] != "shared" {
			t.Errorf("span %s has %v", span.Name, attributes)
		}
		if span.Name == "push" && (attributes["tunnel.id"] != string(o.tunnelID()) || attributes["tunnel.pushes"] != "1") {
			t.Errorf("the push has %v", attributes)
		}
	}
	if failed := o.failedSpans(); len(failed) > 0 {
		t.Errorf("errors of spans: %v", failed)
	}

	o.spans.Reset()
	o.remove()
	o.wantSpans("load", "build", "let go", "report")
}

// The error is in the span that it happened in.
func TestSpansOfAFailure(t *testing.T) {
	o := observe(t)
	o.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: errors.New("reset")})
	o.pass()
	o.wantSpans("load", "build", "push", "report")
	failed := o.failedSpans()
	if len(failed) != 1 || !strings.Contains(failed["push"], "reset") {
		t.Errorf("errors of spans: %v", failed)
	}
}

// A push that is put off did not fail, and did not succeed either.
func TestSpanOfAPushThatIsPutOff(t *testing.T) {
	o := observe(t)
	o.cloud.Fail(fakeprovider.OpConfigure, limited(time.Minute))
	o.pass()
	for _, span := range o.spans.GetSpans() {
		attributes := attributesOf(span)
		if span.Name == "push" && (attributes["push.state"] != "outstanding" || attributes["push.again"] != "1m0s" ||
			!strings.Contains(attributes["push.message"], "admits no more requests")) {
			t.Errorf("the push has %v", attributes)
		}
	}
	o.wantSpans("load", "build", "push", "report")
	if failed := o.failedSpans(); len(failed) > 0 {
		t.Errorf("errors of spans: %v", failed)
	}
}

func attributesOf(span tracetest.SpanStub) map[string]string {
	attributes := map[string]string{}
	for _, a := range span.Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	return attributes
}

// failedSpans are the errors by the name of the span.
func (o *observed) failedSpans() map[string]string {
	failed := map[string]string{}
	for _, span := range o.spans.GetSpans() {
		if span.Status.Code == codes.Error {
			failed[span.Name] = span.Status.Description
		}
	}
	return failed
}

// wantSpans looks at the first pass since the last reset: the spans after the
// first are its children.
func (o *observed) wantSpans(children ...string) {
	o.t.Helper()
	var root tracetest.SpanStub
	for _, span := range o.spans.GetSpans() {
		if span.Name == "reconcile" {
			root = span
			break
		}
	}
	var got []string
	for _, span := range o.spans.GetSpans() {
		if span.Parent.SpanID() == root.SpanContext.SpanID() && span.Parent.TraceID() == root.SpanContext.TraceID() {
			got = append(got, span.Name)
		}
	}
	if diff := cmp.Diff(children, got); diff != "" {
		o.t.Errorf("the children of the pass (-want +got):\n%s", diff)
	}
}
