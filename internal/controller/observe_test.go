package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// observer is one that nobody looks at.
func (l *life) observer() *observer {
	now := l.now
	return &observer{
		metrics: metrics.New(prometheus.NewRegistry()), changes: newChanges(now), tracer: noop.NewTracerProvider().Tracer(""), now: now,
	}
}
