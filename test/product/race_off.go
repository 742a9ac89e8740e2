//go:build !race

package product

const raceDetector = false
