// Package conformance runs the unmodified official Gateway API conformance suite against
// the controller. The control plane from test/cluster is real, its pods run as processes,
// and the simulator in test/edge replaces Cloudflare.
//
// TestConformance runs the suite in a separate process and compares the results with
// exceptions.yaml, the list of tests that are not expected to pass. No other package in
// the repository depends on the names or hostnames in the suite.
package conformance
