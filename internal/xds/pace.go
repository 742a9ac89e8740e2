package xds

import "time"

// The limits for the pause between two changes.
const (
	// sustainedPause is the longest pause between changes that follow each other
	// closely.
	sustainedPause = 200 * time.Millisecond
	// shortestGrowth is the first such pause, which then doubles.
	shortestGrowth = 25 * time.Millisecond
	longestPause   = 5 * time.Second
)

// pace is the pause after each change, so that changes that follow each other closely
// become one. Applying a change delays the requests that an Envoy handles meanwhile.
type pace struct {
	// from is the time when the last acknowledgement arrived, and took how long it
	// took.
	from  time.Time
	took  time.Duration
	pause time.Duration
}

// acknowledged begins a pause that is as long as the acknowledgement took.
func (p *pace) acknowledged(now time.Time, took time.Duration) {
	p.from, p.took = now, took
}

func (p *pace) remaining(now time.Time) time.Duration {
	if p.from.IsZero() {
		return 0
	}
	return max(p.from.Add(min(max(p.pause, p.took), longestPause)).Sub(now), 0)
}

// begin sets the pause after a change that combines the given number of changes. The
// pause doubles while changes arrive faster than they are sent.
func (p *pace) begin(changes uint64) {
	if changes <= 1 {
		p.pause = 0
		return
	}
	p.pause = min(max(2*p.pause, shortestGrowth), sustainedPause)
}
