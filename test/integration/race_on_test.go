//go:build race

package integration

// The controller's binary is built with the race detector when the tests are.
const raceDetector = true
