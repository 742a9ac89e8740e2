package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// Gateway contains a Gateway's gauge values after a reconcile.
type Gateway struct {
	Programmed, Paused bool
	// PausedSince is when the pause began; zero if the Gateway is not paused.
	PausedSince time.Time
	// Throttled reports whether a change waits for limits.configurationUpdates.
	Throttled bool
	// Rules counts the ingress rules in the tunnel's configuration; nil if the
	// configuration is unknown.
	Rules        *int
	Listeners    map[ListenerState]int
	ListenerSets map[ListenerSetState]int
	Routes       map[RouteState]int
	// Limits has the usage for each limit that applies; nil if the limits are unknown.
	Limits map[limits.Name]LimitUsage
	// AboveLimit counts objects above a limit, by kind.
	AboveLimit map[LimitedKind]int
	// Connectors is nil if the controller runs no connectors for the Gateway.
	Connectors *Connectors
	// DataPlane comes from the DataPlaneReady condition; nil if the condition does not
	// exist.
	DataPlane *DataPlane
	// UncountedPairs counts the pairs of route and backend above
	// connector.envoy.metrics.maxPairs; nil without metrics by route.
	UncountedPairs *int
	// DataPlaneChangeStart is when the data plane change in progress started; zero if
	// none is in progress.
	DataPlaneChangeStart time.Time
}

// DataPlane is the state that a Gateway's DataPlaneReady condition reports.
type DataPlane struct {
	// Ready reports whether Envoy has the configuration, and Rejected whether the
	// configuration is not valid.
	Ready, Rejected bool
	// LimitExceeded reports whether a change to ingress rules cannot begin, because the
	// routes exceed their limits.
	LimitExceeded bool
}

// LimitUsage is a limit and how much is used.
type LimitUsage struct{ Used, Limit int }

// Connectors counts a Gateway's connectors and says whether they are ready.
type Connectors struct {
	Ready              bool
	Desired, Available int
}

// gatewayGauges are the gauges that each Gateway has, in the order in which
// docs/metrics.md lists them. Each gauge emits one value, or one per value that its own
// label can have.
var gatewayGauges = []struct {
	Metric
	emit func(Gateway, emitFunc)
}{
	{gauge("gateway_programmed", "1 or 0", "Whether the Gateway's Programmed condition is true."),
		func(g Gateway, emit emitFunc) { emit(boolValue(g.Programmed)) }},
	{gauge("gateway_paused", "1 or 0", "Whether the annotation tunnelgateway.dev/paused pauses the Gateway."),
		func(g Gateway, emit emitFunc) { emit(boolValue(g.Paused)) }},
	{gauge("gateway_paused_since_timestamp_seconds", "seconds", "Unix time at which the Gateway was paused, as recorded in the Tunnel's status.pausedSince. Absent if the Gateway is not paused, or has no Tunnel."),
		func(g Gateway, emit emitFunc) {
			if !g.PausedSince.IsZero() {
				emit(float64(g.PausedSince.Unix()))
			}
		}},
	{gauge("configuration_throttled", "1 or 0", "Whether a change to the tunnel's configuration is delayed because there were more changes than limits.configurationUpdates permits."),
		func(g Gateway, emit emitFunc) { emit(boolValue(g.Throttled)) }},
	{gauge("rules", "rules", "Ingress rules in the tunnel's configuration, as last read or written."),
		func(g Gateway, emit emitFunc) {
			if g.Rules != nil {
				emit(float64(*g.Rules))
			}
		}},
	{gauge("listeners", "listeners", "Listeners in the Gateway and in the ListenerSets that it allows.", labelListenerState),
		func(g Gateway, emit emitFunc) { emitCounts(emit, labelListenerState, g.Listeners) }},
	{gauge("listener_sets", "ListenerSets", "ListenerSets whose parentRef names the Gateway.", labelListenerSetState),
		func(g Gateway, emit emitFunc) { emitCounts(emit, labelListenerSetState, g.ListenerSets) }},
	{gauge("routes", "routes", "HTTPRoutes and GRPCRoutes whose parentRefs name the Gateway or its ListenerSets.", labelRouteState),
		func(g Gateway, emit emitFunc) { emitCounts(emit, labelRouteState, g.Routes) }},
	{gauge("limit_used", "objects", "Objects that count toward a limit on the Gateway. Absent while the Gateway's settings are not valid.", labelLimit),
		limitGauge(func(u LimitUsage) int { return u.Used })},
	{gauge("limit", "objects", "The limit that applies to the Gateway. Absent while the Gateway's settings are not valid.", labelLimit),
		limitGauge(func(u LimitUsage) int { return u.Limit })},
	{gauge("above_limit", "objects", "Objects that the controller does not accept, because they are above a limit.", labelKind),
		func(g Gateway, emit emitFunc) { emitCounts(emit, labelKind, g.AboveLimit) }},
	{gauge("data_plane_ready", "1 or 0", "Whether the Gateway's tunnelgateway.dev/DataPlaneReady condition is true. Absent with ingress rules, except during a change to Envoy."),
		dataPlaneGauge(func(d DataPlane) bool { return d.Ready })},
	{gauge("data_plane_rejected", "1 or 0", "Whether the Gateway's current configuration for Envoy is not valid: an Envoy has rejected it, or the controller has not sent it because it is not valid. Absent with ingress rules, except during a change to Envoy."),
		dataPlaneGauge(func(d DataPlane) bool { return d.Rejected })},
	{gauge("data_plane_limit_exceeded", "1 or 0", "Whether the settings ask for ingress rules, but the change from Envoy cannot begin, because the Gateway's routes exceed the limits for ingress rules. Absent with ingress rules, except during a change to Envoy."),
		dataPlaneGauge(func(d DataPlane) bool { return d.LimitExceeded })},
	{gauge("envoy_uncounted_pairs", "pairs", "Pairs of route and backend, for each hostname and rule, above connector.envoy.metrics.maxPairs. Each Envoy counts their requests together. Absent unless connector.envoy.metrics.by contains Route."),
		func(g Gateway, emit emitFunc) {
			if g.UncountedPairs != nil {
				emit(float64(*g.UncountedPairs))
			}
		}},
	{gauge("tunnel_data_plane_change_start_time_seconds", "seconds", "Unix time at which the data plane change in progress began, as recorded in the Tunnel's status.dataPlaneChange. Absent if no change is in progress."),
		func(g Gateway, emit emitFunc) {
			if !g.DataPlaneChangeStart.IsZero() {
				emit(float64(g.DataPlaneChangeStart.Unix()))
			}
		}},
	{gauge("connectors_ready", "1 or 0", "Whether the Gateway's tunnelgateway.dev/ConnectorsReady condition is true. Absent if the controller runs no connectors for the Gateway."),
		connectorGauge(func(c Connectors) float64 { return boolValue(c.Ready) })},
	{gauge("connectors_wanted", "connectors", "Desired replicas of the Gateway's connector Deployment. While the Deployment is missing, 1 if it should exist and 0 otherwise. Absent if the controller runs no connectors for the Gateway."),
		connectorGauge(func(c Connectors) float64 { return float64(c.Desired) })},
	{gauge("connectors_available", "connectors", "The Gateway's connectors that are connected to Cloudflare's edge. Absent if the controller runs no connectors for the Gateway."),
		connectorGauge(func(c Connectors) float64 { return float64(c.Available) })},
}

var oldestChange = gauge("oldest_change_timestamp_seconds", "seconds",
	"Unix time at which the controller observed the oldest change that it has not pushed. Absent if no change is pending, or if the changes wait for user action.")

var missingGateway = gauge("gateway_missing_timestamp_seconds", "seconds",
	"Unix time at which the controller found that the Tunnel's Gateway is gone. Absent while the Gateway exists and if the tunnel is retained.")

var unwrittenStatuses = gauge("unwritten_statuses", "statuses",
	"Statuses that the controller could not write and retries, on the Gateway and its ListenerSets and routes. Absent if there are none.")

// gauges returns the definitions in gatewayGauges.
func gauges() []Metric {
	all := make([]Metric, len(gatewayGauges), len(gatewayGauges)+3)
	for i := range gatewayGauges {
		all[i] = gatewayGauges[i].Metric
	}
	return append(all, oldestChange, missingGateway, unwrittenStatuses)
}

// emitFunc emits a gauge value, with the value for the gauge's own label, if any.
type emitFunc func(value float64, label ...string)

// emitCounts emits a value for every state, including zeros.
func emitCounts[S ~string](emit emitFunc, states Label, counts map[S]int) {
	for _, state := range states.Values {
		emit(float64(counts[S(state.Name)]), state.Name)
	}
}

// boolValue returns 1 for true and 0 for false.
func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gatewayCollector is a [prometheus.Collector] for gatewayGauges, oldestChange,
// missingGateway and unwrittenStatuses.
type gatewayCollector struct {
	mu sync.Mutex
	// gateways contains the Gateways that have series. The value is nil while the
	// Gateway's gauges are unknown.
	gateways map[types.NamespacedName]*Gateway
	// oldestChanges contains when each Gateway's oldest unpushed change happened.
	oldestChanges map[types.NamespacedName]time.Time
	// missing contains since when a Gateway with a Tunnel has been gone.
	missing map[types.NamespacedName]time.Time
	// sources contains the namespaces with a configuration_changes_total series.
	sources map[types.NamespacedName]map[string]bool
	// unwritten counts statuses that could not be written. A Gateway without such
	// statuses has no entry.
	unwritten map[types.NamespacedName]int
}

// Describe implements [prometheus.Collector].
func (s *gatewayCollector) Describe(all chan<- *prometheus.Desc) {
	for _, gauge := range gatewayGauges {
		all <- gauge.desc()
	}
	all <- oldestChange.desc()
	all <- missingGateway.desc()
	all <- unwrittenStatuses.desc()
}

// Collect implements [prometheus.Collector].
func (s *gatewayCollector) Collect(all chan<- prometheus.Metric) {
	s.mu.Lock()
	gateways, oldest, missing, unwritten := maps.Clone(s.gateways), maps.Clone(s.oldestChanges), maps.Clone(s.missing), maps.Clone(s.unwritten)
	s.mu.Unlock()
	for name, since := range oldest {
		all <- prometheus.MustNewConstMetric(oldestChange.desc(), prometheus.GaugeValue, float64(since.UnixMilli())/1000, name.Namespace, name.Name)
	}
	for name, since := range missing {
		all <- prometheus.MustNewConstMetric(missingGateway.desc(), prometheus.GaugeValue, float64(since.Unix()), name.Namespace, name.Name)
	}
	for name, count := range unwritten {
		all <- prometheus.MustNewConstMetric(unwrittenStatuses.desc(), prometheus.GaugeValue, float64(count), name.Namespace, name.Name)
	}
	for _, gauge := range gatewayGauges {
		desc := gauge.desc()
		for name, g := range gateways {
			if g != nil {
				gauge.emit(*g, func(value float64, label ...string) {
					all <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{name.Namespace, name.Name}, label...)...)
				})
			}
		}
	}
}

// desc describes the metric to Prometheus.
func (m Metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil)
}

// SetGateway sets the gauges of the Gateway. If g.Rules is nil, the gauge keeps its last
// value.
func (m *Metrics) SetGateway(name types.NamespacedName, g Gateway) {
	m.ensureGateway(name)
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if last := m.collector.gateways[name]; last != nil && g.Rules == nil {
		g.Rules = last.Rules
	}
	m.collector.gateways[name] = &g
}

// ClearGateway removes a Gateway's gauges while its state is unknown. It keeps the
// counters.
func (m *Metrics) ClearGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if _, exists := m.collector.gateways[name]; exists {
		m.collector.gateways[name] = nil
	}
}

// SetOldestChange sets when the Gateway's oldest unpushed change happened. The zero time
// means that no change is pending.
func (m *Metrics) SetOldestChange(name types.NamespacedName, since time.Time) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if m.collector.oldestChanges[name] = since; since.IsZero() {
		delete(m.collector.oldestChanges, name)
	}
}

// SetGatewayMissing sets since when a Tunnel's Gateway has been gone. The zero time means
// that the Gateway exists or its tunnel is retained.
func (m *Metrics) SetGatewayMissing(name types.NamespacedName, since time.Time) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if m.collector.missing[name] = since; since.IsZero() {
		delete(m.collector.missing, name)
	}
}

// SetUnwrittenStatuses sets how many statuses the controller could not write for the
// Gateway. It also applies to a Gateway that is gone: the controller must remove its
// entries from route statuses.
func (m *Metrics) SetUnwrittenStatuses(name types.NamespacedName, count int) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if m.collector.unwritten[name] = count; count == 0 {
		delete(m.collector.unwritten, name)
	}
}

// RecordPush counts a configuration that was written to the Gateway's tunnel, and its size
// in bytes.
func (m *Metrics) RecordPush(name types.NamespacedName, bytes int) {
	m.ensureGateway(name)
	m.pushes.WithLabelValues(name.Namespace, name.Name).Inc()
	m.pushedBytes.WithLabelValues(name.Namespace, name.Name).Add(float64(bytes))
}

// RecordConfigurationChange counts a write to the tunnel's configuration to which changed
// objects in the namespace contributed.
func (m *Metrics) RecordConfigurationChange(name types.NamespacedName, namespace string) {
	m.ensureGateway(name)
	m.configurationChanges.WithLabelValues(name.Namespace, name.Name, m.collector.sourceNamespace(name, namespace)).Inc()
}

// maxSourceNamespaces limits the namespace series per Gateway, so that namespaces that
// come and go do not add series without end.
const maxSourceNamespaces = 100

// otherNamespaces stands for the namespaces above maxSourceNamespaces. No namespace has
// this name.
const otherNamespaces = "_other"

// sourceNamespace returns the namespace as a label value.
func (s *gatewayCollector) sourceNamespace(name types.NamespacedName, namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sources[name]
	switch {
	case known[namespace]:
		return namespace
	case len(known) == maxSourceNamespaces:
		return otherNamespaces
	case known == nil:
		known = map[string]bool{}
		s.sources[name] = known
	}
	known[namespace] = true
	return namespace
}

// ObserveChangeToPush observes the time from a change to the end of its push.
func (m *Metrics) ObserveChangeToPush(duration time.Duration) {
	m.changeToPush.WithLabelValues().Observe(duration.Seconds())
}

// RecordDriftRepair counts an external change to the tunnel's configuration that the
// controller reverted.
func (m *Metrics) RecordDriftRepair(name types.NamespacedName) {
	m.ensureGateway(name)
	m.driftRepairs.WithLabelValues(name.Namespace, name.Name).Inc()
}

// RecordDriftContested counts that the controller stopped writing a configuration after
// repeated external changes.
func (m *Metrics) RecordDriftContested(name types.NamespacedName) {
	m.ensureGateway(name)
	m.driftFights.WithLabelValues(name.Namespace, name.Name).Inc()
}

// RecordError counts a failed step in a Gateway's reconcile by its reason.
func (m *Metrics) RecordError(name types.NamespacedName, reason conditions.Reason) {
	m.ensureGateway(name)
	m.errors.WithLabelValues(name.Namespace, name.Name, reason.String()).Inc()
}

// DeleteGateway deletes all series for the Gateway, except unwritten statuses: the
// controller may still have to remove the Gateway's entries from route statuses.
func (m *Metrics) DeleteGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	_, exists := m.collector.gateways[name]
	delete(m.collector.gateways, name)
	delete(m.collector.oldestChanges, name)
	delete(m.collector.missing, name)
	delete(m.collector.sources, name)
	m.collector.mu.Unlock()
	m.DeleteConnectedEnvoys(name)
	if !exists {
		return
	}
	for _, c := range m.vectors {
		c.deleteMatching(prometheus.Labels{labelNamespace.Name: name.Namespace, labelGateway.Name: name.Name})
	}
}

// ensureGateway creates the counters for a new Gateway with the value zero.
func (m *Metrics) ensureGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	_, exists := m.collector.gateways[name]
	if !exists {
		m.collector.gateways[name] = nil
	}
	m.collector.mu.Unlock()
	if exists {
		return
	}
	for _, c := range m.vectors {
		if c.hasFirstLabel(labelNamespace) {
			c.createAll(name.Namespace, name.Name)
		}
	}
}
