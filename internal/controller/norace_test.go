//go:build !race

package controller

// gatewaysPerRound is a quarter of the Gateways that come and go.
const gatewaysPerRound = 250

// churnedBriefly is the number of changes in the short day of churn, with each data plane.
const churnedBriefly = 200
