package controller

import "time"

const (
	shortestPace = 300 * time.Millisecond
	longestPace  = time.Second
)

// pace spaces the pushes to one tunnel: the first goes out at once, and the
// gap grows while changes keep coming.
type pace struct {
	last time.Time
	gap  time.Duration
}

// wait returns how long the next push has to wait.
func (p *pace) wait(now time.Time) time.Duration {
	return max(p.last.Add(p.gap).Sub(now), 0)
}

// pushed notes a push.
func (p *pace) pushed(now time.Time) {
	if !p.last.IsZero() && now.Sub(p.last) < 2*longestPace {
		p.gap = min(2*p.gap, longestPace)
	} else {
		p.gap = shortestPace
	}
	p.last = now
}
