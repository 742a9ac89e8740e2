package cloudflare

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// callers are many callers that start together. Each caller retries after the wait
// that it was given plus a delay, as after a wait in a work queue.
type callers struct {
	start    time.Time
	mu       sync.Mutex
	finished []time.Duration // since start
	rejected []int           // rejections by caller
	running  sync.WaitGroup
}

func startCallers(t *testing.T, b *budget, size int, p provider.Priority) *callers {
	t.Helper()
	c := &callers{start: time.Now(), rejected: make([]int, size)}
	for i := range size {
		delay := time.Duration(i*37%400) * time.Millisecond
		c.running.Go(func() {
			for {
				err := b.acquire(provider.WithPriority(t.Context(), p), time.Now().Add(maxWait))
				if err == nil {
					break
				}
				wait, ok := provider.RetryAfter(err)
				if !ok || wait <= 0 {
					t.Errorf("got %v, want an error with a wait", err)
					return
				}
				c.rejected[i]++
				advance(wait + delay)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.finished = append(c.finished, time.Since(c.start))
		})
	}
	return c
}

// want waits for all callers. It checks that the callers after the first burst finished
// at least interval apart on average, and all callers before end.
func (c *callers) want(t *testing.T, burst int, interval, end time.Duration) {
	t.Helper()
	c.running.Wait()
	if len(c.finished) != len(c.rejected) {
		t.Fatalf("%d of %d callers finished", len(c.finished), len(c.rejected))
	}
	slices.Sort(c.finished)
	for n, at := range c.finished[burst:] {
		if at < time.Duration(n+1)*interval {
			t.Fatalf("caller %d finished after %s, above the rate", burst+n, at)
		}
	}
	if last := c.finished[len(c.finished)-1]; last > end {
		t.Errorf("the last caller finished after %s, want %s at most", last, end)
	}
	if maximum := slices.Max(c.rejected); maximum > 2 {
		t.Errorf("a caller was rejected %d times, want 2 at most", maximum)
	}
}

func TestChangesDoNotWaitForAStartWithManyGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		c := startCallers(t, b, 500, provider.PriorityStart)
		advance(time.Minute)
		start := time.Now()
		for range 5 {
			if err := b.acquire(t.Context(), start.Add(maxWait)); err != nil {
				t.Error(err)
			}
		}
		wantElapsed(t, start, 0)
		c.want(t, 20, requestInterval, (480+5+2)*requestInterval+time.Second)
	})
}

func TestDriftReadsOfManyGatewaysAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCallers(t, &budget{}, 500, provider.PriorityDrift)
		c.want(t, 1, time.Second, 500*time.Second+time.Minute)
		for i, at := range c.finished[1:] {
			if at-c.finished[i] < time.Second/2 {
				t.Fatalf("drift read after %s and again after %s", c.finished[i], at)
			}
		}
	})
}

func TestManyDeletionsFinishAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCallers(t, &budget{}, 100, provider.PriorityDeletion)
		c.want(t, 25, requestInterval, 75*requestInterval+time.Second)
	})
}
