// Package tracing exports spans to an OpenTelemetry collector by OTLP over gRPC.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Scope is the tracer's name.
const Scope = "github.com/tunnel-gateway/tunnel-gateway"

// flushTimeout limits the time for sending the last spans when the controller stops.
const flushTimeout = 3 * time.Second

// Start returns a tracer that exports spans to the collector at the endpoint, and a
// function that sends the remaining spans and stops the tracer. The endpoint has the form
// "http://host:port" or, with TLS, "https://host:port". Without an endpoint, the tracer
// records nothing. The tracer never waits for the collector: it drops spans that it
// cannot send, and logs an error at most every ten minutes. Start redirects
// OpenTelemetry's log to the logger.
func Start(ctx context.Context, logger logr.Logger, endpoint, version string) (trace.Tracer, func() error, error) {
	if endpoint == "" {
		return noop.NewTracerProvider().Tracer(Scope), func() error { return nil }, nil
	}
	otel.SetLogger(logger)
	otel.SetErrorHandler(&errorLogger{logger: logger, now: time.Now})
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to send traces to %s: %w", endpoint, err)
	}
	// The attributes follow OpenTelemetry's semantic conventions. Users can add
	// attributes with OTEL_RESOURCE_ATTRIBUTES.
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "tunnel-gateway"), attribute.String("service.version", version),
	), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // the SDK logs partial resources
		return nil, nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	end := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		return spans.Shutdown(ctx)
	}
	return spans.Tracer(Scope), end, nil
}

// logInterval is the minimum time between two logged errors. While a collector is
// unavailable, an error occurs every few seconds.
const logInterval = 10 * time.Minute

// errorLogger logs OpenTelemetry's background errors at most once per [logInterval].
type errorLogger struct {
	logger logr.Logger
	now    func() time.Time

	mu         sync.Mutex
	quietUntil time.Time // errors before this time are not logged
	suppressed int       // errors that were not logged
}

// Handle implements [otel.ErrorHandler].
func (l *errorLogger) Handle(err error) {
	if suppressed, ok := l.count(); ok {
		l.logger.Info("failed to send traces", "cause", err.Error(), "suppressedErrors", suppressed)
	}
}

// count counts an error. It reports whether to log the error, and how many errors were
// not logged before.
func (l *errorLogger) count() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Before(l.quietUntil) {
		l.suppressed++
		return 0, false
	}
	suppressed = l.suppressed
	l.quietUntil, l.suppressed = now.Add(logInterval), 0
	return suppressed, true
}
