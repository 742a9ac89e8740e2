// Package chart tests the Helm chart with Helm and a real API server: the objects that
// the chart renders and installs, the values that it rejects, and whether the controller
// needs exactly the permissions that the chart grants. One test runs the chart's pods and
// the connector pods, with the real Envoy. It also checks that the files generated from
// the chart are up to date: the chart's README and the kustomize base in config.
//
// The package is a separate module, which keeps Helm's dependencies out of the
// controller's go.mod. It contains only tests.
package chart
