//go:build !race

package controllerproc

const raceDetector = false
