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

func TestBudgetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(rand.Text())
		take := func() error { return b.take(t.Context(), time.Now().Add(patience)) }
		start := time.Now()
		for range requestBurst {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		wantElapsed(t, start, 0)
		for range 2 * requestsPerSecond {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start).Round(time.Millisecond); got != 2*time.Second {
			t.Errorf("%d requests beyond the burst took %s, want 2s", 2*requestsPerSecond, got)
		}
	})
}

func TestBudgetBeyondPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(rand.Text())
		start := time.Now()
		latest := start.Add(patience)
		inTime := requestBurst + int(patience.Seconds())*requestsPerSecond
		for range inTime {
			go func() { _ = b.take(t.Context(), latest) }()
		}
		synctest.Wait()
		wantElapsed(t, start, 0)
		// The next turn is a third of a second beyond, and stays with whoever
		// waits for it when this request does not.
		for range 2 {
			err := b.take(t.Context(), latest)
			limited, ok := errors.AsType[*provider.RateLimitedError](err)
			if !ok || limited.RetryAfter.Round(time.Millisecond) != 2333*time.Millisecond {
				t.Errorf("got %v, want to be limited for 2.333s", err)
			}
		}
		wantElapsed(t, start, 0)
		pass(patience)
	})
}

func TestHoldDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(rand.Text())
		b.hold(time.Second)
		b.hold(0) // a shorter hold changes nothing
		var err error
		go func() { err = b.take(t.Context(), time.Now().Add(patience)) }()
		pass(time.Second / 2)
		b.hold(10 * time.Second)
		pass(time.Second)
		synctest.Wait()
		wantLimited(t, err, 9500*time.Millisecond)
	})
}

func TestBudgetWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(rand.Text())
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
