package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// changes knows since when a key has changes that no push has carried out.
type changes struct {
	now func() time.Time
	// waits is told since when a Gateway's oldest change waits, or the zero time
	// when none does.
	waits func(types.NamespacedName, time.Time)

	mu sync.Mutex
	// since are those that no pass looks at, and looked those that one does.
	since, looked map[state.Key]time.Time
}

func newChanges(now func() time.Time, waits func(types.NamespacedName, time.Time)) *changes {
	return &changes{now: now, waits: waits, since: map[state.Key]time.Time{}, looked: map[state.Key]time.Time{}}
}

// notice notes a change of something that affects the key.
func (c *changes) notice(key state.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since[key].IsZero() {
		c.since[key] = c.now()
		c.tell(key)
	}
}

// take returns since when there are changes, or zero, for the pass that looks at
// them now.
func (c *changes) take(key state.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since[key]
	delete(c.since, key)
	if !since.IsZero() {
		c.looked[key] = since
	}
	return since
}

// ended ends what take began. What waits goes on waiting; the rest is done, or
// is not to be done.
func (c *changes) ended(key state.Key, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits {
		c.since[key] = c.oldest(key)
	}
	delete(c.looked, key)
	if c.since[key].IsZero() {
		delete(c.since, key)
	}
	c.tell(key)
}

func (c *changes) oldest(key state.Key) time.Time {
	since, looked := c.since[key], c.looked[key]
	if since.IsZero() || !looked.IsZero() && looked.Before(since) {
		return looked
	}
	return since
}

func (c *changes) tell(key state.Key) {
	if key.Kind == gateway.KindGateway {
		c.waits(key.NamespacedName, c.oldest(key))
	}
}
