package main

import (
	"fmt"
	"slices"
	"time"
)

// series are the results when one measurement is repeated.
type series []float64

// median returns the middle value, or the mean of the two middle values, or 0 for an empty
// series.
func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

// over returns the ratio of each value to the other series' value in the same repetition.
func (s series) over(other series) series {
	ratios := make(series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// with returns the median and, if there are several values, the smallest and the largest,
// each in the format for a number.
func (s series) with(format string) string {
	switch len(s) {
	case 0:
		return "–"
	case 1:
		return fmt.Sprintf(format, s[0])
	default:
		return fmt.Sprintf(format+" ("+format+" to "+format+")", s.median(), slices.Min(s), slices.Max(s))
	}
}

// milliseconds converts durations.
func milliseconds(durations ...time.Duration) series {
	s := make(series, len(durations))
	for i, d := range durations {
		s[i] = float64(d) / float64(time.Millisecond)
	}
	return s
}
