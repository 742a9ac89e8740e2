//go:build !race

package tunnel

const fewerFaults = 0
