package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// pendingChanges tracks each key's oldest change that has not been pushed.
type pendingChanges struct {
	now func() time.Time
	// report receives when a Gateway's oldest pending change arrived, or the zero time
	// if no change is pending.
	report func(types.NamespacedName, time.Time)

	memories *memories
}

// add records that an object which affects the key has changed.
func (c *pendingChanges) add(key state.Key) {
	c.memories.mu.Lock()
	defer c.memories.mu.Unlock()
	if m := c.memories.ensure(key); m.queued.IsZero() {
		m.queued = c.now()
		c.reportOldest(key, m)
	}
}

// start marks the key's queued changes as in progress when a reconcile starts. It
// returns when the oldest change arrived, or zero.
func (c *pendingChanges) start(key state.Key) time.Time {
	c.memories.mu.Lock()
	defer c.memories.mu.Unlock()
	m := c.memories.byKey[key]
	if m == nil || m.queued.IsZero() {
		return time.Time{}
	}
	oldest := m.queued
	m.queued, m.inProgress = time.Time{}, oldest
	return oldest
}

// finish removes the changes in progress when the reconcile ends. If they are still
// pending, it queues them again.
func (c *pendingChanges) finish(key state.Key, pending bool) {
	c.memories.mu.Lock()
	defer c.memories.mu.Unlock()
	m := c.memories.ensure(key)
	if pending {
		m.queued = m.oldestChange()
	}
	m.inProgress = time.Time{}
	c.reportOldest(key, m)
	c.memories.removeUnused(key)
}

// oldestChange returns when the oldest change arrived, or zero.
func (m *memory) oldestChange() time.Time {
	if m.queued.IsZero() || !m.inProgress.IsZero() && m.inProgress.Before(m.queued) {
		return m.inProgress
	}
	return m.queued
}

// reportOldest reports the oldest pending change if the key is a Gateway.
func (c *pendingChanges) reportOldest(key state.Key, m *memory) {
	if key.Kind == gateway.KindGateway {
		c.report(key.NamespacedName, m.oldestChange())
	}
}
