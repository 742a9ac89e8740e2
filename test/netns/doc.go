// Package netns runs a test binary in a new network namespace, in which every Pod and
// Service address belongs to this machine. A program that connects to such an address,
// for example Envoy, then needs no dialer from the tests: package node listens on the
// addresses.
//
// The namespace has only the loopback interface. A test binary must therefore download
// what it needs before it enters the namespace.
package netns
