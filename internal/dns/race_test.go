//go:build race

package dns

// FewerFaults is by how many faults and changes a trace is shorter under the race
// detector: the exploration takes five times as long there and uses a single goroutine.
// `make test` also runs the exploration without the race detector.
const FewerFaults = 1
