//go:build race

package controller

// gatewaysPerRound is smaller with the race detector, which slows the test down.
const gatewaysPerRound = 25
