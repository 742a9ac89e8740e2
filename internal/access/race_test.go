//go:build race

package access

// fewerFaults is by how many faults and changes a trace is shorter under the race detector:
// the exploration takes five times as long there and uses a single goroutine. `make test`
// also runs the exploration without the race detector.
const fewerFaults = 1
