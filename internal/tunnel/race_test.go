//go:build race

package tunnel

// fewerFaults is how many faults and changes a trace has less under the race
// detector, which takes five times as long and finds nothing in a single
// goroutine. `make test` runs the exploration without it as well.
const fewerFaults = 1
