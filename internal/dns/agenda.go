package dns

import (
	"fmt"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// noRecord is the record of a name without one.
var noRecord = provider.Record{}

// agenda is every change that a zone needs: what can be done now, and what the others wait
// for.
type agenda struct {
	*situation
	// creates and edits are the changes that can be made now, in their order. An edit
	// changes an existing record.
	creates, edits []change
	// waiting has why a change waits, by name.
	waiting map[string]waiting
	// confirm are the names for which a change waits until a read shows their records,
	// and confirmAt is when the first of them can.
	confirm   map[string]bool
	confirmAt Instant
	// outcomes are the adoption requests that end without a change, and unread the names of
	// the requests that need a read first.
	outcomes []AdoptionOutcome
	unread   []string
	// wake is when the next change is due.
	wake Instant

	dependents *dependents
	// scheduled has why a creation cannot be made now, by name; "" if it is on the agenda
	// or waits for a change that is.
	scheduled map[string]string
	// chosen is the Gateway that gets the record of a hostname.
	chosen map[string]*party
	// records counts each namespace's records, including the records that it may create,
	// whose names are counted.
	records map[string]int
	counted map[string]bool
	// free is how many records the zone can still have, and full reports whether a record
	// waits for the quota.
	free int
	full bool
}

// waiting is why a change waits.
type waiting struct {
	change  change
	reason  conditions.Reason
	message string
}

// newAgenda returns the agenda for a zone whose records were read.
func newAgenda(s *situation) *agenda {
	a := &agenda{situation: s, waiting: map[string]waiting{}, confirm: map[string]bool{}, scheduled: map[string]string{}, chosen: map[string]*party{}, free: s.free()}
	due := a.collectAdoptions()
	for _, name := range s.names() {
		c, ok := s.needed(name)
		if !ok {
			continue
		}
		a.chosen[name] = c.party
		if a.isDue(c) {
			due = append(due, c)
		}
	}
	due = a.withinLimits(due)
	if len(due) > 0 {
		a.dependents = newDependents(s)
	}
	for _, c := range s.inTurns(due) {
		a.schedule(c)
	}
	a.creates = s.inTurns(a.creates)
	return a
}

// isDue reports whether the change can be made now, ignoring limits and other names.
// Otherwise it notes what the change waits for.
func (a *agenda) isDue(c change) bool {
	if a.immediate {
		return true
	}
	if r, ok := a.refusal(c.Name); ok {
		a.wakeAt(r.until)
		a.wait(c, conditions.ReasonPending, r.message)
		return false
	}
	if c.due > a.Uptime {
		a.wakeAt(c.due)
		a.wait(c, conditions.ReasonPending, "the record leads to another Gateway that no longer serves the hostname. "+
			"The controller moves it after dns.deletionDelay.")
		return false
	}
	return true
}

func (a *agenda) wait(c change, reason conditions.Reason, message string) {
	a.waiting[c.Name] = waiting{change: c, reason: reason, message: message}
}

func (a *agenda) wakeAt(uptime time.Duration) {
	if !a.wake.IsSet() || uptime < a.wake.at {
		a.wake = At(uptime)
	}
}

// schedule puts the change on the agenda, or what must happen before it. It returns why
// the change cannot be made, or "" if it is on the agenda or waits for a change that is.
func (a *agenda) schedule(c change) (obstacle string) {
	if c.Operation == Create {
		if known, ok := a.scheduled[c.Name]; ok {
			return known
		}
		// Two names can be in each other's way until the nameservers have noticed a wildcard.
		a.scheduled[c.Name] = ""
		defer func() { a.scheduled[c.Name] = obstacle }()
	}
	obstacle, ready := a.protectDependents(c)
	switch {
	case !ready && !a.immediate:
		return obstacle
	case c.Operation != Create:
		a.edits = append(a.edits, c)
	case a.free <= 0:
		a.full = true
		a.wait(c, conditions.ReasonQuotaExceeded, a.quotaMessage())
		return "the zone's record quota is used up"
	default:
		a.free--
		a.creates = append(a.creates, c)
	}
	return ""
}

// protectDependents schedules the records of the hostnames that the change would affect. It
// reports whether the change can be made now, and otherwise why one of them cannot have a
// record, or "".
func (a *agenda) protectDependents(c change) (obstacle string, ready bool) {
	ready = true
	for _, w := range a.dependents.affected(c) {
		ready = false
		why := a.scheduleProtection(c, w)
		if _, waits := a.waiting[c.Name]; !waits || obstacle == "" && why != "" {
			a.wait(c, conditions.ReasonPending, waitsFor(w, why))
		}
		if obstacle == "" {
			obstacle = why
		}
	}
	return obstacle, ready
}

// scheduleProtection puts the dependent's own record on the agenda, or a read that
// confirms it. It returns why the record cannot be created before the change, or "".
func (a *agenda) scheduleProtection(before change, w dependent) (obstacle string) {
	p := a.protect(w)
	if p.confirm.IsSet() {
		a.awaitRead(w.hostname.Name, p.confirm.at)
		return ""
	}
	switch {
	case p.create == nil:
		return p.obstacle
	case !a.mayProtect(before, *p.create):
		return fmt.Sprintf("namespace %s has reached dns.maxRecordsPerNamespace", before.namespace)
	}
	return a.schedule(*p.create)
}

// awaitRead notes that a change waits for a read that shows the name's record.
func (a *agenda) awaitRead(name string, from time.Duration) {
	a.confirm[name] = true
	if !a.confirmAt.IsSet() || from < a.confirmAt.at {
		a.confirmAt = At(from)
	}
}
