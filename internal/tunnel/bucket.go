package tunnel

import (
	"cmp"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// UpdateLimit limits how often a tunnel's configuration is written. Its zero value
// means no limit.
type UpdateLimit struct {
	// Burst is how many writes may follow each other, and Interval the time after which
	// one more write is permitted.
	Burst    int
	Interval time.Duration
}

func (l UpdateLimit) isSet() bool { return l.Burst > 0 && l.Interval > 0 }

// Bucket is a token bucket for one tunnel's configuration writes. Every write takes a
// token, whether it succeeds or not. The zero value is a full bucket.
type Bucket struct {
	// Spent counts the missing tokens, and the next token accrues from Since.
	Spent int
	Since Instant
}

// refilled returns the bucket with the tokens that have accrued. When the limit
// changes, the new limit counts for the whole time since the last token.
func (b Bucket) refilled(uptime time.Duration, l UpdateLimit) Bucket {
	if b.Spent == 0 || !l.isSet() {
		return Bucket{}
	}
	b.Spent = min(b.Spent, l.Burst)
	accrued := b.Since.Since(uptime) / l.Interval
	if accrued >= time.Duration(b.Spent) {
		return Bucket{}
	}
	b.Spent -= int(accrued)
	b.Since = At(b.Since.at + accrued*l.Interval)
	return b
}

// wait returns the time until the bucket has a token, which is at most the interval.
func (b Bucket) wait(uptime time.Duration, l UpdateLimit) time.Duration {
	b = b.refilled(uptime, l)
	if !l.isSet() || b.Spent < l.Burst {
		return 0
	}
	return b.Since.at + l.Interval - uptime
}

// spend returns the bucket after a write.
func (b Bucket) spend(uptime time.Duration, l UpdateLimit) Bucket {
	if !l.isSet() {
		return Bucket{}
	}
	b = b.refilled(uptime, l)
	if b.Spent == 0 {
		b.Since = At(uptime)
	}
	b.Spent = min(b.Spent+1, l.Burst) // the first configuration does not need a token
	return b
}

// spend returns the Memory after an attempt to write the configuration.
func (m Memory) spend(s Step, r Result) Memory {
	m.Push = m.Push.next(r.Uptime)
	if s.Revokes {
		m.Revocations = m.Revocations.spend(r.Uptime, s.Limit, s.Namespaces)
		m.Revocations.Written = s.Hash
		return m
	}
	m.Updates = m.Updates.spend(r.Uptime, s.Limit)
	return m
}

// withPacing returns the step that writes the configuration, or a wait until the write is
// allowed. The first configuration of a Tunnel does not wait for a token.
func (f Facts) withPacing(step Step) Step {
	wait := f.Memory.Push.wait(f.Uptime)
	var throttled *Problem
	if w := f.Memory.Updates.wait(f.Uptime, f.Desired.Updates); w > wait && f.Object.Status.Configuration.Hash != "" {
		wait, throttled = w, f.throttledProblem(w)
	}
	if wait == 0 || step.Action == None || step.Action == Wait && step.Delay >= wait {
		return step
	}
	w := waitFor(wait)
	w.Problem = throttled
	if step.Ends() {
		w.Problem = cmp.Or(step.Problem, throttled)
	}
	return w
}

// throttledProblem returns the problem that the configuration is not written before the
// wait has passed. Its message does not change until then.
func (f Facts) throttledProblem(wait time.Duration) *Problem {
	until := f.Clock.Add(wait + time.Second - 1).Truncate(time.Second).UTC()
	p := problem(conditions.ReasonConfigurationThrottled, "The configuration changes more often than limits.configurationUpdates permits (%d writes, and one more every %s), "+
		"so the controller writes the latest changes at %s.", f.Desired.Updates.Burst, f.Desired.Updates.Interval, until.Format(time.RFC3339))
	if f.isRemote(f.Memory.Revocations.Written) {
		p.Message += " Until then, requests for removed or restricted rules get an error status."
	}
	return p
}
