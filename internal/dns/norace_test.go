//go:build !race

package dns

// FewerFaults is documented in race_test.go.
const FewerFaults = 0
