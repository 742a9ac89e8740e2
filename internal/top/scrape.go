// Package top measures the requests that connectors forward, for the command top. It reads
// their Envoys' metrics through the API server.
package top

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// The metrics that Envoy counts by route.
const (
	requestsName  = "envoy_tunnel_gateway_requests_total"
	durationsName = "envoy_tunnel_gateway_request_duration_milliseconds"
)

// Labels on these metrics.
const (
	labelKind       = "route_kind"
	labelNamespace  = "route_namespace"
	labelRoute      = "route_name"
	labelHostname   = "hostname"
	labelBackend    = "backend"
	labelCode       = "code"
	labelFlags      = "flags"
	labelGRPCStatus = "grpc_status"
)

// scrape contains an Envoy's metrics at one time.
type scrape struct {
	at time.Time
	// routes are the metrics by route. They are empty if the class does not set them, and
	// while no request has arrived.
	routes metrics
	// listeners are the totals for the listeners that get requests.
	listeners metrics
}

// metrics are series by their identity.
type metrics struct {
	requests  map[string]counter
	durations map[string]histogram
}

// counter is a series that counts requests.
type counter struct {
	labels map[string]string
	value  float64
}

// histogram is a series with durations in milliseconds.
type histogram struct {
	labels map[string]string
	// buckets are the cumulative requests by upper bound.
	buckets map[float64]float64
}

// parse reads metrics in Prometheus's text format.
func parse(r io.Reader, at time.Time) (scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return scrape{}, fmt.Errorf("parse the metrics: %w", err)
	}
	s := scrape{at: at, routes: newMetrics(), listeners: newMetrics()}
	s.routes.addRequests(families[requestsName], nil)
	s.routes.addDurations(families[durationsName])
	for _, listener := range []string{envoy.ListenerOpen, envoy.ListenerProtected} {
		prefix := "envoy_http_" + listener + "_downstream_rq_"
		for _, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
			s.listeners.addRequests(families[prefix+class], map[string]string{labelCode: class})
		}
		s.listeners.addDurations(families[prefix+"time"])
	}
	return s, nil
}

func newMetrics() metrics {
	return metrics{requests: map[string]counter{}, durations: map[string]histogram{}}
}

// addRequests adds a family's series, if it exists. labels replace the series' own labels if
// they are not nil.
func (m metrics) addRequests(family *dto.MetricFamily, labels map[string]string) {
	for _, metric := range family.GetMetric() {
		own := labelsOf(metric)
		id := identity(family, own)
		if labels != nil {
			own = labels
		}
		m.requests[id] = counter{labels: own, value: metric.GetCounter().GetValue()}
	}
}

func (m metrics) addDurations(family *dto.MetricFamily) {
	for _, metric := range family.GetMetric() {
		labels := labelsOf(metric)
		buckets := map[float64]float64{}
		for _, b := range metric.GetHistogram().GetBucket() {
			buckets[b.GetUpperBound()] = float64(b.GetCumulativeCount())
		}
		m.durations[identity(family, labels)] = histogram{labels: labels, buckets: buckets}
	}
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := make(map[string]string, len(metric.GetLabel()))
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}

// identity returns a text that differs between any two series in a scrape.
func identity(family *dto.MetricFamily, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(family.GetName())
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, ",%s=%q", name, labels[name])
	}
	return b.String()
}
