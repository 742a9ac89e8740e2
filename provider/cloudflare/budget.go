package cloudflare

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The API allows 1,200 requests in five minutes to a user, who has other tokens
// and the dashboard too: these are about three quarters of it.
const (
	// requestInterval is how long one request takes to come back into the
	// budget.
	requestInterval = time.Second / 3
	// requestBurst is how many requests a budget holds when it is full.
	requestBurst = 30
)

// terms are what the requests of one priority get of a budget.
type terms struct {
	// reserve is what they leave in the budget, so that requests of earlier
	// priorities find something at once.
	reserve int
	// spacing is the time between two of them, on the average.
	spacing time.Duration
	// patient ones wait a while for their turn. Others come back at once:
	// there can be hundreds, and every one that waits holds up a worker.
	patient bool
}

// byPriority has the terms in the order of the priorities.
//
// A change takes up to three requests, and a deletion three: so deletions leave
// enough for a change or two, and reading back at start leaves one deletion
// more than that. Drift has all the time in the world. It begins only when the
// others have been quiet for some seconds, and even with nothing else to do it
// takes a third of the rate.
var byPriority = [...]terms{
	provider.PriorityChange:   {patient: true},
	provider.PriorityDeletion: {reserve: 5, patient: true},
	provider.PriorityStart:    {reserve: 10},
	provider.PriorityDrift:    {reserve: 20, spacing: time.Second},
}

// termsOf returns the priority of the context, and its terms.
func termsOf(ctx context.Context) (provider.Priority, terms) {
	p := min(max(provider.PriorityOf(ctx), 0), provider.Priority(len(byPriority)-1))
	return p, byPriority[p]
}

// budget rations the requests of one API token.
type budget struct {
	mu sync.Mutex
	// fullAt is when the budget is full again if nobody takes from it: every
	// request that is missing takes requestInterval to come back.
	fullAt time.Time
	// heldUntil is when the API will take requests again, after it said that
	// there were too many.
	heldUntil time.Time
	queues    [len(byPriority)]queue
}

// queue is what a budget knows of the requests of one priority.
type queue struct {
	// promised is the last slot that was promised to one that had to wait.
	// Nobody is remembered: a slot that is not used leaves its request in the
	// budget.
	promised time.Time
	// spaced is when the next one keeps its distance to those before.
	spaced time.Time
}

// budgets has the budget of every token in this process, by the token's hash:
// the limit is the token's, however many providers use it.
var budgets sync.Map

func budgetOf(token string) *budget {
	b, _ := budgets.LoadOrStore(sha256.Sum256([]byte(token)), &budget{})
	return b.(*budget)
}

// take gets leave for one request of the context's priority, and waits for it
// when the priority's terms allow that. When the turn would be after latest, it
// returns a [*provider.RateLimitedError] at once.
func (b *budget) take(ctx context.Context, latest time.Time) error {
	began, waited := time.Now(), false
	defer func() {
		if waited {
			provider.ReportWait(ctx, time.Since(began))
		}
	}()
	for ctx.Err() == nil {
		now := time.Now()
		turn, err := b.turn(ctx, now, latest)
		if err != nil {
			return err
		}
		if !turn.After(now) {
			return nil
		}
		waited = true
		sleep(ctx, turn.Sub(now)) // others may be quicker then, or a hold begin
	}
	return ctx.Err()
}

// turn returns when to ask again, or now when the request may be made.
func (b *budget) turn(ctx context.Context, now, latest time.Time) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, terms := termsOf(ctx)
	held := b.heldUntil.After(now)
	turn := b.heldUntil
	if !held {
		if b.admit(provider.ReservationOf(ctx), p, now) {
			return now, nil
		}
		turn = b.promise(p, provider.ReservationOf(ctx).Share(), now)
	}
	switch {
	case terms.patient && !turn.After(latest):
		return turn, nil
	case held:
		return turn, &provider.RateLimitedError{RetryAfter: wholeSeconds(turn.Sub(now))}
	}
	return turn, &provider.RateLimitedError{RetryAfter: turn.Sub(now), Budget: true}
}

// admit lets a request in when its turn has come, now or before. Then it spends
// what the turn is expected to take, so that those whose requests are still under
// way leave the reserve alone.
func (b *budget) admit(turn *provider.Reservation, p provider.Priority, now time.Time) bool {
	switch taken, shared := turn.Next(); {
	case shared:
	case taken:
		b.spend(p, 1, now)
	case b.ready(p, turn.Share()).After(now):
		return false
	default:
		b.spend(p, turn.Share(), now)
		turn.Grant()
	}
	return true
}

// ready returns since when, or from when on, the budget has so many requests for
// the priority beyond its reserve.
func (b *budget) ready(p provider.Priority, requests int) time.Time {
	spare := time.Duration(requestBurst - byPriority[p].reserve - requests)
	return later(b.fullAt.Add(-spare*requestInterval), b.queues[p].spaced)
}

func (b *budget) spend(p provider.Priority, requests int, now time.Time) {
	b.fullAt = later(b.fullAt, now).Add(time.Duration(requests) * requestInterval)
	// One that comes a little after its slot does not push back the next slot,
	// which is promised already.
	own, spacing := &b.queues[p], byPriority[p].spacing
	if now.Sub(own.spaced) < spacing/2 {
		own.spaced = own.spaced.Add(spacing)
	} else {
		own.spaced = now.Add(spacing)
	}
}

// promise returns the next free slot for a turn that is not ready: after
// those promised to its own priority, and when the budget has got its reserve
// back after those promised to earlier ones.
func (b *budget) promise(p provider.Priority, requests int, now time.Time) time.Time {
	slot := b.ready(p, requests)
	for earlier := range p {
		if promised := b.queues[earlier].promised; promised.After(now) {
			missing := time.Duration(byPriority[p].reserve - byPriority[earlier].reserve + 1)
			slot = later(slot, promised.Add(missing*requestInterval))
		}
	}
	own := &b.queues[p]
	own.promised = later(slot, own.promised.Add(max(time.Duration(requests)*requestInterval, byPriority[p].spacing)))
	return own.promised
}

// hold keeps all requests back for a while.
func (b *budget) hold(wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heldUntil = later(b.heldUntil, time.Now().Add(wait))
}

// wholeSeconds rounds up: the API counts in seconds, and asking it a moment too
// early makes it refuse for longer.
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
