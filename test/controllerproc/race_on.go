//go:build race

package controllerproc

// raceDetector reports whether the race detector is enabled in this program.
const raceDetector = true
