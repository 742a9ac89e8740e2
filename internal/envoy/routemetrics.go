package envoy

import (
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	dataaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	statsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// addRouteMetrics makes a listener count its requests by route, if the settings say so.
func addRouteMetrics(m *hcmv3.HttpConnectionManager, telemetry routing.Telemetry) {
	if !telemetry.CountsRoutes() {
		return
	}
	s := routeMetrics{scope: metricsScope(telemetry.Metrics), labels: routeLabels(telemetry)}
	m.AccessLog = append(m.AccessLog, statsLogger("requests", recordsOf(dataaccesslogv3.AccessLogType_DownstreamEnd),
		&statsv3.Config{StatsScope: s.scope, Counters: s.counters(), Histograms: s.histograms()}))
	if !countsInFlight(telemetry) {
		return
	}
	m.AccessLog = append(m.AccessLog, statsLogger("requests-in-flight", recordsOf(dataaccesslogv3.AccessLogType_DownstreamStart),
		&statsv3.Config{StatsScope: s.scope, Gauges: []*statsv3.Config_Gauge{s.inFlight()}}))
	m.AccessLogOptions = &hcmv3.HttpConnectionManager_HcmAccessLogOptions{FlushAccessLogOnNewRequest: true}
}

// countsInFlight reports whether a listener counts requests by route from their start.
func countsInFlight(telemetry routing.Telemetry) bool {
	return telemetry.CountsRoutes() && ptr.Deref(telemetry.Metrics.RequestsInFlight, false)
}

// recordsOf selects the records of one type. Because requests in flight need a record at
// the start of each request, every logger has to select the record at the end, or it
// would count each request twice.
func recordsOf(t dataaccesslogv3.AccessLogType) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_LogTypeFilter{LogTypeFilter: &accesslogv3.LogTypeFilter{
		Types: []dataaccesslogv3.AccessLogType{t},
	}}}
}

func statsLogger(name string, filter *accesslogv3.AccessLogFilter, config *statsv3.Config) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{
		Name: name, Filter: filter, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: pack(config)},
	}
}

// The limits on the statistics for each pair of route and backend. Above them, Envoy
// refuses further statistics, and only counts that in server.stats_overflow. They are a
// multiple of what a pair needs, because Envoy forgets the statistics of a route that is
// gone only after an hour or two.
//
// A pair needs one gauge, so that the other limits are reached before that for gauges: If
// Envoy refuses a gauge at the start of a request, and forgets others before the end, it
// subtracts the request from a new gauge, which is 2^64-1 from then on.
const (
	histogramsPerPair = 16
	countersPerPair   = 64
	gaugesPerPair     = countersPerPair
)

// metricsScope returns the scope of all loggers' statistics.
func metricsScope(metrics *v1alpha1.EnvoyMetrics) *typev3.Scope {
	pairs := uint32(ptr.Deref(metrics.MaxPairs, v1alpha1.DefaultMaxPairs)) //nolint:gosec // above 0
	return &typev3.Scope{
		Prefix: MetricsPrefix, SharingName: MetricsPrefix, EnableEviction: true,
		MaxCounters: wrapperspb.UInt32(pairs * countersPerPair), MaxGauges: wrapperspb.UInt32(pairs * gaugesPerPair),
		MaxHistograms: wrapperspb.UInt32(pairs * histogramsPerPair),
	}
}

// routeMetrics renders the metrics with the labels of a route. Each metric takes one to
// two microseconds for each request, mostly for its labels.
type routeMetrics struct {
	scope  *typev3.Scope
	labels []*statsv3.Config_Tag
}

func (r routeMetrics) stat(name string, tags ...*statsv3.Config_Tag) *statsv3.Config_Stat {
	return &statsv3.Config_Stat{Name: name, Tags: tags}
}

// with returns the labels of a route and others.
func (r routeMetrics) with(others ...*statsv3.Config_Tag) []*statsv3.Config_Tag {
	return slices.Concat(r.labels, others)
}

func (r routeMetrics) counters() []*statsv3.Config_Counter {
	one := wrapperspb.UInt64(1)
	return []*statsv3.Config_Counter{
		{Stat: r.stat("requests_total", r.with(codeLabel(), flagsLabel(), grpcStatusLabel())...), ValueFixed: one},
		// Most requests have no retry, so the condition comes before the labels.
		{
			Stat:        r.stat("retries_total", append([]*statsv3.Config_Tag{onlyIfNot("%UPSTREAM_REQUEST_ATTEMPT_COUNT%", "0", "1")}, r.labels...)...),
			ValueFormat: "%CEL(upstream.request_attempt_count - 1u)%",
		},
		{Stat: r.stat("request_bytes_total", r.labels...), ValueFormat: "%BYTES_RECEIVED%"},
		{Stat: r.stat("response_bytes_total", r.labels...), ValueFormat: "%BYTES_SENT%"},
	}
}

func (r routeMetrics) histograms() []*statsv3.Config_Histogram {
	const unit = statsv3.Config_Histogram_Milliseconds
	toFirstByte := "%RESPONSE_DURATION%"
	return []*statsv3.Config_Histogram{
		{Stat: r.stat("request_duration_milliseconds", r.labels...), Unit: unit, ValueFormat: "%DURATION%"},
		// Without a response from a backend, Envoy would log an error.
		{
			Stat: r.stat("backend_duration_milliseconds", append([]*statsv3.Config_Tag{onlyIfNot(toFirstByte, "")}, r.labels...)...),
			Unit: unit, ValueFormat: toFirstByte,
		},
	}
}

// inFlight counts a request at its start. Envoy subtracts it when the request ends,
// without a second record, for which Envoy would evaluate the labels again.
func (r routeMetrics) inFlight() *statsv3.Config_Gauge {
	return &statsv3.Config_Gauge{
		Stat: r.stat("requests_in_flight", r.labels...), ValueFixed: wrapperspb.UInt64(1),
		AddSubtract: &statsv3.Config_Gauge_PairedAddSubtract{
			AddLogType: dataaccesslogv3.AccessLogType_DownstreamStart, SubLogType: dataaccesslogv3.AccessLogType_DownstreamEnd,
		},
	}
}
