//go:build !race

package access

// fewerFaults is documented in race_test.go.
const fewerFaults = 0
