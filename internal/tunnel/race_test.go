//go:build race

package tunnel

// fewerFaults is the reduction of the number of faults and changes in a trace under the race
// detector: the exploration takes five times as long there and uses a single goroutine.
// `make test` also runs the exploration without the race detector.
const fewerFaults = 1
