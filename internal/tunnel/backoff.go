package tunnel

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	// mostDoublings keeps the retry below lastRetry from overflowing.
	mostDoublings = 6
)

// Backoff is why the last attempt of a track failed, and when the next one is
// due. Its zero value is no failure.
type Backoff struct {
	// Failures counts the attempts that failed one after the other.
	Failures int
	// Until is when the next attempt is due, and Delay how long after the failure
	// that was.
	Until Instant
	Delay time.Duration
	// Problem is why the last attempt failed; nil when it only waits for its share
	// of the request budget.
	Problem *Problem
	// Slot is the priority for which the request budget has promised a request at
	// Until; a request of an earlier priority need not wait for it.
	Slot Slot
	// Hash is that of the configuration that was rejected; another one is tried at
	// once.
	Hash string
}

// Slot is a promised share of the request budget, or none.
type Slot struct {
	Promised bool
	Priority provider.Priority
}

// wait returns how long an attempt of that priority has to wait.
func (b Backoff) wait(uptime time.Duration, p provider.Priority) time.Duration {
	if b.Slot.Promised && p < b.Slot.Priority {
		return 0
	}
	return max(b.Until.at-uptime, 0)
}

// failed returns the Backoff after one more failure.
func (b Backoff) failed(uptime time.Duration, p *Problem, err error) Backoff {
	asked, _ := provider.RetryAfter(err)
	wait := lastRetry
	if b.Failures < mostDoublings {
		wait = min(firstRetry<<b.Failures, lastRetry)
	}
	if p != nil && p.Reason == ReasonRateLimited {
		wait = asked // a limit ends when the API says so, not later
	}
	wait = max(wait, asked)
	return Backoff{Failures: min(b.Failures+1, mostDoublings), Until: At(uptime + wait), Delay: wait, Problem: p}
}

const (
	shortestGap = 300 * time.Millisecond
	longestGap  = time.Second
)

// Pace spaces the writes of a configuration: the first one is sent at once, and
// the gap grows while changes keep coming. A connector drops its connections to
// the backends at every write.
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

func (p Pace) pushed(uptime time.Duration) Pace {
	gap := shortestGap
	if p.Last.IsSet() && p.Last.since(uptime) < 2*longestGap {
		gap = min(2*max(p.Gap, shortestGap), longestGap)
	}
	return Pace{Last: At(uptime), Gap: gap}
}

const (
	// mostDrift external changes within driftWindow are one writer too many.
	mostDrift   = 3
	driftWindow = 10 * time.Minute
	// driftCheck is how often the configuration is read for a driftWindow after an
	// external change: three changes within the window must be seen as three.
	driftCheck = time.Minute
)

// Drift holds the external changes of the configuration that were noticed.
type Drift struct {
	Times []Instant
	// Version is that of the last one: it counts once, however often repairing it
	// fails.
	Version provider.Version
}

func (d Drift) add(uptime time.Duration, version provider.Version) Drift {
	if d.Version == version && len(d.Times) > 0 {
		return d
	}
	recent := slices.DeleteFunc(slices.Clone(d.Times), func(i Instant) bool { return i.since(uptime) >= driftWindow })
	return Drift{Times: append(recent, At(uptime)), Version: version}
}

// recent reports whether the next change may count together with the last one.
func (d Drift) recent(uptime time.Duration) bool {
	return len(d.Times) > 0 && d.Times[len(d.Times)-1].since(uptime) < driftWindow
}

// LateWrites are the writes whose answers were not seen. They may still arrive,
// until Settled.
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

// pending reports whether a write may still arrive.
func (l LateWrites) pending(uptime time.Duration) bool {
	return len(l.Hashes) > 0 && uptime < l.Settled.at
}

// last returns the hash of the last write that may still arrive, or "".
func (l LateWrites) last(uptime time.Duration) string {
	if !l.pending(uptime) {
		return ""
	}
	return l.Hashes[len(l.Hashes)-1]
}
