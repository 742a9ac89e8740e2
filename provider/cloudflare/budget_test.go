package cloudflare

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ask takes one request for the priority, or returns what it is told when it
// would have to wait.
func (b *budget) ask(t *testing.T, p provider.Priority) error {
	t.Helper()
	return b.take(provider.WithPriority(t.Context(), p), time.Now())
}

// drain asks until it is turned away, and returns how often it was not.
func (b *budget) drain(t *testing.T, p provider.Priority) (served int) {
	t.Helper()
	for b.ask(t, p) == nil {
		served++
	}
	return served
}

func wantTurn(t *testing.T, err error, want time.Duration) {
	t.Helper()
	limited, ok := errors.AsType[*provider.RateLimitedError](err)
	if !ok || limited.RetryAfter != want || !limited.Budget {
		t.Errorf("got %#v, want a turn in %s", err, want)
	}
}

func TestReserves(t *testing.T) {
	const change, deletion, start, drift = provider.PriorityChange, provider.PriorityDeletion,
		provider.PriorityStart, provider.PriorityDrift
	tests := map[string]struct {
		spent    int
		priority provider.Priority
		wait     time.Duration
	}{
		"change, full":           {0, change, 0},
		"change, the last":       {29, change, 0},
		"change, nothing left":   {30, change, requestInterval},
		"deletion, full":         {0, deletion, 0},
		"deletion, the last":     {24, deletion, 0},
		"deletion, reserve only": {25, deletion, requestInterval},
		"deletion, nothing left": {30, deletion, 6 * requestInterval},
		"start, full":            {0, start, 0},
		"start, the last":        {19, start, 0},
		"start, reserve only":    {20, start, requestInterval},
		"start, nothing left":    {30, start, 11 * requestInterval},
		"drift, full":            {0, drift, 0},
		"drift, the last":        {9, drift, 0},
		"drift, reserve only":    {10, drift, requestInterval},
		"drift, nothing left":    {30, drift, 21 * requestInterval},
		"unknown, reserve only":  {10, drift + 1, requestInterval},
		"negative, the last":     {29, -1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &budget{}
				for range test.spent {
					if err := b.ask(t, change); err != nil {
						t.Fatal(err)
					}
				}
				err := b.ask(t, test.priority)
				if test.wait == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantTurn(t, err, test.wait)
				pass(test.wait - 1)
				if b.ask(t, test.priority) == nil {
					t.Error("served before its turn")
				}
				pass(1)
				if err := b.ask(t, test.priority); err != nil {
					t.Errorf("at its turn: %v", err)
				}
			})
		})
	}
}

func TestChangesFindTheReserve(t *testing.T) {
	left := map[provider.Priority]int{
		provider.PriorityDeletion: 5, provider.PriorityStart: 10, provider.PriorityDrift: 29,
	}
	for p, want := range left {
		b := &budget{}
		b.drain(t, p)
		if got := b.drain(t, provider.PriorityChange); got != want {
			t.Errorf("after all calls of priority %d, %d changes are served at once, want %d", p, got, want)
		}
	}
}

func TestBudgetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		take := func() error { return b.take(t.Context(), time.Now().Add(patience)) }
		start := time.Now()
		for range requestBurst {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		wantElapsed(t, start, 0)
		for range 6 {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		wantElapsed(t, start, 6*requestInterval)
		pass(time.Hour)
		if got := b.drain(t, provider.PriorityChange); got != requestBurst {
			t.Errorf("%d requests at once after an hour, want %d", got, requestBurst)
		}
	})
}

func TestTurnsFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		for range 20 {
			if err := b.ask(t, provider.PriorityStart); err != nil {
				t.Fatal(err)
			}
		}
		for k := range 5 {
			wantTurn(t, b.ask(t, provider.PriorityStart), time.Duration(k+1)*requestInterval)
		}
		// Drift comes when the budget has its reserve back after all of those.
		wantTurn(t, b.ask(t, provider.PriorityDrift), (5+11)*requestInterval)
		wantTurn(t, b.ask(t, provider.PriorityDrift), (5+11)*requestInterval+time.Second)
		// What drift was promised is nothing to start.
		wantTurn(t, b.ask(t, provider.PriorityStart), 6*requestInterval)
		// The schedule is forgotten when its time is over.
		pass(time.Minute)
		for range 20 {
			if err := b.ask(t, provider.PriorityStart); err != nil {
				t.Fatal(err)
			}
		}
		wantTurn(t, b.ask(t, provider.PriorityStart), requestInterval)
	})
}

func TestUnusedSlotsAreNobodysLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.drain(t, provider.PriorityChange)
		wantTurn(t, b.ask(t, provider.PriorityDrift), (1+21)*requestInterval)
		pass(requestInterval) // the change does not come back
		wantTurn(t, b.ask(t, provider.PriorityStart), 10*requestInterval)
	})
}

func TestBudgetBeyondPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		start := time.Now()
		latest := start.Add(patience)
		inTime := requestBurst + int(patience/requestInterval)
		for range inTime {
			go func() {
				if err := b.take(t.Context(), latest); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		wantElapsed(t, start, 0)
		for k := range 2 {
			wantTurn(t, b.take(t.Context(), latest), time.Duration(inTime-requestBurst+k+1)*requestInterval)
		}
		wantElapsed(t, start, 0)
		pass(patience)
	})
}

// A wait that is spent is told of once, as long as it was; a call that does not
// wait, or is turned away, tells of none.
func TestBudgetTellsOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		ctx := provider.WithWaitReporter(t.Context(), func(wait time.Duration) { waits = append(waits, wait) })
		b := &budget{}
		for range requestBurst {
			if err := b.take(ctx, time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.take(ctx, time.Now()); err == nil {
			t.Error("the budget has more than it holds")
		}
		if len(waits) > 0 {
			t.Errorf("waits %v without any", waits)
		}
		before := time.Now()
		if err := b.take(ctx, time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if want := time.Since(before); want == 0 || len(waits) != 1 || waits[0] != want {
			t.Errorf("waits %v, want %s", waits, want)
		}
	})
}

func TestDeletionMakesWayForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.drain(t, provider.PriorityDeletion)
		pass(requestInterval) // what the drain was promised goes unused
		b.drain(t, provider.PriorityDeletion)
		pass(10 * time.Millisecond)
		start := time.Now()
		var took time.Duration
		go func() {
			ctx := provider.WithPriority(t.Context(), provider.PriorityDeletion)
			if err := b.take(ctx, start.Add(patience)); err != nil {
				t.Error(err)
			}
			took = time.Since(start)
		}()
		synctest.Wait()
		for range 2 {
			if err := b.ask(t, provider.PriorityChange); err != nil {
				t.Errorf("a change behind a waiting deletion: %v", err)
			}
		}
		pass(patience)
		synctest.Wait()
		if took < 2*requestInterval || took > patience {
			t.Errorf("the deletion waited %s", took)
		}
	})
}

func TestHoldDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.hold(time.Second)
		b.hold(0) // a shorter hold changes nothing
		var err error
		go func() { err = b.take(t.Context(), time.Now().Add(patience)) }()
		pass(time.Second / 2)
		b.hold(10 * time.Second)
		pass(time.Second)
		synctest.Wait()
		wantLimited(t, err, 10*time.Second) // 9.5 seconds, rounded up
	})
}

func TestHoldIsForAllPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, other := &budget{}, &budget{}
		b.hold(time.Second)
		for p := range provider.Priority(len(byPriority)) {
			wantLimited(t, b.ask(t, p), time.Second)
			if err := other.ask(t, p); err != nil {
				t.Errorf("priority %d of another token: %v", p, err)
			}
		}
		start := time.Now()
		ctx := provider.WithPriority(t.Context(), provider.PriorityStart)
		wantLimited(t, b.take(ctx, start.Add(patience)), time.Second)
		wantElapsed(t, start, 0)
		pass(time.Second - 1)
		wantLimited(t, b.ask(t, provider.PriorityChange), time.Second)
		pass(1)
		if err := b.ask(t, provider.PriorityChange); err != nil {
			t.Errorf("after the hold: %v", err)
		}
	})
}

func TestBudgetWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		b.hold(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.take(ctx, time.Now().Add(patience)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestBudgetsAreByToken(t *testing.T) {
	token, other := rand.Text(), rand.Text()
	first, second := budgetOf(token), budgetOf(token)
	if first != second {
		t.Error("one token has two budgets")
	}
	if first == budgetOf(other) {
		t.Error("two tokens share a budget")
	}
}
