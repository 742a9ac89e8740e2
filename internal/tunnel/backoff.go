package tunnel

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxDoublings limits how often the backoff doubles.
	maxDoublings = 6
)

// Backoff is a track's next attempt after a failure. Its zero value means that the last
// attempt succeeded.
type Backoff struct {
	// Failures counts consecutive failed attempts, up to a limit.
	Failures int
	// Until is the time of the next attempt, and Delay the time from the failure until
	// then.
	Until Instant
	Delay time.Duration
	// Problem is why the attempt failed; nil if it only waits for the API request
	// budget.
	Problem *Problem
	// Slot is the slot at Until that the API request budget has assigned to the
	// attempt. An attempt with an earlier priority does not wait for it.
	Slot Slot
	// Hash is the hash of the rejected configuration. Another configuration is tried
	// immediately.
	Hash string
}

// Slot is a slot in the API request budget, or none.
type Slot struct {
	Assigned bool
	Priority provider.Priority
}

// wait returns the time until an attempt with that priority may be made.
func (b Backoff) wait(uptime time.Duration, p provider.Priority) time.Duration {
	if b.Slot.Assigned && p < b.Slot.Priority {
		return 0
	}
	return max(b.Until.at-uptime, 0)
}

// rateLimited reports whether the API, or the API request budget, determines when to
// try again.
func (b Backoff) rateLimited() bool {
	return b.Slot.Assigned || b.Problem != nil && b.Problem.Reason == conditions.ReasonRateLimited
}

// next returns the Backoff after another failure.
func (b Backoff) next(uptime time.Duration, p *Problem, err error) Backoff {
	requested, _ := provider.RetryAfter(err)
	wait := maxBackoff
	if b.Failures < maxDoublings {
		wait = min(minBackoff<<b.Failures, maxBackoff)
	}
	if p != nil && p.Reason == conditions.ReasonRateLimited {
		wait = requested // the API states when the rate limit ends
	}
	wait = max(wait, requested)
	return Backoff{Failures: min(b.Failures+1, maxDoublings), Until: At(uptime + wait), Delay: wait, Problem: p}
}

const (
	minGap = 300 * time.Millisecond
	maxGap = time.Second
)

// Pace limits how fast the configuration is written. The first write is sent
// immediately, and the gap grows while more changes follow. Connectors drop their
// connections to the backends at every write.
type Pace struct {
	Last Instant
	Gap  time.Duration
}

func (p Pace) wait(uptime time.Duration) time.Duration {
	if !p.Last.IsSet() {
		return 0
	}
	return max(p.Last.at+p.Gap-uptime, 0)
}

func (p Pace) next(uptime time.Duration) Pace {
	gap := minGap
	if p.Last.IsSet() && p.Last.Since(uptime) < 2*maxGap {
		gap = min(2*max(p.Gap, minGap), maxGap)
	}
	return Pace{Last: At(uptime), Gap: gap}
}

const (
	// contestedChanges external changes within driftWindow make the configuration
	// contested: another writer keeps changing it.
	contestedChanges = 3
	driftWindow      = 10 * time.Minute
	// contestedInterval is the read interval for a driftWindow after an external
	// change, so that each change within the window is detected.
	contestedInterval = time.Minute
)

// Drift contains the detected external changes to the configuration.
type Drift struct {
	Times []Instant
	// Version is the last change's version. The change counts once, even if repairing
	// it fails several times.
	Version provider.Version
}

func (d Drift) add(uptime time.Duration, version provider.Version) Drift {
	if d.Version == version && len(d.Times) > 0 {
		return d
	}
	recent := slices.DeleteFunc(slices.Clone(d.Times), func(i Instant) bool { return i.Since(uptime) >= driftWindow })
	return Drift{Times: append(recent, At(uptime)), Version: version}
}

// recent reports whether the last change is within the driftWindow.
func (d Drift) recent(uptime time.Duration) bool {
	return len(d.Times) > 0 && d.Times[len(d.Times)-1].Since(uptime) < driftWindow
}

// LateWrites are writes without a response. Cloudflare may still apply them until
// Settled.
type LateWrites struct {
	Hashes  []string
	Settled Instant
}

func (l LateWrites) add(uptime time.Duration, hash string) LateWrites {
	hashes := l.Hashes
	if hash != "" && !slices.Contains(hashes, hash) {
		hashes = append(slices.Clone(hashes), hash)
	}
	return LateWrites{Hashes: hashes, Settled: At(uptime + provider.CallTimeout)}
}

// pending reports whether Cloudflare may still apply a write.
func (l LateWrites) pending(uptime time.Duration) bool {
	return len(l.Hashes) > 0 && uptime < l.Settled.at
}

// last returns the hash of the last write that Cloudflare may still apply, or "".
func (l LateWrites) last(uptime time.Duration) string {
	if !l.pending(uptime) {
		return ""
	}
	return l.Hashes[len(l.Hashes)-1]
}
