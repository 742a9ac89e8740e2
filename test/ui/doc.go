// Package ui tests the page that `tunnel-gateway ui` serves, in Chromium: against the demo, as
// a user with the demo's kubeconfig sees it, and with manifests. It also takes the
// screenshots for the documentation.
package ui
