//go:build race

package product

// The controller has the race detector when what runs it has.
const raceDetector = true
