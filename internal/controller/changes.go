package controller

import (
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// changes knows since when a key has changes that no push has carried out.
type changes struct {
	now func() time.Time

	mu    sync.Mutex
	since map[state.Key]time.Time
}

func newChanges(now func() time.Time) *changes {
	return &changes{now: now, since: map[state.Key]time.Time{}}
}

// notice notes a change of something that affects the key.
func (c *changes) notice(key state.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.since[key]; !ok {
		c.since[key] = c.now()
	}
}

// take returns since when there are changes, or zero, for the pass that looks at
// them now.
func (c *changes) take(key state.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since[key]
	delete(c.since, key)
	return since
}

// putBack is for a pass that did not get done with them.
func (c *changes) putBack(key state.Key, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if newer, ok := c.since[key]; !since.IsZero() && (!ok || since.Before(newer)) {
		c.since[key] = since
	}
}
