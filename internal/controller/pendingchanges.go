package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// pendingChanges knows since when a key has changes that no push has carried out.
type pendingChanges struct {
	now func() time.Time
	// report is told since when a Gateway's oldest change waits, or the zero time
	// when none does.
	report func(types.NamespacedName, time.Time)

	mu sync.Mutex
	// queued are those that no pass looks at, and looked those that one does.
	queued, inProgress map[state.Key]time.Time
}

func newPendingChanges(now func() time.Time, waits func(types.NamespacedName, time.Time)) *pendingChanges {
	return &pendingChanges{now: now, report: waits, queued: map[state.Key]time.Time{}, inProgress: map[state.Key]time.Time{}}
}

// add notes a change of something that affects the key.
func (c *pendingChanges) add(key state.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued[key].IsZero() {
		c.queued[key] = c.now()
		c.reportOldest(key)
	}
}

// start returns since when there are changes, or zero, for the pass that looks at
// them now.
func (c *pendingChanges) start(key state.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.queued[key]
	delete(c.queued, key)
	if !since.IsZero() {
		c.inProgress[key] = since
	}
	return since
}

// finish ends what take began. What waits goes on waiting; the rest is done, or
// is not to be done.
func (c *pendingChanges) finish(key state.Key, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits {
		c.queued[key] = c.oldest(key)
	}
	delete(c.inProgress, key)
	if c.queued[key].IsZero() {
		delete(c.queued, key)
	}
	c.reportOldest(key)
}

func (c *pendingChanges) oldest(key state.Key) time.Time {
	since, looked := c.queued[key], c.inProgress[key]
	if since.IsZero() || !looked.IsZero() && looked.Before(since) {
		return looked
	}
	return since
}

func (c *pendingChanges) reportOldest(key state.Key) {
	if key.Kind == gateway.KindGateway {
		c.report(key.NamespacedName, c.oldest(key))
	}
}
