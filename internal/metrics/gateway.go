package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Gateway is how a Gateway stands after a pass, as its statuses say.
type Gateway struct {
	Programmed bool
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
	Ready             bool
	Wanted, Available int
}

// Stands records how the Gateway stands.
func (m *Metrics) Stands(name types.NamespacedName, g Gateway) {
	m.know(name)
	set(m.programmed, name, truth(g.Programmed))
	if g.Rules != nil {
		set(m.rules, name, float64(*g.Rules))
	}
	tally(m.listeners, name, labelListenerState, g.Listeners)
	tally(m.listenerSets, name, labelSetState, g.ListenerSets)
	tally(m.routes, name, labelRouteState, g.Routes)
	gauges := []*prometheus.GaugeVec{m.connectors.ready, m.connectors.wanted, m.connectors.available}
	if g.Connectors == nil {
		for _, gauge := range gauges {
			gauge.DeleteLabelValues(name.Namespace, name.Name)
		}
		return
	}
	for i, value := range []float64{truth(g.Connectors.Ready), float64(g.Connectors.Wanted), float64(g.Connectors.Available)} {
		set(gauges[i], name, value)
	}
}

// Pushed records a document of so many bytes that was written to the Gateway's
// tunnel.
func (m *Metrics) Pushed(name types.NamespacedName, bytes int) {
	m.know(name)
	m.pushes.WithLabelValues(name.Namespace, name.Name).Inc()
	m.pushedBytes.WithLabelValues(name.Namespace, name.Name).Add(float64(bytes))
}

// CarriedOut records how long it took from a change to the push that carried it
// out.
func (m *Metrics) CarriedOut(took time.Duration) { m.changeToPush.Observe(took.Seconds()) }

// Repaired records that somebody else's change of the tunnel's document was put
// right.
func (m *Metrics) Repaired(name types.NamespacedName) {
	m.know(name)
	m.driftRepairs.WithLabelValues(name.Namespace, name.Name).Inc()
}

// Fought records that the controller stopped writing a document that somebody
// else keeps changing.
func (m *Metrics) Fought(name types.NamespacedName) {
	m.know(name)
	m.driftFights.WithLabelValues(name.Namespace, name.Name).Inc()
}

// Failed records what a pass failed at.
func (m *Metrics) Failed(name types.NamespacedName, kind ErrorKind) {
	m.know(name)
	m.errors.WithLabelValues(name.Namespace, name.Name, string(kind)).Inc()
}

// Forget takes away the series of a Gateway that is gone. For one that has none
// it costs nothing.
func (m *Metrics) Forget(name types.NamespacedName) {
	m.mu.Lock()
	known := m.known[name]
	delete(m.known, name)
	m.mu.Unlock()
	if !known {
		return
	}
	for _, s := range m.ofGateways {
		s.DeletePartialMatch(prometheus.Labels{labelNamespace.Name: name.Namespace, labelGateway.Name: name.Name})
	}
}

// know begins the counters of a Gateway at zero: only then the first event shows
// as a rise.
func (m *Metrics) know(name types.NamespacedName) {
	m.mu.Lock()
	known := m.known[name]
	m.known[name] = true
	m.mu.Unlock()
	if known {
		return
	}
	for _, counter := range []*prometheus.CounterVec{m.pushes, m.pushedBytes, m.driftRepairs, m.driftFights} {
		counter.WithLabelValues(name.Namespace, name.Name)
	}
	for _, kind := range labelErrorKind.Values {
		m.errors.WithLabelValues(name.Namespace, name.Name, kind.Name)
	}
}

func set(gauge *prometheus.GaugeVec, name types.NamespacedName, value float64) {
	gauge.WithLabelValues(name.Namespace, name.Name).Set(value)
}

// tally sets every state of the label, so that none keeps what was there before.
func tally[S ~string](gauge *prometheus.GaugeVec, name types.NamespacedName, states Label, counts map[S]int) {
	for _, state := range states.Values {
		gauge.WithLabelValues(name.Namespace, name.Name, state.Name).Set(float64(counts[S(state.Name)]))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
