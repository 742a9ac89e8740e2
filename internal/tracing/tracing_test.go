package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tracing"
)

// Without an endpoint nothing is recorded.
func TestNothingIsRecordedWithoutAnEndpoint(t *testing.T) {
	tracer, end, err := tracing.Start(t.Context(), logr.Discard(), "", "v1")
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
func TestUnreachableCollectorDelaysNothing(t *testing.T) {
	before := time.Now()
	tracer, end, err := tracing.Start(t.Context(), logr.Discard(), "http://127.0.0.1:1", "v1")
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

// newRecordingLogger is a logger whose lines are kept.
func newRecordingLogger() (logr.Logger, *[]string) {
	var lines []string
	return funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), &lines
}

// Tracing is an extra: what somebody else's tool writes into the environment does
// not keep the controller from starting, and is told.
func TestMalformedAttributesAreLogged(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team")
	logger, lines := newRecordingLogger()
	tracer, end, err := tracing.Start(t.Context(), logger, "http://127.0.0.1:1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if tracer == nil || len(*lines) != 1 || !strings.Contains((*lines)[0], "team") {
		t.Errorf("logged: %q", *lines)
	}
}

// A collector that stays away does not fill the log.
func TestRepeatedErrorsAreLoggedOnce(t *testing.T) {
	logger, lines := newRecordingLogger()
	_, end, err := tracing.Start(t.Context(), logger, "http://127.0.0.1:1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		otel.Handle(errors.New("nobody listens"))
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if len(*lines) != 1 || !strings.Contains((*lines)[0], "nobody listens") {
		t.Errorf("logged: %q", *lines)
	}
}
