package top

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// By determines how requests are grouped into rows.
type By string

// Values for By.
const (
	ByRoute     By = "route"
	ByBackend   By = "backend"
	ByHostname  By = "hostname"
	ByNamespace By = "namespace"
	ByGateway   By = "gateway"
)

// Other is the name for requests without the label: requests to rules above maxPairs, and
// requests that match no route.
const Other = "(other)"

// Measurement describes the requests between two readings.
type Measurement struct {
	Time time.Time `json:"time"`
	// Seconds is the longest time between a connector's two readings.
	Seconds float64 `json:"seconds"`
	By      By      `json:"by"`
	// Connectors are the measured pods.
	Connectors int `json:"connectors"`
	// RequestsPerSecond is the sum over all rows.
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	// Rows begin with the most requests.
	Rows []Row `json:"rows"`
	// Omitted are the rows that a limit removed.
	Omitted int `json:"omitted,omitempty"`
	// Problems say what is missing and why.
	Problems []string `json:"problems,omitempty"`
}

// Row describes a Gateway's requests for one route, backend, hostname or namespace.
type Row struct {
	// Gateway has the form namespace/name.
	Gateway string `json:"gateway"`
	// Name is empty by Gateway.
	Name string `json:"name,omitempty"`
	// Requests counts the requests between the two readings of each connector.
	Requests          float64 `json:"requests"`
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	// ErrorRatio is the share of the requests that failed, or nil without requests.
	ErrorRatio *float64  `json:"errorRatio,omitempty"`
	P50        *Quantile `json:"p50,omitempty"`
	P99        *Quantile `json:"p99,omitempty"`
}

// sums are a row's requests.
type sums struct {
	perSecond, requests, errors float64
	buckets                     map[float64]float64
}

// key identifies a row.
type key struct{ gateway, name string }

// measurement adds up all connectors' requests.
type measurement struct {
	by By
	// namespace selects the routes in one namespace, unless it is empty.
	namespace string
	rows      map[key]*sums
}

// add adds a connector's requests between two scrapes.
func (m *measurement) add(gateway string, before, after scrape) {
	old, current := before.routes, after.routes
	if m.by == ByGateway {
		old, current = before.listeners, after.listeners
	}
	seconds := after.at.Sub(before.at).Seconds()
	for id, c := range current.requests {
		row := m.row(gateway, c.labels)
		if row == nil {
			continue
		}
		grown := increase(old.requests[id].value, c.value)
		row.requests += grown
		row.perSecond += grown / seconds
		if failed(c.labels) {
			row.errors += grown
		}
	}
	for id, h := range current.durations {
		row := m.row(gateway, h.labels)
		if row == nil {
			continue
		}
		for bound, count := range increaseOf(old.durations[id].buckets, h.buckets) {
			row.buckets[bound] += count
		}
	}
}

// row returns the row for a series, or nil if the namespace excludes it.
func (m *measurement) row(gateway string, labels map[string]string) *sums {
	k := key{gateway: gateway}
	if m.by != ByGateway {
		if m.namespace != "" && labels[labelNamespace] != m.namespace {
			return nil
		}
		k.name = m.by.name(labels)
	}
	row := m.rows[k]
	if row == nil {
		row = &sums{buckets: map[float64]float64{}}
		m.rows[k] = row
	}
	return row
}

// name returns the row's name for a series.
func (b By) name(labels map[string]string) string {
	name := ""
	switch b {
	case ByRoute:
		if labels[labelRoute] != "" {
			name = labels[labelKind] + " " + types.NamespacedName{Namespace: labels[labelNamespace], Name: labels[labelRoute]}.String()
		}
	case ByBackend:
		name = labels[labelBackend]
	case ByHostname:
		name = labels[labelHostname]
	case ByNamespace:
		name = labels[labelNamespace]
	case ByGateway:
	}
	return cmp.Or(name, Other)
}

// sorted returns the rows, those with the most requests first.
func (m *measurement) sorted() []Row {
	rows := make([]Row, 0, len(m.rows))
	for k, s := range m.rows {
		row := Row{
			Gateway: k.gateway, Name: k.name, Requests: s.requests, RequestsPerSecond: s.perSecond,
			P50: quantile(0.5, s.buckets), P99: quantile(0.99, s.buckets),
		}
		if s.requests > 0 {
			row.ErrorRatio = new(s.errors / s.requests)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.RequestsPerSecond, a.RequestsPerSecond), cmp.Compare(a.Gateway, b.Gateway), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// Limit removes all rows but the first n, unless n is 0.
func (m *Measurement) Limit(n int) {
	if n > 0 && len(m.Rows) > n {
		m.Omitted += len(m.Rows) - n
		m.Rows = m.Rows[:n]
	}
}
