package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Gateway is how a Gateway stands after a pass, as its statuses say.
type Gateway struct {
	Programmed, Paused bool
	// Rules of the document that its tunnel holds; nil when that is not known.
	Rules        *int
	Listeners    map[ListenerState]int
	ListenerSets map[SetState]int
	Routes       map[RouteState]int
	// Connectors are nil when the controller runs none for the Gateway.
	Connectors *Connectors
}

// Connectors are those of a Gateway.
type Connectors struct {
	Ready              bool
	Desired, Available int
}

// gatewayGauges are the gauges of a Gateway, in the order of their documentation. Each
// gives a value, or one for every value of its own label.
var gatewayGauges = []struct {
	Metric
	of func(Gateway, emitFunc)
}{
	{gauge("gateway_programmed", "1 or 0", "Whether the Gateway's condition Programmed is true."),
		func(g Gateway, give emitFunc) { give(boolValue(g.Programmed)) }},
	{gauge("gateway_paused", "1 or 0", "Whether the Gateway is paused by its annotation tunnelgateway.dev/paused."),
		func(g Gateway, give emitFunc) { give(boolValue(g.Paused)) }},
	{gauge("rules", "rules", "Ingress rules of the configuration that the Gateway's tunnel holds, as it was last written or read."),
		func(g Gateway, give emitFunc) {
			if g.Rules != nil {
				give(float64(*g.Rules))
			}
		}},
	{gauge("listeners", "listeners", "Listeners of the Gateway and of the ListenerSets that point to it.", labelListenerState),
		func(g Gateway, give emitFunc) { emitCounts(give, labelListenerState, g.Listeners) }},
	{gauge("listener_sets", "ListenerSets", "ListenerSets that point to the Gateway.", labelSetState),
		func(g Gateway, give emitFunc) { emitCounts(give, labelSetState, g.ListenerSets) }},
	{gauge("routes", "routes", "HTTPRoutes and GRPCRoutes that point to the Gateway or to its ListenerSets.", labelRouteState),
		func(g Gateway, give emitFunc) { emitCounts(give, labelRouteState, g.Routes) }},
	{gauge("connectors_ready", "1 or 0", "Whether the Gateway's condition tunnelgateway.dev/ConnectorsReady is true. Absent where the controller runs none."),
		connectorGauge(func(c Connectors) float64 { return boolValue(c.Ready) })},
	{gauge("connectors_wanted", "connectors", "Replicas that the Deployment of the Gateway's connectors asks for; while there is none, 1 if it should be there and else 0. Absent where the controller runs none."),
		connectorGauge(func(c Connectors) float64 { return float64(c.Desired) })},
	{gauge("connectors_available", "connectors", "Connectors of the Gateway that are connected to Cloudflare's edge. Absent where the controller runs none."),
		connectorGauge(func(c Connectors) float64 { return float64(c.Available) })},
}

var oldestChange = gauge("oldest_change_timestamp_seconds", "seconds",
	"When the controller saw the oldest change that is still to be pushed, in seconds since 1970. Absent while there is none, and for what waits for a person.")

var missingGateway = gauge("gateway_missing_timestamp_seconds", "seconds",
	"When the Gateway of a Tunnel was found to be gone, in seconds since 1970. Absent while the Gateway exists, and when the tunnel is retained.")

func gauges() []Metric {
	all := make([]Metric, len(gatewayGauges), len(gatewayGauges)+2)
	for i := range gatewayGauges {
		all[i] = gatewayGauges[i].Metric
	}
	return append(all, oldestChange, missingGateway)
}

// emitFunc takes a value of a gauge, and that of the gauge's own label.
type emitFunc func(value float64, label ...string)

// emitCounts gives a value for every state, zeros too.
func emitCounts[S ~string](give emitFunc, states Label, counts map[S]int) {
	for _, state := range states.Values {
		give(float64(counts[S(state.Name)]), state.Name)
	}
}

func connectorGauge(value func(Connectors) float64) func(Gateway, emitFunc) {
	return func(g Gateway, give emitFunc) {
		if g.Connectors != nil {
			give(value(*g.Connectors))
		}
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gatewayCollector gives the gauges when they are asked for.
type gatewayCollector struct {
	mu sync.Mutex
	// gateways are those that have series, and how they stand; nil until that is
	// known.
	gateways map[types.NamespacedName]*Gateway
	// oldestChanges are the times of the oldest changes that are still to be pushed.
	oldestChanges map[types.NamespacedName]time.Time
	// missing are the times since when the Gateways of Tunnels are gone.
	missing map[types.NamespacedName]time.Time
}

// Describe is documented at [prometheus.Collector].
func (s *gatewayCollector) Describe(all chan<- *prometheus.Desc) {
	for _, state := range gatewayGauges {
		all <- state.desc()
	}
	all <- oldestChange.desc()
	all <- missingGateway.desc()
}

// Collect is documented at [prometheus.Collector].
func (s *gatewayCollector) Collect(all chan<- prometheus.Metric) {
	s.mu.Lock()
	gateways, waits, missing := maps.Clone(s.gateways), maps.Clone(s.oldestChanges), maps.Clone(s.missing)
	s.mu.Unlock()
	for name, since := range waits {
		all <- prometheus.MustNewConstMetric(oldestChange.desc(), prometheus.GaugeValue, float64(since.UnixMilli())/1000, name.Namespace, name.Name)
	}
	for name, since := range missing {
		all <- prometheus.MustNewConstMetric(missingGateway.desc(), prometheus.GaugeValue, float64(since.Unix()), name.Namespace, name.Name)
	}
	for _, state := range gatewayGauges {
		desc := state.desc()
		for name, g := range gateways {
			if g != nil {
				state.of(*g, func(value float64, label ...string) {
					all <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{name.Namespace, name.Name}, label...)...)
				})
			}
		}
	}
}

func (m Metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil)
}

// SetGateway records how the Gateway stands. Rules that are not known are those that
// were known last.
func (m *Metrics) SetGateway(name types.NamespacedName, g Gateway) {
	m.ensureGateway(name)
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if last := m.collector.gateways[name]; last != nil && g.Rules == nil {
		g.Rules = last.Rules
	}
	m.collector.gateways[name] = &g
}

// ClearGateway records that it is not known any more how the Gateway stands. What was
// counted of it stays.
func (m *Metrics) ClearGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if _, known := m.collector.gateways[name]; known {
		m.collector.gateways[name] = nil
	}
}

// SetOldestChange records when the oldest change of the Gateway was seen that is still to be
// pushed; the zero time when there is none.
func (m *Metrics) SetOldestChange(name types.NamespacedName, since time.Time) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if m.collector.oldestChanges[name] = since; since.IsZero() {
		delete(m.collector.oldestChanges, name)
	}
}

// SetGatewayMissing records since when the Gateway of a Tunnel is gone; the zero time when
// it exists or its tunnel is retained.
func (m *Metrics) SetGatewayMissing(name types.NamespacedName, since time.Time) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	if m.collector.missing[name] = since; since.IsZero() {
		delete(m.collector.missing, name)
	}
}

// RecordPush records a document of so many bytes that was written to the Gateway's
// tunnel.
func (m *Metrics) RecordPush(name types.NamespacedName, bytes int) {
	m.ensureGateway(name)
	m.pushes.WithLabelValues(name.Namespace, name.Name).Inc()
	m.pushedBytes.WithLabelValues(name.Namespace, name.Name).Add(float64(bytes))
}

// ObserveChangeToPush records how long it took from a change to the push that carried it
// out.
func (m *Metrics) ObserveChangeToPush(took time.Duration) {
	m.changeToPush.WithLabelValues().Observe(took.Seconds())
}

// RecordDriftRepair records that somebody else's change of the tunnel's document was put
// right.
func (m *Metrics) RecordDriftRepair(name types.NamespacedName) {
	m.ensureGateway(name)
	m.driftRepairs.WithLabelValues(name.Namespace, name.Name).Inc()
}

// RecordDriftContested records that the controller stopped writing a document that somebody
// else keeps changing.
func (m *Metrics) RecordDriftContested(name types.NamespacedName) {
	m.ensureGateway(name)
	m.driftFights.WithLabelValues(name.Namespace, name.Name).Inc()
}

// RecordError records why a step of a Gateway's reconcile failed.
func (m *Metrics) RecordError(name types.NamespacedName, reason tunnel.Reason) {
	m.ensureGateway(name)
	m.errors.WithLabelValues(name.Namespace, name.Name, string(reason)).Inc()
}

// DeleteGateway takes away the series of a Gateway that is gone. For one that has none
// it costs nothing.
func (m *Metrics) DeleteGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	_, known := m.collector.gateways[name]
	delete(m.collector.gateways, name)
	delete(m.collector.oldestChanges, name)
	delete(m.collector.missing, name)
	m.collector.mu.Unlock()
	if !known {
		return
	}
	for _, c := range m.vectors {
		c.deleteMatching(prometheus.Labels{labelNamespace.Name: name.Namespace, labelGateway.Name: name.Name})
	}
}

// ensureGateway begins the counters of a Gateway at zero.
func (m *Metrics) ensureGateway(name types.NamespacedName) {
	m.collector.mu.Lock()
	_, known := m.collector.gateways[name]
	if !known {
		m.collector.gateways[name] = nil
	}
	m.collector.mu.Unlock()
	if known {
		return
	}
	for _, c := range m.vectors {
		if c.hasFirstLabel(labelNamespace) {
			c.createAll(name.Namespace, name.Name)
		}
	}
}
