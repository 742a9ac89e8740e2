// Package metrics tests the chart's dashboard and alerts with Prometheus' parser and
// query engine. A query fails a test if it names a metric or a label that the controller
// does not export, or if it returns no data although the metric has a value.
//
// One test scrapes a real controller, to which it connects like an Envoy. Others send
// requests through a real Envoy, and compare the panels and alerts about traffic with
// them. The controller's own tests cover when it records the other metrics.
package metrics
