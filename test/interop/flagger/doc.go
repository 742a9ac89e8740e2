// Package flagger tests Flagger and this controller together, on a real control plane and
// with the real Envoy. Flagger changes the weights of HTTPRoutes, while visitors send
// requests through the simulated edge of Cloudflare.
//
// The tests verify the statements about Flagger in docs/guides/canary-and-blue-green.md,
// with the samples of the guide. Webhooks replace metrics, so that no Prometheus runs.
//
// The package is a separate module, which keeps its dependencies out of the product's
// go.mod.
package flagger
