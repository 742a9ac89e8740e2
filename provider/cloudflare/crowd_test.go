package cloudflare

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// crowd is many callers that begin at once, each of which comes back when it
// is told, and a little later: their queue is busy too.
type crowd struct {
	began    time.Time
	mu       sync.Mutex
	served   []time.Duration // since the beginning
	rejected []int           // by caller
	callers  sync.WaitGroup
}

func gather(t *testing.T, b *budget, size int, p provider.Priority) *crowd {
	t.Helper()
	c := &crowd{began: time.Now(), rejected: make([]int, size)}
	for i := range size {
		late := time.Duration(i*37%400) * time.Millisecond
		c.callers.Go(func() {
			for {
				err := b.take(provider.WithPriority(t.Context(), p), time.Now().Add(patience))
				if err == nil {
					break
				}
				wait, ok := provider.RetryAfter(err)
				if !ok || wait <= 0 {
					t.Errorf("told %v", err)
					return
				}
				c.rejected[i]++
				pass(wait + late)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.served = append(c.served, time.Since(c.began))
		})
	}
	return c
}

// want waits for all callers and checks that the request after the first burst
// ones came at their distance and all were served by the end.
func (c *crowd) want(t *testing.T, burst int, distance, end time.Duration) {
	t.Helper()
	c.callers.Wait()
	if len(c.served) != len(c.rejected) {
		t.Fatalf("%d of %d were served", len(c.served), len(c.rejected))
	}
	slices.Sort(c.served)
	for n, at := range c.served[burst:] {
		if at < time.Duration(n+1)*distance {
			t.Fatalf("number %d was served after %s, above the rate", burst+n, at)
		}
	}
	if last := c.served[len(c.served)-1]; last > end {
		t.Errorf("the last was served after %s, want %s at most", last, end)
	}
	if most := slices.Max(c.rejected); most > 2 {
		t.Errorf("somebody was turned away %d times", most)
	}
}

func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		c := gather(t, b, 500, provider.PriorityStart)
		pass(time.Minute)
		start := time.Now()
		for range 5 {
			if err := b.take(t.Context(), start.Add(patience)); err != nil {
				t.Error(err)
			}
		}
		wantElapsed(t, start, 0)
		c.want(t, 20, requestInterval, (480+5+2)*requestInterval+time.Second)
	})
}

func TestDriftOfManyGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, &budget{}, 500, provider.PriorityDrift)
		c.want(t, 1, time.Second, 500*time.Second+time.Minute)
		for i, at := range c.served[1:] {
			if at-c.served[i] < time.Second/2 {
				t.Fatalf("drift at %s and again at %s", c.served[i], at)
			}
		}
	})
}

// Deletions wait in line for a while, changes are not their business.
func TestManyDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, &budget{}, 100, provider.PriorityDeletion)
		c.want(t, 25, requestInterval, 75*requestInterval+time.Second)
	})
}
