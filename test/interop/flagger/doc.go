// Package flagger tests Flagger and this controller together, on a real control plane and
// with the real Envoy. Flagger changes the weights in HTTPRoutes, while visitors send
// requests through the simulated Cloudflare edge.
//
// The tests verify what docs/guides/canary-and-blue-green.md says about Flagger, with the
// guide's samples. The real Prometheus scrapes the Envoys. It also evaluates the queries in
// the samples for Argo Rollouts and KEDA, which do not run.
//
// The package is a separate module, which keeps its dependencies out of the product's
// go.mod.
package flagger
