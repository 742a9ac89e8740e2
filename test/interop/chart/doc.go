// Package chart tests the Helm chart with Helm itself, and with a real API
// server: what the chart renders, refuses and installs; that the controller
// runs with exactly the permissions that it grants; and that what is made from
// it, its README and the kustomize base in config, is up to date.
//
// It is a module of its own, so that what Helm depends on stays out of the
// controller's go.mod. Only tests belong here.
package chart
