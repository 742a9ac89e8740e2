package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// pendingChanges tracks the oldest change of each key that has not been pushed.
type pendingChanges struct {
	now func() time.Time
	// report receives the time of a Gateway's oldest pending change, or the zero time
	// if no change is pending.
	report func(types.NamespacedName, time.Time)

	mu sync.Mutex
	// queued contains the oldest unprocessed change of each key, and inProgress the
	// oldest change that the running reconcile processes.
	queued, inProgress map[state.Key]time.Time
}

func newPendingChanges(now func() time.Time, report func(types.NamespacedName, time.Time)) *pendingChanges {
	return &pendingChanges{now: now, report: report, queued: map[state.Key]time.Time{}, inProgress: map[state.Key]time.Time{}}
}

// add records a change of an object that affects the key.
func (c *pendingChanges) add(key state.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued[key].IsZero() {
		c.queued[key] = c.now()
		c.reportOldest(key)
	}
}

// start marks the queued changes of the key as in progress when a reconcile starts. It
// returns the time of the oldest change, or zero.
func (c *pendingChanges) start(key state.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest := c.queued[key]
	delete(c.queued, key)
	if !oldest.IsZero() {
		c.inProgress[key] = oldest
	}
	return oldest
}

// finish removes the changes in progress when the reconcile ends. If they are still
// pending, it queues them again.
func (c *pendingChanges) finish(key state.Key, pending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pending {
		c.queued[key] = c.oldest(key)
	}
	delete(c.inProgress, key)
	if c.queued[key].IsZero() {
		delete(c.queued, key)
	}
	c.reportOldest(key)
}

// oldest returns the time of the oldest change of the key, or zero.
func (c *pendingChanges) oldest(key state.Key) time.Time {
	queued, inProgress := c.queued[key], c.inProgress[key]
	if queued.IsZero() || !inProgress.IsZero() && inProgress.Before(queued) {
		return inProgress
	}
	return queued
}

// reportOldest reports the oldest pending change if the key is a Gateway.
func (c *pendingChanges) reportOldest(key state.Key) {
	if key.Kind == gateway.KindGateway {
		c.report(key.NamespacedName, c.oldest(key))
	}
}
