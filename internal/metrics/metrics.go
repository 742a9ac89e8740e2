// Package metrics is what the controller tells Prometheus. Every metric is
// defined in one list, with its labels, and docs/metrics.md is made from it. A
// provider is metered by a decorator ([Metrics.Meter]); what concerns Gateways is
// handed over after every pass over one ([Metrics.Stands] and its siblings).
//
// When something is recorded is decided by whoever calls; nothing here reads an
// object or logs.
package metrics

import (
	"sync"

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

func (m Metric) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.LabelNames())
}

func (m Metric) gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.LabelNames())
}

func (m Metric) histogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.LabelNames())
}

var ofGateway = []Label{labelNamespace, labelGateway}

// by adds a label to those of the Gateway.
func by(label Label) []Label { return []Label{labelNamespace, labelGateway, label} }

// The definitions.
var (
	providerCalls = Metric{
		Name: "tunnel_gateway_provider_calls_total", Type: Counter, Unit: "calls", Labels: []Label{labelOperation, labelResult},
		Help: "Calls of the provider; each takes one request to Cloudflare's API or a few, retries included.",
	}
	callDuration = Metric{
		Name: "tunnel_gateway_provider_call_duration_seconds", Type: Histogram, Unit: "seconds", Labels: []Label{labelOperation},
		Help:    "How long calls of the provider took, with their waits and retries and whatever came of them.",
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}
	budgetWait = Metric{
		Name: "tunnel_gateway_rate_budget_wait_seconds", Type: Histogram, Unit: "seconds", Labels: []Label{labelPriority, labelWait},
		Help:    "Waits for a share of the API token's budget of requests.",
		Buckets: []float64{0.1, 0.5, 1, 2, 5, 15, 60, 300, 900},
	}
	changeToPush = Metric{
		Name: "tunnel_gateway_change_to_push_seconds", Type: Histogram, Unit: "seconds",
		Help:    "Time from the first change of an object that the controller saw to the end of the push that carried it out, failed attempts and waits included.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	}
	pushes = Metric{
		Name: "tunnel_gateway_pushes_total", Type: Counter, Unit: "documents", Labels: ofGateway,
		Help: "Configurations that were written to the Gateway's tunnel. Every one makes its connectors drop their connections to the backends.",
	}
	pushedBytes = Metric{
		Name: "tunnel_gateway_pushed_bytes_total", Type: Counter, Unit: "bytes", Labels: ofGateway,
		Help: "Size, as JSON, of the configurations that were written to the Gateway's tunnel, without fields that are not the controller's.",
	}
	driftRepairs = Metric{
		Name: "tunnel_gateway_drift_repairs_total", Type: Counter, Unit: "repairs", Labels: ofGateway,
		Help: "Changes of the tunnel's configuration by somebody else that were put right.",
	}
	driftFights = Metric{
		Name: "tunnel_gateway_drift_fights_total", Type: Counter, Unit: "fights", Labels: ofGateway,
		Help: "How often the controller stopped writing because somebody else kept changing the tunnel's configuration.",
	}
	reconcileErrors = Metric{
		Name: "tunnel_gateway_reconcile_errors_total", Type: Counter, Unit: "errors", Labels: by(labelErrorKind),
		Help: "What passes over the Gateway failed at. A fault that only a person can mend is counted at every pass.",
	}
	programmed = Metric{
		Name: "tunnel_gateway_gateway_programmed", Type: Gauge, Unit: "1 or 0", Labels: ofGateway,
		Help: "Whether the Gateway's condition Programmed is true.",
	}
	rules = Metric{
		Name: "tunnel_gateway_rules", Type: Gauge, Unit: "rules", Labels: ofGateway,
		Help: "Ingress rules of the configuration that the Gateway's tunnel holds, as it was last written or read.",
	}
	listeners = Metric{
		Name: "tunnel_gateway_listeners", Type: Gauge, Unit: "listeners", Labels: by(labelListenerState),
		Help: "Listeners of the Gateway and of the ListenerSets that point to it.",
	}
	listenerSets = Metric{
		Name: "tunnel_gateway_listener_sets", Type: Gauge, Unit: "ListenerSets", Labels: by(labelSetState),
		Help: "ListenerSets that point to the Gateway.",
	}
	routes = Metric{
		Name: "tunnel_gateway_routes", Type: Gauge, Unit: "routes", Labels: by(labelRouteState),
		Help: "HTTPRoutes and GRPCRoutes that point to the Gateway or to its ListenerSets.",
	}
	connectorsWanted = Metric{
		Name: "tunnel_gateway_connectors_wanted", Type: Gauge, Unit: "connectors", Labels: ofGateway,
		Help: "Replicas that the Deployment of the Gateway's connectors asks for, at least 1 while there is none. Absent where the controller runs none.",
	}
	connectorsAvailable = Metric{
		Name: "tunnel_gateway_connectors_available", Type: Gauge, Unit: "connectors", Labels: ofGateway,
		Help: "Connectors of the Gateway that are connected to Cloudflare's edge. Absent where the controller runs none.",
	}
	connectorsReady = Metric{
		Name: "tunnel_gateway_connectors_ready", Type: Gauge, Unit: "1 or 0", Labels: ofGateway,
		Help: "Whether the Gateway's condition tunnelgateway.dev/ConnectorsReady is true. Absent where the controller runs none.",
	}
)

// All are the metrics, in the order of their documentation.
var All = []Metric{
	programmed, rules, listeners, listenerSets, routes,
	changeToPush, pushes, pushedBytes, driftRepairs, driftFights, reconcileErrors,
	connectorsReady, connectorsWanted, connectorsAvailable,
	providerCalls, callDuration, budgetWait,
}

// Metrics records. It may be used from several goroutines at once, but what is
// said of one Gateway has to be said by one after the other.
type Metrics struct {
	calls                             *prometheus.CounterVec
	callDuration, budgetWait          *prometheus.HistogramVec
	changeToPush                      prometheus.Observer
	pushes, pushedBytes               *prometheus.CounterVec
	driftRepairs, driftFights, errors *prometheus.CounterVec
	programmed, rules                 *prometheus.GaugeVec
	listeners, listenerSets, routes   *prometheus.GaugeVec
	connectors                        connectorGauges

	ofGateways []series

	mu sync.Mutex
	// known are the Gateways that have series.
	known map[types.NamespacedName]bool
}

type connectorGauges struct{ ready, wanted, available *prometheus.GaugeVec }

// series are those of one metric.
type series interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

// New registers the metrics. It panics when they are registered already.
func New(registry prometheus.Registerer) *Metrics {
	sinceChange := changeToPush.histogram()
	m := &Metrics{
		calls: providerCalls.counter(), callDuration: callDuration.histogram(), budgetWait: budgetWait.histogram(),
		changeToPush: sinceChange.WithLabelValues(),
		pushes:       pushes.counter(), pushedBytes: pushedBytes.counter(),
		driftRepairs: driftRepairs.counter(), driftFights: driftFights.counter(), errors: reconcileErrors.counter(),
		programmed: programmed.gauge(), rules: rules.gauge(),
		listeners: listeners.gauge(), listenerSets: listenerSets.gauge(), routes: routes.gauge(),
		connectors: connectorGauges{ready: connectorsReady.gauge(), wanted: connectorsWanted.gauge(), available: connectorsAvailable.gauge()},
		known:      map[types.NamespacedName]bool{},
	}
	m.ofGateways = []series{
		m.pushes, m.pushedBytes, m.driftRepairs, m.driftFights, m.errors, m.programmed, m.rules,
		m.listeners, m.listenerSets, m.routes, m.connectors.ready, m.connectors.wanted, m.connectors.available,
	}
	registry.MustRegister(m.calls, m.callDuration, m.budgetWait, sinceChange)
	for _, s := range m.ofGateways {
		registry.MustRegister(s)
	}
	m.begin()
	return m
}

// begin makes the series that do not depend on a Gateway: what is counted for
// the first time is seen as a rise only if there was a zero before.
func (m *Metrics) begin() {
	for _, operation := range labelOperation.Values {
		m.callDuration.WithLabelValues(operation.Name)
		for _, result := range labelResult.Values {
			m.calls.WithLabelValues(operation.Name, result.Name)
		}
	}
	for _, priority := range labelPriority.Values {
		for _, wait := range labelWait.Values {
			m.budgetWait.WithLabelValues(priority.Name, wait.Name)
		}
	}
}
