// Package metrics holds the dashboard and the alerts of the chart against the
// metrics of the controller, with Prometheus' own parser and engine: a query that
// names what is not exported, or finds nothing where there is something, fails.
//
// What the metrics mean, and when they are recorded, is tested elsewhere.
package metrics
