// Package web serves the page of the command ui: what [plan.Build] says about a cluster or
// manifests, as HTML. It reads nothing itself; a [Feed] contains what it shows.
package web

import (
	"context"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// Snapshot is a plan and what it was made from. It does not change after [Feed.Publish].
type Snapshot struct {
	// Version identifies the snapshot; [Feed.Publish] sets it.
	Version int64
	Plan    *plan.Plan
	// Before is the plan for the cluster without the manifests; nil unless manifests are
	// shown on top of a cluster.
	Before *plan.Plan
	// Warnings are what the command plan prints to the standard error.
	Warnings []string
	// Compare returns the plan with the differences to Cloudflare, which it reads; the error is
	// about what it could not read. It is nil without an API token for Cloudflare.
	Compare func(context.Context) (*plan.Plan, error)
	// Time is when the objects were read.
	Time time.Time

	tables tables

	compareOnce sync.Once
	changed     *plan.Changes
	changesErr  error
}

// changes returns what the manifests change. Before must not be nil.
func (s *Snapshot) changes() (*plan.Changes, error) {
	s.compareOnce.Do(func() { s.changed, s.changesErr = s.Plan.ChangesFrom(s.Before) })
	return s.changed, s.changesErr
}

// State is the newest snapshot, and whether it is current.
type State struct {
	// Snapshot is nil until the first one was published.
	Snapshot *Snapshot
	// Revision counts the States, so that an older page does not replace a newer one.
	Revision int64
	// Problem says why the snapshot may be out of date; empty if it is current.
	Problem string
	// Changed is closed when there is another State.
	Changed <-chan struct{}
}

// Feed contains the newest State. Its methods may be called concurrently.
type Feed struct {
	mu      sync.Mutex
	state   State
	changed chan struct{}
	version int64
}

// NewFeed returns a Feed without a snapshot.
func NewFeed() *Feed {
	f := &Feed{}
	f.replace("")
	return f
}

// Publish replaces the snapshot and ends a problem.
func (f *Feed) Publish(s *Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	s.Version = f.version
	f.state.Snapshot = s
	f.replace("")
}

// Fail keeps the snapshot, and records why it may be out of date.
func (f *Feed) Fail(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Problem != problem {
		f.replace(problem)
	}
}

// replace sets the problem and informs everyone who waits.
func (f *Feed) replace(problem string) {
	if f.changed != nil {
		close(f.changed)
	}
	f.changed = make(chan struct{})
	f.state.Revision++
	f.state.Problem, f.state.Changed = problem, f.changed
}

// State returns the newest state.
func (f *Feed) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}
