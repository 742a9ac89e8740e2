package xds_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// traced returns a publication with settings for traces.
func traced(sequence int64, b routing.Backend, settings *v1alpha1.Tracing) xds.Publication {
	table := tableFor(b)
	table.Telemetry.Tracing = settings
	return publicationOf(sequence, table)
}

// flushing returns a bootstrap with which Envoy sends each span at once.
func flushing() *bootstrapv3.Bootstrap {
	b := envoy.Bootstrap("127.0.0.1")
	b.LayeredRuntime.Layers = append(b.LayeredRuntime.Layers, &bootstrapv3.RuntimeLayer{
		Name: "test", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: &structpb.Struct{Fields: map[string]*structpb.Value{
			"tracing.opentelemetry.min_flush_spans": structpb.NewNumberValue(1),
		}}},
	})
	return b
}

const (
	visitorTrace = "0af7651916cd43dd8448eb211c80319c"
	visitorSpan  = "b7ad6b7169203331"
	sampledTrace = "00-" + visitorTrace + "-" + visitorSpan + "-01"
)

// traceContexts are headers that a visitor can send, valid or not.
var traceContexts = map[string][]string{
	"none":      nil,
	"sampled":   {"Traceparent: " + sampledTrace, "tracestate: a=1,b=2", "Baggage: user=7;ttl=3"},
	"unsampled": {"traceparent: 00-" + visitorTrace + "-" + visitorSpan + "-00"},
	"malformed": {"traceparent: 00-XYZ", "tracestate: ,,=", "baggage: ???"},
	"zeros":     {"traceparent: 00-00000000000000000000000000000000-0000000000000000-01"},
	"version":   {"traceparent: ff-" + visitorTrace + "-" + visitorSpan + "-01"},
	"duplicate": {"traceparent: " + sampledTrace, "traceparent: 00-11111111111111111111111111111111-2222222222222222-01", "tracestate: a=1", "tracestate: b=2"},
	"huge":      {"traceparent: " + sampledTrace + strings.Repeat("0", 20_000), "tracestate: a=" + strings.Repeat("x", 40_000), "baggage: b=" + strings.Repeat("y", 20_000)},
}

// Without settings for traces, the backend gets the headers of a trace byte for byte.
func TestTraceContextPassesUnchanged(t *testing.T) {
	s, b := newSidecar(t), newRawBackend(t)
	s.publish(t, traced(1, b.Backend, nil))
	s.awaitAnswer(t, "200 blue")
	for name, lines := range traceContexts {
		s.send(t, "/app", lines...)
		if got := b.traceLines(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(lines))) {
			t.Errorf("%s: the backend got %q, want %q", name, got, lines)
		}
	}
}

// tracedBed is an Envoy that sends its spans to a collector.
type tracedBed struct {
	*sidecar
	*collector
	backend  *rawBackend
	sequence int64
}

func newTracedBed(t *testing.T) *tracedBed {
	t.Helper()
	b := &tracedBed{collector: newCollector(t), sidecar: newSidecarWith(t, flushing()), backend: newRawBackend(t)}
	return b
}

// settings returns settings for the collector.
func (b *tracedBed) settings(percent int32, parent v1alpha1.TraceParent) *v1alpha1.Tracing {
	return &v1alpha1.Tracing{Endpoint: "http://" + b.collector.address, SamplingPercent: &percent, Parent: &parent}
}

// apply publishes settings, and waits until Envoy has them.
func (b *tracedBed) apply(t *testing.T, settings *v1alpha1.Tracing) {
	t.Helper()
	b.sequence++
	b.publish(t, traced(b.sequence, b.backend.Backend, settings))
	b.awaitAcknowledged(t, b.sequence)
	await(t, "port for requests", func() bool { return listens(b.open) })
}

// await waits for a number of spans, and returns them. There are no more.
func (b *tracedBed) await(t *testing.T, count int) []*tracev1.Span {
	t.Helper()
	await(t, fmt.Sprintf("%d spans", count), func() bool { return len(b.spans()) >= count })
	b.wantSent(t, count)
	return slices.SortedFunc(slices.Values(b.spans()), func(a, b *tracev1.Span) int { // each of Envoy's threads sends its own
		return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano)
	})
}

// wantSent checks how many spans Envoy has given to its client for the collector.
func (b *tracedBed) wantSent(t *testing.T, want int) {
	t.Helper()
	if got := b.metric(t, "envoy_tracing_opentelemetry_spans_sent"); got != want || len(b.spans()) != want {
		t.Errorf("Envoy has sent %d spans and %d have arrived, want %d", got, len(b.spans()), want)
	}
}

// metric returns the value of one of Envoy's metrics, which is 0 if it is absent.
func (s *sidecar) metric(t *testing.T, name string) int {
	t.Helper()
	return int(s.series(t, name)["{}"])
}

// For all headers of a visitor, Envoy begins a trace, decides itself whether it is sampled,
// and replaces the headers that the backend gets.
func TestIgnoredParentHasNoEffect(t *testing.T) {
	b := newTracedBed(t)
	names := slices.Sorted(maps.Keys(traceContexts))
	// None of these requests has a span, which the number of spans shows afterwards.
	b.apply(t, b.settings(0, v1alpha1.TraceParentIgnored))
	for _, name := range names {
		b.wantOwnTrace(t, name, "00")
	}
	b.apply(t, b.settings(100, v1alpha1.TraceParentIgnored))
	for i, name := range names {
		trace, id := b.wantOwnTrace(t, name, "01")
		span := b.await(t, i+1)[i]
		if hex.EncodeToString(span.TraceId) != trace || hex.EncodeToString(span.SpanId) != id || len(span.ParentSpanId) != 0 || span.TraceState != "" {
			t.Errorf("%s: the span is %v, want the trace %s, the ID %s and no parent", name, span, trace, id)
		}
	}
}

// wantOwnTrace sends the headers, and checks that the backend gets Envoy's trace instead.
func (b *tracedBed) wantOwnTrace(t *testing.T, name, wantFlags string) (trace, span string) {
	t.Helper()
	b.send(t, "/app", traceContexts[name]...)
	trace, span, flags := b.backend.traceparent(t)
	if strings.Contains(strings.Join(traceContexts[name], "\n"), trace) || flags != wantFlags {
		t.Errorf("%s: the backend got the trace %s with the flags %s, want another one with %s", name, trace, flags, wantFlags)
	}
	var others []string
	for _, line := range b.backend.traceLines() {
		if field, value, _ := strings.Cut(line, ": "); !strings.EqualFold(field, "traceparent") && (field != "tracestate" || value != "") {
			others = append(others, line)
		}
	}
	baggage := slices.DeleteFunc(slices.Clone(traceContexts[name]), func(line string) bool { return !strings.HasPrefix(strings.ToLower(line), "baggage") })
	if !slices.Equal(others, baggage) {
		t.Errorf("%s: the backend also got %q, want %q", name, others, baggage)
	}
	return trace, span
}

// In a trusted trace, the visitor's decision applies. samplingPercent decides only about
// other requests.
func TestTrustedParentContinues(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(0, v1alpha1.TraceParentTrusted))
	b.send(t, "/app", traceContexts["none"]...)
	if _, _, flags := b.backend.traceparent(t); flags != "00" {
		t.Errorf("without a visitor's trace, the flags are %s, want 00", flags)
	}
	b.send(t, "/app", traceContexts["unsampled"]...)
	if trace, span, flags := b.backend.traceparent(t); trace != visitorTrace || span == visitorSpan || flags != "00" {
		t.Errorf("the backend got the trace %s, the span %s and the flags %s", trace, span, flags)
	}
	for _, name := range []string{"malformed", "zeros", "huge"} { // no trace: they pass unchanged
		b.send(t, "/app", traceContexts[name]...)
		if got := b.backend.traceLines(); !slices.Equal(got, traceContexts[name]) {
			t.Errorf("%s: the backend got %.200q", name, got)
		}
	}
	b.apply(t, b.settings(100, v1alpha1.TraceParentTrusted))
	b.send(t, "/app", traceContexts["unsampled"]...)
	b.send(t, "/app", traceContexts["none"]...)
	if span := b.await(t, 1)[0]; len(span.ParentSpanId) != 0 || hex.EncodeToString(span.TraceId) == visitorTrace {
		t.Errorf("the span of a request without a trace is %v", span)
	}
}

// Envoy's span replaces the visitor's as the parent that the backend gets.
func TestTrustedParentHasAChild(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(0, v1alpha1.TraceParentTrusted))
	for i, name := range []string{"sampled", "duplicate", "version"} {
		b.send(t, "/app", traceContexts[name]...)
		trace, id, flags := b.backend.traceparent(t)
		span := b.await(t, i+1)[i]
		if trace != visitorTrace || hex.EncodeToString(span.TraceId) != trace || hex.EncodeToString(span.SpanId) != id || flags != "01" ||
			hex.EncodeToString(span.ParentSpanId) != visitorSpan {
			t.Errorf("%s: the backend got %q, and the span is %v", name, b.backend.traceLines(), span)
		}
		if states := strings.Count(strings.ToLower(strings.Join(b.backend.traceLines(), "\n")), "tracestate: "); states != 1 {
			t.Errorf("%s: the backend got %q", name, b.backend.traceLines())
		}
	}
}
