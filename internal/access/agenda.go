package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// agenda is every write that the account needs: what can be written now, and what the others
// wait for.
type agenda struct {
	*situation
	decisions map[string]decision
	// due are the writes that can be made now, in their order.
	due []*change
	// findings have why a write waits, by hostname.
	findings map[string]finding
	// exceptions has a hostname below a wildcard whose bypass is outstanding, by wildcard.
	exceptions map[string]string
	// planned are the changes of each namespace that the next step makes.
	planned map[string]int
	room    room
	// wake is when the next write is due, and delayed counts the writes that wait for it.
	wake    Instant
	delayed int
	// outcomes are the adoption requests that end.
	outcomes []AdoptionOutcome
	// unread reports whether an adoption needs a new list.
	unread bool
}

// agendaIfManaged returns the agenda, or nil if nothing is decided.
func (s *situation) agendaIfManaged() *agenda {
	if !s.manages() {
		return nil
	}
	return newAgenda(s)
}

// newAgenda returns the agenda for an account whose applications were read.
func newAgenda(s *situation) *agenda {
	a := &agenda{
		situation: s, decisions: map[string]decision{}, findings: map[string]finding{}, exceptions: map[string]string{},
		planned: map[string]int{}, room: s.newRoom(),
	}
	var changes []*change
	for _, name := range s.names() {
		d := s.decide(name)
		a.decisions[name] = d
		a.noteException(d)
		changes = a.collect(changes, d)
	}
	for _, o := range s.remote.owned {
		if o.name == "" {
			changes = a.collect(changes, s.decideExtra(o))
		}
	}
	changes = append(changes, a.collectAdoptions()...)
	for _, c := range s.inTurns(changes) {
		if a.isFree(c) {
			a.due = append(a.due, c)
		}
	}
	return a
}

// collect adds the write that the decision needs, if it may be made now. Otherwise it notes
// why not.
func (a *agenda) collect(changes []*change, d decision) []*change {
	c, obstacle := a.needed(d)
	switch {
	case obstacle != nil:
		a.findings[d.name] = *obstacle
	case c == nil:
	case d.waits != "":
		a.findings[d.name] = finding{conditions.ReasonPending, d.waits}
	case a.isDue(c, d):
		return append(changes, c)
	}
	return changes
}

// isDue reports whether the write may be made now, ignoring other applications. Otherwise it
// notes what the write waits for.
func (a *agenda) isDue(c *change, d decision) bool {
	if a.immediate {
		return true
	}
	r, until := a.Memory.refused[c.Hostname], a.Memory.unanswered[c.Hostname]
	if a.Uptime < max(r.until, until) || until > 0 {
		a.wakeAt(max(r.until, until))
		a.findings[c.Hostname] = finding{cmp.Or(r.reason, conditions.ReasonPending), cmp.Or(r.message, lost)}
		return false
	}
	due := d.due
	if updated := a.Memory.traces[c.key].updated; c.spaced && updated.IsSet() {
		due = max(due, updated.at+updateInterval)
	}
	if due > a.Uptime {
		a.wakeAt(due)
		a.delayed++
		a.findings[c.Hostname] = finding{conditions.ReasonPending, "the controller changes the application in " + (due - a.Uptime).Round(time.Second).String() + "."}
		return false
	}
	return true
}

// noteException notes that the bypass of a hostname is outstanding. The wildcard's
// application waits for it, but not for one that Cloudflare refuses.
func (a *agenda) noteException(d decision) {
	i := slices.IndexFunc(a.claims[d.name], func(c *claim) bool { return c.bypass && c.problem == nil && c.isManaged() })
	if i < 0 || d.app != nil || a.Memory.refused[d.name].final {
		return
	}
	if a.claims[d.name][i].unready != "" || d.kind == create {
		a.exceptions[parentWildcard(d.name)] = d.name
	}
}

// isFree reports whether nothing else prevents the write: a limit, or the order in which a
// wildcard's application and its exceptions are made. The changes come in their order.
func (a *agenda) isFree(c *change) bool {
	if c.counts && !a.immediate {
		if due := a.changesDue(c.namespace, a.planned[c.namespace]); due > a.Uptime {
			a.wakeAt(due)
			a.delayed++
			a.findings[c.Hostname] = finding{conditions.ReasonPending, "namespace " + c.namespace + " has changed too many applications within five minutes. The controller continues in " +
				(due - a.Uptime).Round(time.Second).String() + "."}
			return false
		}
	}
	if c.Operation == Create {
		if exception := a.exceptions[c.Hostname]; exception != "" && !a.immediate {
			a.findings[c.Hostname] = finding{conditions.ReasonPending, "the controller creates the application after the exception for " + exception + ", which nothing protects."}
			return false
		}
		if obstacle := a.room.take(); obstacle != nil {
			a.findings[c.Hostname] = *obstacle
			if w := parentWildcard(c.Hostname); a.exceptions[w] == c.Hostname && obstacle.reason == conditions.ReasonLimitExceeded {
				delete(a.exceptions, w)
			}
			return false
		}
	}
	if c.counts {
		a.planned[c.namespace]++
	}
	return true
}

func (a *agenda) wakeAt(uptime time.Duration) {
	if !a.wake.IsSet() || uptime < a.wake.at {
		a.wake = At(uptime)
	}
}
