package cloudflare

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// acquireNow takes one request with the priority, or returns the error that a call gets
// that does not wait.
func (b *budget) acquireNow(t *testing.T, p provider.Priority) error {
	t.Helper()
	return b.acquire(provider.WithPriority(t.Context(), p), time.Now())
}

// drain acquires requests until it gets an error, and returns their number.
func (b *budget) drain(t *testing.T, p provider.Priority) (acquired int) {
	t.Helper()
	for b.acquireNow(t, p) == nil {
		acquired++
	}
	return acquired
}

func wantSlot(t *testing.T, err error, want time.Duration) {
	t.Helper()
	limited, ok := errors.AsType[*provider.RateLimitedError](err)
	if !ok || limited.RetryAfter != want || !limited.Budget {
		t.Errorf("got %#v, want a slot in %s", err, want)
	}
}

func TestPrioritiesLeaveTheirReserve(t *testing.T) {
	const change, deletion, start, drift, access, dns = provider.PriorityChange, provider.PriorityDeletion,
		provider.PriorityStart, provider.PriorityDrift, provider.PriorityAccess, provider.PriorityDNS
	tests := map[string]struct {
		spent    int
		priority provider.Priority
		wait     time.Duration
	}{
		"change, full":                    {0, change, 0},
		"change, last request":            {29, change, 0},
		"change, empty":                   {30, change, requestInterval},
		"deletion, full":                  {0, deletion, 0},
		"deletion, last request":          {24, deletion, 0},
		"deletion, reserve only":          {25, deletion, requestInterval},
		"deletion, empty":                 {30, deletion, 6 * requestInterval},
		"start, full":                     {0, start, 0},
		"start, last request":             {19, start, 0},
		"start, reserve only":             {20, start, requestInterval},
		"start, empty":                    {30, start, 11 * requestInterval},
		"drift, full":                     {0, drift, 0},
		"drift, last request":             {9, drift, 0},
		"drift, reserve only":             {10, drift, requestInterval},
		"drift, empty":                    {30, drift, 21 * requestInterval},
		"Access, full":                    {0, access, 0},
		"Access, last request":            {8, access, 0},
		"Access, reserve only":            {9, access, requestInterval},
		"Access, empty":                   {30, access, 22 * requestInterval},
		"DNS, full":                       {0, dns, 0},
		"DNS, last request":               {4, dns, 0},
		"DNS, reserve only":               {5, dns, requestInterval},
		"DNS, empty":                      {30, dns, 26 * requestInterval},
		"unknown priority, reserve only":  {5, dns + 1, requestInterval},
		"negative priority, last request": {29, -1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &budget{}
				for range test.spent {
					if err := b.acquireNow(t, change); err != nil {
						t.Fatal(err)
					}
				}
				err := b.acquireNow(t, test.priority)
				if test.wait == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantSlot(t, err, test.wait)
				advance(test.wait - 1)
				if b.acquireNow(t, test.priority) == nil {
					t.Error("acquired a request before the slot")
				}
				advance(1)
				if err := b.acquireNow(t, test.priority); err != nil {
					t.Errorf("at the slot: %v", err)
				}
			})
		})
	}
}

func TestChangesCanUseTheReserve(t *testing.T) {
	remaining := map[provider.Priority]int{
		provider.PriorityDeletion: 5, provider.PriorityStart: 10, provider.PriorityDrift: 29,
	}
	for p, want := range remaining {
		b := &budget{}
		b.drain(t, p)
		if got := b.drain(t, provider.PriorityChange); got != want {
			t.Errorf("after all calls of priority %d, %d changes succeed without a wait, want %d", p, got, want)
		}
	}
}

func TestBudgetLimitsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		acquire := func() error { return b.acquire(t.Context(), time.Now().Add(maxWait)) }
		start := time.Now()
		for range requestBurst {
			if err := acquire(); err != nil {
				t.Fatal(err)
			}
		}
		wantElapsed(t, start, 0)
		for range 6 {
			if err := acquire(); err != nil {
				t.Fatal(err)
			}
		}
		wantElapsed(t, start, 6*requestInterval)
		advance(time.Hour)
		if got := b.drain(t, provider.PriorityChange); got != requestBurst {
			t.Errorf("%d requests without a wait after an hour, want %d", got, requestBurst)
		}
	})
}

func TestSlotsAreConsecutive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		for range 20 {
			if err := b.acquireNow(t, provider.PriorityStart); err != nil {
				t.Fatal(err)
			}
		}
		for k := range 5 {
			wantSlot(t, b.acquireNow(t, provider.PriorityStart), time.Duration(k+1)*requestInterval)
		}
		// The first slot for drift is when the budget has regained its reserve after the
		// slots above.
		wantSlot(t, b.acquireNow(t, provider.PriorityDrift), (5+11)*requestInterval)
		wantSlot(t, b.acquireNow(t, provider.PriorityDrift), (5+11)*requestInterval+time.Second)
		// Slots for drift do not delay slots for starts.
		wantSlot(t, b.acquireNow(t, provider.PriorityStart), 6*requestInterval)
		// Slots in the past have no effect.
		advance(time.Minute)
		for range 20 {
			if err := b.acquireNow(t, provider.PriorityStart); err != nil {
				t.Fatal(err)
			}
		}
		wantSlot(t, b.acquireNow(t, provider.PriorityStart), requestInterval)
	})
}

func TestUnusedSlotsDelayNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.drain(t, provider.PriorityChange)
		wantSlot(t, b.acquireNow(t, provider.PriorityDrift), (1+21)*requestInterval)
		advance(requestInterval) // the change does not use its slot
		wantSlot(t, b.acquireNow(t, provider.PriorityStart), 10*requestInterval)
	})
}

func TestSlotAfterTheMaximumWaitIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		start := time.Now()
		latest := start.Add(maxWait)
		inTime := requestBurst + int(maxWait/requestInterval)
		for range inTime {
			go func() {
				if err := b.acquire(t.Context(), latest); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		wantElapsed(t, start, 0)
		for k := range 2 {
			wantSlot(t, b.acquire(t.Context(), latest), time.Duration(inTime-requestBurst+k+1)*requestInterval)
		}
		wantElapsed(t, start, 0)
		advance(maxWait)
	})
}

func TestBudgetReportsWaits(t *testing.T) {
	// A wait is reported once, with its length. A call that does not wait, or that
	// returns an error instead of waiting, reports nothing.
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		ctx := provider.WithWaitReporter(t.Context(), func(wait time.Duration) { waits = append(waits, wait) })
		b := &budget{}
		for range requestBurst {
			if err := b.acquire(ctx, time.Now().Add(maxWait)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.acquire(ctx, time.Now()); err == nil {
			t.Error("acquired a request from an empty budget")
		}
		if len(waits) > 0 {
			t.Errorf("reported waits %v, want none", waits)
		}
		before := time.Now()
		if err := b.acquire(ctx, time.Now().Add(maxWait)); err != nil {
			t.Fatal(err)
		}
		if want := time.Since(before); want == 0 || len(waits) != 1 || waits[0] != want {
			t.Errorf("reported waits %v, want %s", waits, want)
		}
	})
}

func TestChangesPrecedeAWaitingDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.drain(t, provider.PriorityDeletion)
		advance(requestInterval) // the slot that the drain was assigned stays unused
		b.drain(t, provider.PriorityDeletion)
		advance(10 * time.Millisecond)
		start := time.Now()
		var elapsed time.Duration
		go func() {
			ctx := provider.WithPriority(t.Context(), provider.PriorityDeletion)
			if err := b.acquire(ctx, start.Add(maxWait)); err != nil {
				t.Error(err)
			}
			elapsed = time.Since(start)
		}()
		synctest.Wait()
		for range 2 {
			if err := b.acquireNow(t, provider.PriorityChange); err != nil {
				t.Errorf("a change during the wait of a deletion: %v", err)
			}
		}
		advance(maxWait)
		synctest.Wait()
		if elapsed < 2*requestInterval || elapsed > maxWait {
			t.Errorf("the deletion waited %s, want at least %s and at most %s", elapsed, 2*requestInterval, maxWait)
		}
	})
}

func TestBlockEndsAWaitThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.block(time.Second)
		b.block(0) // a shorter block has no effect
		var err error
		go func() { err = b.acquire(t.Context(), time.Now().Add(maxWait)) }()
		advance(time.Second / 2)
		b.block(10 * time.Second)
		advance(time.Second)
		synctest.Wait()
		wantRateLimited(t, err, 10*time.Second) // 9.5 seconds, rounded up
	})
}

func TestBlockAppliesToAllPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.block(time.Second)
		for p := range provider.Priority(len(quotas)) {
			other := &budget{}
			wantRateLimited(t, b.acquireNow(t, p), time.Second)
			if err := other.acquireNow(t, p); err != nil {
				t.Errorf("priority %d with another token: %v", p, err)
			}
		}
		start := time.Now()
		ctx := provider.WithPriority(t.Context(), provider.PriorityStart)
		wantRateLimited(t, b.acquire(ctx, start.Add(maxWait)), time.Second)
		wantElapsed(t, start, 0)
		advance(time.Second - 1)
		wantRateLimited(t, b.acquireNow(t, provider.PriorityChange), time.Second)
		advance(1)
		if err := b.acquireNow(t, provider.PriorityChange); err != nil {
			t.Errorf("after the block: %v", err)
		}
	})
}

func TestCancelEndsAWaitForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.block(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.acquire(ctx, time.Now().Add(maxWait)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}
