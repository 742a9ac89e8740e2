//go:build race

package controller

// gatewaysPerRound is smaller with the race detector, which slows the test down.
const gatewaysPerRound = 25

// churnedBriefly is the number of changes in the short day of churn, with each data plane.
const churnedBriefly = 40
