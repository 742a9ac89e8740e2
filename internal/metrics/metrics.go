// Package metrics is what the controller tells Prometheus. Every metric is
// defined in one list, with its labels, and docs/metrics.md is made from it. A
// provider is metered by a decorator ([Metrics.Meter]); what concerns Gateways is
// handed over after every pass over one ([Metrics.SetGateway] and its siblings).
//
// When something is recorded is decided by whoever calls; nothing here reads an
// object or logs.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

//go:generate go run ../../test/metrictable

// Type is the kind of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is the definition of a metric.
type Metric struct {
	Name string
	Type Type
	// Unit is what a value of 1 stands for.
	Unit   string
	Labels []Label
	Help   string
	// Buckets are the upper bounds of a histogram's buckets.
	Buckets []float64
}

// LabelNames returns the names of the labels in their order.
func (m Metric) LabelNames() []string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = label.Name
	}
	return names
}

// hasFirstLabel reports whether there are series for each of those that the label names.
func (m Metric) hasFirstLabel(first Label) bool {
	return len(m.Labels) > 0 && m.Labels[0].Name == first.Name
}

// namePrefix begins every name.
const namePrefix = "tunnel_gateway_"

func counter(name, unit, help string, labels ...Label) Metric {
	return Metric{Name: namePrefix + name, Type: Counter, Unit: unit, Labels: labels, Help: help}
}

func histogram(name, help string, buckets []float64, labels ...Label) Metric {
	return Metric{Name: namePrefix + name, Type: Histogram, Unit: "seconds", Labels: labels, Help: help, Buckets: buckets}
}

// gatewayCounter defines a counter of a Gateway, with labels besides its name.
func gatewayCounter(name, unit, help string, labels ...Label) Metric {
	return counter(name, unit, help, append([]Label{labelNamespace, labelGateway}, labels...)...)
}

// gauge defines a gauge of a Gateway, with labels besides its name.
func gauge(name, unit, help string, labels ...Label) Metric {
	m := gatewayCounter(name, unit, help, labels...)
	m.Type = Gauge
	return m
}

// The definitions of what is counted. Cloudflare blocks a user for five minutes, and
// what waited for that is below 330 seconds; [gatewayGauges] has those of the gauges.
var (
	providerCalls = counter("provider_calls_total", "calls",
		"Calls of the provider; each takes one request to Cloudflare's API or a few, retries included.",
		labelAccount, labelOperation, labelResult)
	callDuration = histogram("provider_call_duration_seconds",
		"How long calls of the provider took, with their waits and retries and whatever came of them. Without those that were turned away: rate_limited and deferred.",
		[]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, labelAccount, labelOperation)
	budgetWait = histogram("rate_budget_wait_seconds",
		"Waits for a share of the API token's budget of requests.",
		[]float64{0.1, 0.5, 1, 2, 5, 15, 60, 120, 330, 900}, labelAccount, labelPriority, labelWait)
	changeToPush = histogram("change_to_push_seconds",
		"Time from the first change of an object that the controller saw to the end of the push that carried it out, failed attempts and waits included.",
		[]float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 330, 600, 1800, 3600})
	pushes = gatewayCounter("pushes_total", "documents",
		"Configurations that were written to the Gateway's tunnel. Every one makes its connectors drop their connections to the backends.")
	pushedBytes = gatewayCounter("pushed_bytes_total", "bytes",
		"Size, as JSON, of the configurations that were written to the Gateway's tunnel, without fields that are not the controller's.")
	driftRepairs = gatewayCounter("drift_repairs_total", "repairs",
		"Changes of the tunnel's configuration by somebody else that were put right.")
	driftFights = gatewayCounter("drift_fights_total", "fights",
		"How often the controller stopped writing because somebody else kept changing the tunnel's configuration.")
	reconcileErrors = gatewayCounter("reconcile_errors_total", "errors",
		"Steps that failed while the Gateway was reconciled.", labelReason)
	accountTunnels = accountGauge("account_tunnels", "tunnels",
		"Tunnels of the account at the last inventory, whoever created them. An account has 1,000 at most.")
	orphanedTunnels = accountGauge("orphaned_tunnels", "tunnels",
		"Tunnels of this installation that no Tunnel object records, in the last two inventories.")
)

// accountGauge defines a gauge of an account.
func accountGauge(name, unit, help string) Metric {
	return Metric{Name: namePrefix + name, Type: Gauge, Unit: unit, Labels: []Label{labelAccount}, Help: help}
}

// All are the metrics, in the order of their documentation.
var All = append(gauges(),
	changeToPush, pushes, pushedBytes, driftRepairs, driftFights, reconcileErrors, accountTunnels, orphanedTunnels, providerCalls, callDuration, budgetWait)

// Metrics records. It may be used from several goroutines at once, but what is
// said of one Gateway has to be said by one after the other.
type Metrics struct {
	calls                                  *prometheus.CounterVec
	callDuration, budgetWait, changeToPush *prometheus.HistogramVec
	pushes, pushedBytes                    *prometheus.CounterVec
	driftRepairs, driftFights, errors      *prometheus.CounterVec
	accountTunnels, orphanedTunnels        *prometheus.GaugeVec

	vectors   []vector
	collector *gatewayCollector
}

// vector are the series of a metric that is not a gauge.
type vector struct {
	Metric
	create         func(values ...string)
	deleteMatching func(prometheus.Labels) int
}

// New registers the metrics. It panics when they are registered already.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{collector: &gatewayCollector{gateways: map[types.NamespacedName]*Gateway{}, oldestChanges: map[types.NamespacedName]time.Time{}, missing: map[types.NamespacedName]time.Time{}}}
	m.calls, m.callDuration, m.budgetWait = m.counter(registry, providerCalls), m.histogram(registry, callDuration), m.histogram(registry, budgetWait)
	m.changeToPush = m.histogram(registry, changeToPush)
	m.pushes, m.pushedBytes = m.counter(registry, pushes), m.counter(registry, pushedBytes)
	m.driftRepairs, m.driftFights = m.counter(registry, driftRepairs), m.counter(registry, driftFights)
	m.errors = m.counter(registry, reconcileErrors)
	m.accountTunnels, m.orphanedTunnels = accountVec(registry, accountTunnels), accountVec(registry, orphanedTunnels)
	registry.MustRegister(m.collector)
	m.changeToPush.WithLabelValues()
	return m
}

func (m *Metrics) counter(registry prometheus.Registerer, d Metric) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	registry.MustRegister(v)
	m.vectors = append(m.vectors, vector{d, func(values ...string) { v.WithLabelValues(values...) }, v.DeletePartialMatch})
	return v
}

func accountVec(registry prometheus.Registerer, d Metric) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	registry.MustRegister(v)
	return v
}

// SetAccount records how many tunnels an account has, and how many of them are
// orphans of this installation.
func (m *Metrics) SetAccount(account string, tunnels, orphans int) {
	m.accountTunnels.WithLabelValues(account).Set(float64(tunnels))
	m.orphanedTunnels.WithLabelValues(account).Set(float64(orphans))
}

func (m *Metrics) histogram(registry prometheus.Registerer, d Metric) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.LabelNames())
	registry.MustRegister(v)
	m.vectors = append(m.vectors, vector{d, func(values ...string) { v.WithLabelValues(values...) }, v.DeletePartialMatch})
	return v
}

// createAll makes the series whose first labels have the values, with all that
// the others can have: what is counted for the first time is seen as a rise only
// if there was a zero before.
func (c vector) createAll(values ...string) {
	if len(values) == len(c.Labels) {
		c.create(values...)
		return
	}
	for _, next := range c.Labels[len(values)].Values {
		c.createAll(append(values[:len(values):len(values)], next.Name)...)
	}
}
