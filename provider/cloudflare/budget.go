package cloudflare

import (
	"context"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The Cloudflare API allows a user 1,200 requests in five minutes, including requests
// with other tokens and from the dashboard. These constants use about three quarters of
// that limit.
const (
	// requestInterval is the time after which one used request is available again.
	requestInterval = time.Second / 3
	// requestBurst is how many requests a full budget contains.
	requestBurst = 30
)

// quota limits the requests with one priority.
type quota struct {
	// reserve is how many requests this priority leaves in the budget for earlier
	// priorities.
	reserve int
	// spacing is the average time between two requests.
	spacing time.Duration
	// waits is true if a call waits for its slot, and false if the call returns
	// immediately. Hundreds of calls can have the priority for starts or drift, and each
	// waiting call occupies a worker.
	waits bool
}

// quotas contains each priority's quota.
//
// A change takes up to three requests, and so does a deletion. Deletions therefore leave
// enough requests for a change or two, and calls at start leave enough for one deletion
// more. Drift calls are not urgent: they need a nearly idle budget and never use more
// than a third of the rate. Access calls leave drift calls one more request, so that eight
// writes can be sent at once, and send at most 600 in five minutes. DNS calls come after all
// others: they leave drift calls five more requests, and send at most 240 in five minutes.
var quotas = [...]quota{
	provider.PriorityChange:   {waits: true},
	provider.PriorityDeletion: {reserve: 5, waits: true},
	provider.PriorityStart:    {reserve: 10},
	provider.PriorityDrift:    {reserve: 20, spacing: time.Second},
	provider.PriorityAccess:   {reserve: 21, spacing: 5 * time.Minute / 600},
	provider.PriorityDNS:      {reserve: 25, spacing: 5 * time.Minute / 240},
}

// quotaOf returns the context's priority and its quota.
func quotaOf(ctx context.Context) (provider.Priority, quota) {
	p := min(max(provider.PriorityOf(ctx), 0), provider.Priority(len(quotas)-1))
	return p, quotas[p]
}

// budget limits the request rate with one API token.
type budget struct {
	mu sync.Mutex
	// fullAt is the time at which the budget is full again if no request is sent:
	// each missing request takes requestInterval to return.
	fullAt time.Time
	// blockedUntil is the time until which no request is sent because the API
	// responded with status 429.
	blockedUntil time.Time
	// requested is the wait that the API requested in that response.
	requested time.Duration
	schedules [len(quotas)]schedule

	outage outage
}

// schedule assigns times to the requests with one priority.
type schedule struct {
	// lastSlot is the last slot that was assigned to a call. The budget does not
	// record which call has a slot: if the call does not use its slot, the request
	// stays in the budget.
	lastSlot time.Time
	// nextSpaced is when the quota's spacing permits the next request.
	nextSpaced time.Time
}

// acquire takes one request with the context's priority from the budget, and waits for it
// if the priority's quota allows waiting. If the slot is after deadline, it returns a
// [*provider.RateLimitedError] immediately.
func (b *budget) acquire(ctx context.Context, deadline time.Time) error {
	start, waited := time.Now(), false
	defer func() {
		if waited {
			provider.ReportWait(ctx, time.Since(start))
		}
	}()
	for ctx.Err() == nil {
		now := time.Now()
		slot, err := b.tryAcquire(ctx, now, deadline)
		if err != nil {
			return err
		}
		if !slot.After(now) {
			return nil
		}
		waited = true
		// Another call may take the request first, or a 429 may block the budget. So
		// the next iteration checks again.
		sleep(ctx, slot.Sub(now))
	}
	return ctx.Err()
}

// tryAcquire returns now after it has taken one request, or the time at which to try
// again.
func (b *budget) tryAcquire(ctx context.Context, now, deadline time.Time) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, quota := quotaOf(ctx)
	blocked := b.blockedUntil.After(now)
	slot := b.blockedUntil
	if !blocked {
		if b.grant(provider.ReservationOf(ctx), p, now) {
			return now, nil
		}
		r := provider.ReservationOf(ctx)
		slot = r.Slot(now, func() time.Time { return b.assignSlot(p, r.Requests(), now) })
	}
	switch {
	case quota.waits && !slot.After(deadline):
		return slot, nil
	case blocked:
		return slot, &provider.RateLimitedError{RetryAfter: wholeSeconds(slot.Sub(now)), Requested: b.requested}
	}
	return slot, &provider.RateLimitedError{RetryAfter: slot.Sub(now), Budget: true}
}

// grant takes one request from the budget, or from a reservation that is already
// granted, and reports whether it succeeded. Granting a reservation takes all its
// requests, so that calls with unfinished reservations cannot use up the reserve.
func (b *budget) grant(r *provider.Reservation, p provider.Priority, now time.Time) bool {
	switch granted, covered := r.Next(); {
	case covered:
	case granted:
		b.spend(p, 1, now)
	case b.availableAt(p, r.Requests()).After(now):
		return false
	default:
		b.spend(p, r.Requests(), now)
		r.Grant()
	}
	return true
}

// availableAt returns the time, past or future, from which the budget contains the
// requests for the priority in addition to its reserve.
func (b *budget) availableAt(p provider.Priority, requests int) time.Time {
	spare := time.Duration(requestBurst - quotas[p].reserve - requests)
	return later(b.fullAt.Add(-spare*requestInterval), b.schedules[p].nextSpaced)
}

func (b *budget) spend(p provider.Priority, requests int, now time.Time) {
	b.fullAt = later(b.fullAt, now).Add(time.Duration(requests) * requestInterval)
	// A request shortly after its slot must not delay the next slot, which may be
	// assigned already.
	s, spacing := &b.schedules[p], quotas[p].spacing
	if now.Sub(s.nextSpaced) >= spacing/2 {
		s.nextSpaced = now
	}
	s.nextSpaced = s.nextSpaced.Add(time.Duration(requests) * spacing)
}

// assignSlot returns the next free slot for a reservation of that many requests. The slot
// is after all slots assigned to the same priority, and after the budget has regained its
// reserve following the slots assigned to earlier priorities.
func (b *budget) assignSlot(p provider.Priority, requests int, now time.Time) time.Time {
	slot := b.availableAt(p, requests)
	for earlier := range p {
		if lastSlot := b.schedules[earlier].lastSlot; lastSlot.After(now) {
			missing := time.Duration(quotas[p].reserve - quotas[earlier].reserve + 1)
			slot = later(slot, lastSlot.Add(missing*requestInterval))
		}
	}
	s := &b.schedules[p]
	s.lastSlot = later(slot, s.lastSlot.Add(time.Duration(requests)*max(requestInterval, quotas[p].spacing)))
	return s.lastSlot
}

// block stops all requests until the wait that the API requested has passed, but at most
// for [provider.MaxRetryAfter]. A shorter block than the current one has no effect.
func (b *budget) block(requested time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(min(requested, provider.MaxRetryAfter)); until.After(b.blockedUntil) {
		b.blockedUntil, b.requested = until, requested
	}
}

// wholeSeconds rounds up: the API counts in seconds, and a request that is sent too
// early extends the block.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sleep returns after d, or earlier when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
