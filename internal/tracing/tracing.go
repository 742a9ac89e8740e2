// Package tracing sends spans to a collector, by OTLP over gRPC. What gets a span
// is decided where it happens; what an exporter is told, and when it ends, stands
// here.
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

// Scope is the name of the tracer.
const Scope = "github.com/tunnel-gateway/tunnel-gateway"

// flushTime is how long the end waits for a collector to take the last spans.
const flushTime = 3 * time.Second

// Start returns a tracer whose spans go to the collector at the endpoint,
// "http://host:port" or, with TLS, "https://host:port"; and a function that sends
// the last of them. Without an endpoint the tracer does nothing. It does not wait
// for the collector: spans that it does not take are lost, which is logged now and
// then. With an endpoint, it takes over OpenTelemetry's own log.
func Start(ctx context.Context, logger logr.Logger, endpoint, version string) (trace.Tracer, func() error, error) {
	if endpoint == "" {
		return noop.NewTracerProvider().Tracer(Scope), func() error { return nil }, nil
	}
	otel.SetLogger(logger)
	otel.SetErrorHandler(&errorLogger{logger: logger, now: time.Now})
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to send traces to %s: %w", endpoint, err)
	}
	// The resource has the names of OpenTelemetry's conventions, and what
	// OTEL_RESOURCE_ATTRIBUTES adds.
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "tunnel-gateway"), attribute.String("service.version", version),
	), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // the SDK tells of that by itself
		return nil, nil, fmt.Errorf("describing this process for traces: %w", err)
	}
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	end := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		return spans.Shutdown(ctx)
	}
	return spans.Tracer(Scope), end, nil
}

// logInterval is how long a failure keeps others out of the log: while a collector is
// away, there is one every few seconds.
const logInterval = 10 * time.Minute

// errorLogger logs what OpenTelemetry fails at in the background.
type errorLogger struct {
	logger logr.Logger
	now    func() time.Time

	mu         sync.Mutex
	quietUntil time.Time // others are kept out of the log
	suppressed int       // so many were
}

// Handle is documented at [otel.ErrorHandler].
func (f *errorLogger) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Before(f.quietUntil) {
		f.suppressed++
	} else {
		f.logger.Info("traces are not sent as they should be", "cause", err.Error(), "notLoggedBefore", f.suppressed)
		f.quietUntil, f.suppressed = now.Add(logInterval), 0
	}
}
