package main

import (
	"testing"
)

func TestBoundsLeaveOutOnlyImprobableCounts(t *testing.T) {
	// The bounds for 200 requests are 3 and 43 by exact arithmetic.
	if low, high := bounds(splitRequests, canaryWeight, splitFailure); low != 3 || high != 43 {
		t.Errorf("bounds %d to %d, want 3 to 43", low, high)
	}
	if low, high := bounds(10, 0.5, 1); low != 5 || high != 5 { // the median
		t.Errorf("bounds %d to %d, want 5 to 5", low, high)
	}
}
