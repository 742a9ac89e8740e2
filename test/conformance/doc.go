// Package conformance runs the unmodified official conformance suite of the
// Gateway API against the controller. The control plane of test/cluster is real,
// its pods run as processes, and the simulator of test/edge replaces Cloudflare.
//
// TestConformance runs the suite in a separate process and compares the results
// with exceptions.yaml, the list of tests that are not expected to pass. No other
// package of the repository depends on the names or hostnames of the suite.
package conformance
