//go:build race

package controllerproc

// The controller has the race detector when what runs it has.
const raceDetector = true
