// Package conformance runs the Gateway API's official conformance suite,
// unmodified, against the real controller on the real control plane of
// test/cluster, whose pods are processes, with the simulator of test/edge in
// Cloudflare's place.
//
// TestConformance runs the suite in a process of its own and judges what comes
// out by exceptions.yaml, the one list of tests that are not expected to pass.
// What is known of the suite, its names and its hostnames, is known here and
// nowhere else in the repository.
package conformance
