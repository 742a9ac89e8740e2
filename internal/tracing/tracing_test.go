package tracing_test

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tracing"
)

// Without an endpoint nothing is recorded.
func TestOff(t *testing.T) {
	tracer, end, err := tracing.Start(t.Context(), "", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "load")
	if span.IsRecording() || span.SpanContext().IsValid() {
		t.Error("a span is recorded")
	}
	span.End()
	if err := end(); err != nil {
		t.Errorf("the end failed: %v", err)
	}
}

// A collector that is away holds up neither the start nor, for long, the end.
func TestCollectorAway(t *testing.T) {
	before := time.Now()
	tracer, end, err := tracing.Start(t.Context(), "http://127.0.0.1:1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "load")
	if !span.IsRecording() {
		t.Error("no span is recorded")
	}
	span.End()
	if err := end(); err == nil {
		t.Error("nobody is told that the spans are lost")
	}
	if took := time.Since(before); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
