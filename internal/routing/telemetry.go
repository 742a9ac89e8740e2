package routing

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Telemetry is what the data plane reports about requests. Nil fields mean the defaults.
// Ingress rules ignore it.
type Telemetry struct {
	Metrics   *v1alpha1.EnvoyMetrics `json:"metrics,omitempty"`
	AccessLog *v1alpha1.AccessLog    `json:"accessLog,omitempty"`
	Tracing   *v1alpha1.Tracing      `json:"tracing,omitempty"`
}

// CountsRoutes reports whether the data plane counts the requests of each route.
func (t Telemetry) CountsRoutes() bool {
	return t.Metrics != nil && slices.Contains(t.Metrics.By, v1alpha1.MetricsByRoute)
}

// CountsBackends reports whether the data plane counts the requests of each route for
// each backend.
func (t Telemetry) CountsBackends() bool {
	return t.CountsRoutes() && slices.Contains(t.Metrics.By, v1alpha1.MetricsByBackend)
}

// NewTelemetry returns the settings for an Envoy, which can be nil.
func NewTelemetry(p *v1alpha1.EnvoyProxy) Telemetry {
	if p == nil {
		return Telemetry{}
	}
	return Telemetry{Metrics: p.Metrics, AccessLog: p.AccessLog, Tracing: p.Tracing}
}
