//go:build race

package controller

// gatewaysPerRound is smaller with the race detector, which makes the test ten times as slow.
const gatewaysPerRound = 25
