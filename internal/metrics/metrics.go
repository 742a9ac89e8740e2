// Package metrics defines and records the controller's Prometheus metrics. [All] defines
// every metric; docs/metrics.md is generated from it. [Metrics.Meter] wraps a provider to
// record its calls. After every reconcile, the controller records the Gateway's metrics,
// for example with [Metrics.SetGateway].
//
// The package neither reads Kubernetes objects nor logs.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

//go:generate go run ../../test/docgen metrics

// Type is a Prometheus metric type.
type Type string

// Metric types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric defines a metric.
type Metric struct {
	Name string
	Type Type
	// Unit is what the value counts or measures, for example "seconds".
	Unit   string
	Labels []Label
	Help   string
	// Buckets are the upper bounds of a histogram's buckets.
	Buckets []float64
}

// LabelNames returns the label names in order.
func (m Metric) LabelNames() []string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = label.Name
	}
	return names
}

// hasFirstLabel reports whether the label is the metric's first label.
func (m Metric) hasFirstLabel(first Label) bool {
	return len(m.Labels) > 0 && m.Labels[0].Name == first.Name
}

// namePrefix starts every metric name.
const namePrefix = "tunnel_gateway_"

func counter(name, unit, help string, labels ...Label) Metric {
	return Metric{Name: namePrefix + name, Type: Counter, Unit: unit, Labels: labels, Help: help}
}

func histogram(name, help string, buckets []float64, labels ...Label) Metric {
	return Metric{Name: namePrefix + name, Type: Histogram, Unit: "seconds", Labels: labels, Help: help, Buckets: buckets}
}

// gatewayCounter defines a counter that has the Gateway labels and additional labels.
func gatewayCounter(name, unit, help string, labels ...Label) Metric {
	return counter(name, unit, help, append([]Label{labelNamespace, labelGateway}, labels...)...)
}

// gauge defines a gauge that has the Gateway labels and additional labels.
func gauge(name, unit, help string, labels ...Label) Metric {
	m := gatewayCounter(name, unit, help, labels...)
	m.Type = Gauge
	return m
}

// Counters, histograms and account gauges; [gatewayGauges] defines the Gateway gauges.
// The 330-second bucket includes waits for a rate limit, because Cloudflare blocks
// requests for five minutes.
var (
	providerCalls = counter("provider_calls_total", "calls",
		"Provider calls. Each call makes one or more Cloudflare API requests, including retries.",
		labelAccount, labelOperation, labelResult)
	callDuration = histogram("provider_call_duration_seconds",
		"How long provider calls take, including waits and retries. Excludes calls with the result rate_limited or deferred.",
		[]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, labelAccount, labelOperation)
	budgetWait = histogram("rate_budget_wait_seconds",
		"Time that calls wait for the API request budget.",
		[]float64{0.1, 0.5, 1, 2, 5, 15, 60, 120, 330, 900}, labelAccount, labelPriority, labelWait)
	changeToPush = histogram("change_to_push_seconds",
		"Time from when the controller first observes a changed object until the change is pushed, including failed attempts and waits.",
		[]float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 330, 600, 1800, 3600})
	pushes = gatewayCounter("pushes_total", "configurations",
		"Configurations written to the Gateway's tunnel. At each write, the connectors drop their connections to the backends.")
	pushedBytes = gatewayCounter("pushed_bytes_total", "bytes",
		"JSON bytes in the configurations written to the Gateway's tunnel, without fields that the controller does not manage.")
	configurationChanges = gatewayCounter("configuration_changes_total", "writes",
		"Writes to the tunnel's configuration, including failed writes, to which changed objects in the namespace contributed. The first write after the controller starts can be missing.",
		labelSourceNamespace)
	driftRepairs = gatewayCounter("drift_repairs_total", "repairs",
		"External changes to the tunnel's configuration that the controller reverted.")
	driftFights = gatewayCounter("drift_fights_total", "occurrences",
		"How often the controller stopped writing the tunnel's configuration because of repeated external changes.")
	reconcileErrors = gatewayCounter("reconcile_errors_total", "errors",
		"Failed steps in the Gateway's reconciles.", labelReason)
	accountTunnels = accountGauge("account_tunnels", "tunnels",
		"All tunnels in the account at the last inventory. An account can have at most 1,000 tunnels.")
	orphanedTunnels = accountGauge("orphaned_tunnels", "tunnels",
		"Tunnels from this installation that had no Tunnel object in the last two inventories.")
)

// Metrics about Envoys and the xDS server. The buckets reach 60 seconds, after which the
// server ends a stream.
var (
	connectedEnvoys = gauge("connected_envoys", "Envoys",
		"Envoys beside the Gateway's connectors that have a stream to the controller. Absent if no Envoy has connected and the controller has no configuration for them.")
	xdsPushes = gatewayCounter("xds_pushes_total", "responses",
		"Responses with changed or removed resources that the controller sent to one of the Gateway's Envoys.", labelXDSResources)
	xdsRejections = gatewayCounter("xds_rejections_total", "responses",
		"Responses that one of the Gateway's Envoys rejected. A rejection is a bug in the controller.", labelXDSResources)
	xdsAcknowledgement = histogram("xds_acknowledgement_seconds",
		"Time from sending resources to an Envoy until it has acknowledged them. Excludes rejections.",
		[]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}, labelXDSResources)
	certificateExpiry = Metric{Name: namePrefix + "xds_certificate_expiry_timestamp_seconds", Type: Gauge, Unit: "seconds", Labels: []Label{labelCertificate},
		Help: "Unix time at which a certificate expires. The controller and the Envoys authenticate each other with these certificates. Absent without Envoys."}
)

// accountGauge defines a gauge that has the account label.
func accountGauge(name, unit, help string) Metric {
	return Metric{Name: namePrefix + name, Type: Gauge, Unit: unit, Labels: []Label{labelAccount}, Help: help}
}

// All defines all metrics, in the order in which docs/metrics.md lists them.
var All = append(gauges(),
	changeToPush, pushes, pushedBytes, configurationChanges, driftRepairs, driftFights, reconcileErrors, accountTunnels, orphanedTunnels, providerCalls, callDuration, budgetWait,
	connectedEnvoys, xdsPushes, xdsRejections, xdsAcknowledgement, certificateExpiry,
	dnsRecords, dnsChanges, dnsZoneRecords, dnsZoneQuota, dnsLastRead, dnsForbidden,
	accessHostnames, accessChanges, accessApplications, accessAccountApplications, accessOrphans, accessWaiting, accessLastRead, accessForbidden)

// Metrics records the controller's metrics. Its methods are safe for concurrent use, but
// calls for the same Gateway must not overlap.
type Metrics struct {
	calls                                  *prometheus.CounterVec
	callDuration, budgetWait, changeToPush *prometheus.HistogramVec
	pushes, pushedBytes                    *prometheus.CounterVec
	configurationChanges                   *prometheus.CounterVec
	driftRepairs, driftFights, errors      *prometheus.CounterVec
	accountTunnels, orphanedTunnels        *prometheus.GaugeVec
	xdsPushes, xdsRejections               *prometheus.CounterVec
	xdsAcknowledgement                     *prometheus.HistogramVec
	connectedEnvoys, certificateExpiry     *prometheus.GaugeVec
	dns                                    dnsVectors
	access                                 accessVectors

	vectors   []vector
	collector *gatewayCollector
}

// vector creates and deletes the series that a counter or histogram exports.
type vector struct {
	Metric
	create         func(values ...string)
	deleteMatching func(prometheus.Labels) int
}

// New registers the metrics. It panics if they are already registered.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{collector: &gatewayCollector{gateways: map[types.NamespacedName]*Gateway{}, oldestChanges: map[types.NamespacedName]time.Time{}, missing: map[types.NamespacedName]time.Time{}, unwritten: map[types.NamespacedName]int{}, sources: map[types.NamespacedName]map[string]bool{}}}
	m.calls, m.callDuration, m.budgetWait = m.counter(registry, providerCalls), m.histogram(registry, callDuration), m.histogram(registry, budgetWait)
	m.changeToPush = m.histogram(registry, changeToPush)
	m.pushes, m.pushedBytes = m.counter(registry, pushes), m.counter(registry, pushedBytes)
	m.configurationChanges = m.counter(registry, configurationChanges)
	m.driftRepairs, m.driftFights = m.counter(registry, driftRepairs), m.counter(registry, driftFights)
	m.errors = m.counter(registry, reconcileErrors)
	m.accountTunnels, m.orphanedTunnels = gaugeVec(registry, accountTunnels), gaugeVec(registry, orphanedTunnels)
	m.xdsPushes, m.xdsRejections, m.xdsAcknowledgement = m.counter(registry, xdsPushes), m.counter(registry, xdsRejections), m.histogram(registry, xdsAcknowledgement)
	m.connectedEnvoys, m.certificateExpiry = gaugeVec(registry, connectedEnvoys), gaugeVec(registry, certificateExpiry)
	m.dns, m.access = m.newDNSVectors(registry), m.newAccessVectors(registry)
	registry.MustRegister(m.collector)
	m.changeToPush.WithLabelValues()
	return m
}

// counter registers a counter.
func (m *Metrics) counter(registry prometheus.Registerer, d Metric) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	registry.MustRegister(v)
	m.vectors = append(m.vectors, vector{d, func(values ...string) { v.WithLabelValues(values...) }, v.DeletePartialMatch})
	return v
}

// gaugeVec registers a gauge.
func gaugeVec(registry prometheus.Registerer, d Metric) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	registry.MustRegister(v)
	return v
}

// SetAccount sets how many tunnels an account has, and how many of them are orphaned
// tunnels from this installation.
func (m *Metrics) SetAccount(account string, tunnels, orphans int) {
	m.accountTunnels.WithLabelValues(account).Set(float64(tunnels))
	m.orphanedTunnels.WithLabelValues(account).Set(float64(orphans))
}

// DeleteAccount deletes the metrics about an account that the controller no longer uses.
func (m *Metrics) DeleteAccount(account string) {
	m.accountTunnels.DeleteLabelValues(account)
	m.orphanedTunnels.DeleteLabelValues(account)
}

// histogram registers a histogram.
func (m *Metrics) histogram(registry prometheus.Registerer, d Metric) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.LabelNames())
	registry.MustRegister(v)
	m.vectors = append(m.vectors, vector{d, func(values ...string) { v.WithLabelValues(values...) }, v.DeletePartialMatch})
	return v
}

// createAll creates all series whose first labels have the given values, with every
// possible value for the other labels. Prometheus detects a counter's first increment
// only if the series existed before with the value zero.
func (c vector) createAll(values ...string) {
	if len(values) == len(c.Labels) {
		c.create(values...)
		return
	}
	for _, next := range c.Labels[len(values)].Values {
		c.createAll(append(values[:len(values):len(values)], next.Name)...)
	}
}
