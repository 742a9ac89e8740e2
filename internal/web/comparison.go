package web

import (
	"context"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// compareTimeout limits how long reading from Cloudflare takes.
const compareTimeout = 2 * time.Minute

// comparison is what Cloudflare answered when a visitor asked for a comparison. Its fields are
// set when done is closed.
type comparison struct {
	number int64
	done   chan struct{}

	// Plan has a Diff for each Gateway that could be compared; nil if none could.
	Plan *plan.Plan
	// Problem is what could not be read; empty if everything was.
	Problem string
	// Time is when the answer was complete, and version identifies the snapshot.
	Time    time.Time
	version int64
}

// comparisons has the newest comparison. Pages ask for one by its number, so that a link
// reads from Cloudflare once, and updates do not.
type comparisons struct {
	mu     sync.Mutex
	newest *comparison
}

// get returns the comparison with the number, or a newer one. It reads from Cloudflare if
// there is none, and waits until the context ends.
func (c *comparisons) get(ctx context.Context, number int64, s *Snapshot) (*comparison, error) {
	c.mu.Lock()
	if c.newest == nil || c.newest.number < number {
		c.newest = &comparison{number: number, done: make(chan struct{}), version: s.Version}
		go c.newest.read(context.WithoutCancel(ctx), s) // other visitors wait for it too
	}
	wanted := c.newest
	c.mu.Unlock()
	select {
	case <-wanted.done:
		return wanted, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read compares the snapshot with Cloudflare.
func (c *comparison) read(ctx context.Context, s *Snapshot) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	compared, err := s.Compare(ctx)
	c.Plan, c.Time = compared, time.Now()
	if err != nil {
		c.Problem = err.Error()
	}
	close(c.done)
}
