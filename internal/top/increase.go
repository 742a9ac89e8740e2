package top

import (
	"maps"
	"math"
	"slices"
)

// increase returns by how much a counter has grown. A counter without an earlier value
// appeared in between, and a counter that has become smaller was reset: both began at 0.
func increase(before, after float64) float64 {
	if after < before {
		return after
	}
	return after - before
}

// increaseOf is like increase for all buckets. If one bucket was reset, all were.
func increaseOf(before, after map[float64]float64) map[float64]float64 {
	for bound, count := range after {
		if count < before[bound] {
			return after
		}
	}
	grown := make(map[float64]float64, len(after))
	for bound, count := range after {
		grown[bound] = count - before[bound]
	}
	return grown
}

// Quantile is a latency that a share of the requests does not exceed.
type Quantile struct {
	Milliseconds float64 `json:"milliseconds"`
	// Above reports that the latency is higher than Milliseconds, the highest bound.
	Above bool `json:"above,omitempty"`
}

// quantile returns the q-quantile for cumulative counts by upper bound, or nil without
// requests. Like histogram_quantile in Prometheus, it interpolates in the bucket.
// Prometheus exports that function only with its whole query engine.
func quantile(q float64, buckets map[float64]float64) *Quantile {
	bounds := slices.Sorted(maps.Keys(buckets))
	if len(bounds) < 2 || !math.IsInf(bounds[len(bounds)-1], 1) {
		return nil
	}
	total := buckets[bounds[len(bounds)-1]]
	if total <= 0 {
		return nil
	}
	rank := q * total
	i := slices.IndexFunc(bounds, func(bound float64) bool { return buckets[bound] >= rank })
	if i == len(bounds)-1 {
		return &Quantile{Milliseconds: bounds[i-1], Above: true}
	}
	var start, below float64
	if i > 0 {
		start, below = bounds[i-1], buckets[bounds[i-1]]
	}
	return &Quantile{Milliseconds: start + (bounds[i]-start)*(rank-below)/(buckets[bounds[i]]-below)}
}
