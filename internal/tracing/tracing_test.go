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

func TestNoSpansAreRecordedWithoutAnEndpoint(t *testing.T) {
	// Without an endpoint, the tracer records no spans.
	tracer, end, err := tracing.Start(t.Context(), logr.Discard(), "", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "load")
	if span.IsRecording() || span.SpanContext().IsValid() {
		t.Error("the tracer records a span")
	}
	span.End()
	if err := end(); err != nil {
		t.Errorf("the shutdown failed: %v", err)
	}
}

func TestUnreachableCollectorDoesNotBlock(t *testing.T) {
	// An unreachable collector does not delay the start, and delays the shutdown only briefly.
	before := time.Now()
	tracer, end, err := tracing.Start(t.Context(), logr.Discard(), "http://127.0.0.1:1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "load")
	if !span.IsRecording() {
		t.Error("the tracer does not record the span")
	}
	span.End()
	if err := end(); err == nil {
		t.Error("the shutdown succeeded although the spans were lost")
	}
	if elapsed := time.Since(before); elapsed > 10*time.Second {
		t.Errorf("start and shutdown took %s, want at most 10s", elapsed)
	}
}

// newRecordingLogger returns a logger and the lines that it logs.
func newRecordingLogger() (logr.Logger, *[]string) {
	var lines []string
	return funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), &lines
}

func TestMalformedAttributesAreLogged(t *testing.T) {
	// The controller starts even if attributes in the environment are malformed. It logs
	// them.
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
		t.Errorf("got log lines %q, want one with the cause", *lines)
	}
}

func TestRepeatedErrorsAreLoggedOnce(t *testing.T) {
	// Repeated errors do not fill the log.
	logger, lines := newRecordingLogger()
	_, end, err := tracing.Start(t.Context(), logger, "http://127.0.0.1:1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		otel.Handle(errors.New("connection refused"))
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if len(*lines) != 1 || !strings.Contains((*lines)[0], "connection refused") {
		t.Errorf("got log lines %q, want one with the cause", *lines)
	}
}
