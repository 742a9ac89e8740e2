package xds

import (
	"cmp"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State summarizes what a Gateway's Envoys have.
type State struct {
	// Connected counts the Envoys that have a stream.
	Connected int
	// Known is false until the server has listened for 15 seconds or an Envoy for the
	// Gateway has connected. Until then, Connected has no meaning.
	Known bool
	// Published reports whether this leader has published the Gateway's configuration,
	// valid or not.
	Published bool
	// Acknowledged is the newest Sequence whose resources every connected Envoy has
	// acknowledged, or 0. Publishing the same sequence again does not lower it.
	Acknowledged int64
	// Complete reports whether an Envoy is connected, and every connected Envoy has
	// acknowledged the last publication. The server reports a change only for
	// [Publication.WantsAcknowledgement].
	Complete bool
	// Late reports whether a connected Envoy does not have the last publication, and
	// has not completed any publication for at least five seconds.
	Late bool
	// Rejected explains why the current publication is not valid, or is the last error
	// with which an Envoy rejected it: at most 200 characters without control
	// characters. It is empty after Envoy has acknowledged a newer publication.
	Rejected string
}

// knownAfter is the time after which an Envoy that has not connected counts as
// disconnected. An Envoy reconnects within a second, and looks up the leader's address
// each second.
const knownAfter = 15 * time.Second

// State returns the [State] for the named Gateway.
func (s *Server) State(name types.NamespacedName) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[name]
	if g == nil {
		return State{Known: s.isKnown}
	}
	return s.state(g)
}

// state returns a Gateway's state. The caller holds the lock.
func (s *Server) state(g *gateway) State {
	state := State{
		Connected: len(g.streams), Known: s.isKnown || g.hasConnected,
		Published: g.published != nil || g.refused != "", Rejected: cmp.Or(g.refused, g.rejected.problem),
		Complete: g.isComplete(),
	}
	if g.published != nil && state.Connected > 0 {
		state.Acknowledged = math.MaxInt64
		for st := range g.streams {
			state.Acknowledged = min(state.Acknowledged, g.acknowledgedBy(st))
			state.Late = state.Late || st.isLate
		}
	}
	return state
}

// isComplete returns [State.Complete]. The caller holds the lock.
func (g *gateway) isComplete() bool {
	if g.published == nil || len(g.streams) == 0 {
		return false
	}
	for st := range g.streams {
		if st.completed != g.published.edition {
			return false
		}
	}
	return true
}

// findLate compares the streams with the last call, which was one [sweepInterval] ago.
func (g *gateway) findLate() {
	for st := range g.streams {
		isBehind := g.published != nil && st.completed != g.published.edition
		st.isLate = isBehind && st.wasBehind && st.completed == st.lastCompleted
		st.wasBehind, st.lastCompleted = isBehind, st.completed
	}
}

// acknowledgedBy returns the newest sequence whose resources the stream's Envoy has all
// acknowledged.
func (g *gateway) acknowledgedBy(st *stream) int64 {
	if g.published != nil && st.completed == g.published.edition {
		return g.sequence
	}
	return st.sequence
}

// settle ends a change to the Gateway: it returns a function that reports the change,
// which the caller calls without the lock.
func (s *Server) settle(g *gateway) (report func()) {
	state := s.state(g)
	arrived := g.hasArrived(state)
	// The caller of Publish knows that it has published.
	changed := state
	changed.Published, changed.Complete = g.reported.Published, g.reported.Complete
	if changed == g.reported && !arrived {
		g.reported = state
		return func() {}
	}
	isProgress := arrived || state.Acknowledged > g.progress
	if s.gateways[g.name] != g || !isProgress && !g.reports.Allow() {
		return func() {}
	}
	if arrived {
		g.arrived = g.wanted
	}
	g.reported, g.progress = state, max(g.progress, state.Acknowledged)
	return func() { s.options.Changed(g.name) }
}

// hasArrived reports whether the acknowledgements that Publish's caller awaits are
// complete, and were not reported yet.
func (g *gateway) hasArrived(state State) bool {
	return state.Complete && g.wanted > g.arrived && g.wanted == g.published.edition
}
