//go:build !race

package controller

// gatewaysPerRound is a quarter of the Gateways that come and go.
const gatewaysPerRound = 250
