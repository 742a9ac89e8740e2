package cloudflare

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The API allows 1,200 requests in five minutes to a user, who has other tokens
// and the dashboard too: these are about three quarters of it.
const (
	requestsPerSecond = 3
	requestBurst      = 30
)

// budget rations the requests of one API token.
type budget struct {
	limiter *rate.Limiter

	mu sync.Mutex
	// heldUntil is when the API will take requests again, after it said that
	// there were too many.
	heldUntil time.Time
}

// budgets has the budget of every token in this process, by the token's hash:
// the limit is the token's, however many providers use it.
var budgets sync.Map

func budgetOf(token string) *budget {
	b, _ := budgets.LoadOrStore(sha256.Sum256([]byte(token)),
		&budget{limiter: rate.NewLimiter(requestsPerSecond, requestBurst)})
	return b.(*budget)
}

// take waits for a request's turn. When that would be after latest, it returns
// a [*provider.RateLimitedError] at once and the turn goes to others.
func (b *budget) take(ctx context.Context, latest time.Time) error {
	for {
		if err := waitUntil(ctx, b.held(), latest); err != nil {
			return err
		}
		now := time.Now()
		turn := b.limiter.ReserveN(now, 1)
		if err := waitUntil(ctx, now.Add(turn.DelayFrom(now)), latest); err != nil {
			turn.Cancel()
			return err
		}
		if !b.held().After(time.Now()) { // a hold may have begun during the wait
			return nil
		}
	}
}

// hold keeps all requests back for a while.
func (b *budget) hold(wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(wait); until.After(b.heldUntil) {
		b.heldUntil = until
	}
}

func (b *budget) held() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heldUntil
}

func waitUntil(ctx context.Context, then, latest time.Time) error {
	wait := time.Until(then)
	if wait <= 0 {
		return ctx.Err()
	}
	if then.After(latest) {
		return &provider.RateLimitedError{RetryAfter: wait}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
