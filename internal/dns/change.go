package dns

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// change is a change that the zone needs, or will need.
type change struct {
	Change
	// party is the Gateway that the record leads to afterwards, or did before a Delete or
	// Release; it can be nil.
	party *party
	// record is the record to change; empty for Create.
	record provider.Record
	// namespace is the namespace whose turn it is, and that the record counts for; "" if
	// it is unknown. created is the age of its hostname.
	namespace string
	created   time.Time
	// due is the uptime at which the change may be made.
	due time.Duration
	// adoption is the outcome of the request that the change fulfills.
	adoption *AdoptionOutcome
}

// refusal returns why the last attempts to change the name's record have failed, if they
// are not repeated yet.
func (s *situation) refusal(name string) (refusal, bool) {
	r := s.Memory.refused[name]
	return r, r.counts && s.Uptime < r.until
}

// needed returns the change that the name needs, ignoring limits and other names. It
// returns false if it needs none, or if a fact must change first.
func (s *situation) needed(name string) (change, bool) {
	own := s.view.set(name)
	r, ok := own.address()
	switch {
	case ok && own.marked:
		return s.neededForRecord(name, r)
	case ok || s.view.delegated(name, s.Zone):
		return change{}, false
	}
	return s.creation(name)
}

// neededForRecord returns the change that a record with a valid mark needs.
func (s *situation) neededForRecord(name string, r provider.Record) (change, bool) {
	holder := s.byTarget[target(r)]
	if s.excludes(name, holder) {
		return s.changeOf(Release, name, holder, r), holder != nil && (holder.State == ownership.Accepted || holder.State == ownership.Retiring)
	}
	if holder != nil {
		if c, holds := s.claimOf(name, holder); holds {
			repair := s.changeOf(Repair, name, holder, r)
			repair.namespace = c.hostname.Namespace
			return repair, needsRepair(r) && holder.State == ownership.Accepted && !c.elsewhere
		}
	}
	if !s.GatewaysKnown || holder != nil && s.keeps(name, holder) {
		return change{}, false
	}
	if s.wanted(name) {
		return s.move(name, r)
	}
	return s.deletion(name, holder, r)
}

// excludes reports whether the record of the name is excluded: by the GatewayClass of the
// Gateway to which it leads, or, if that is gone, by any one.
func (s *situation) excludes(name string, holder *party) bool {
	if holder != nil && holder.class != nil {
		return holder.class.excluded.Permits(name)
	}
	for _, c := range s.Classes {
		if Excludes(c.Settings, name) {
			return true
		}
	}
	return false
}

func (s *situation) changeOf(o Operation, name string, p *party, r provider.Record) change {
	c := change{Change: Change{Operation: o, Name: name}, party: p, record: r, namespace: s.Memory.traces[name].namespace}
	if p != nil {
		c.Gateway = p.NamespacedName
	}
	return c
}

// deletion returns the deletion of a record that no Gateway wants. The record of a Gateway
// that retires is deleted at once. A record without a Gateway is an orphan and remains.
func (s *situation) deletion(name string, holder *party, r provider.Record) (change, bool) {
	if holder == nil || holder.State == ownership.Departed {
		return change{}, false
	}
	c := s.changeOf(Delete, name, holder, r)
	if holder.State == ownership.Retiring {
		return c, true
	}
	unwanted := s.Memory.traces[name].unwanted
	c.due = unwanted.at + s.delay()
	return c, unwanted.IsSet() || s.immediate
}

// move returns the move of a record to the oldest Gateway that may have it first.
func (s *situation) move(name string, r provider.Record) (change, bool) {
	heir, due, ok := s.heir(name, func(*party) bool { return true })
	if !ok {
		return change{}, false
	}
	c := s.changeOf(Move, name, heir.party, r)
	c.namespace, c.created, c.due = heir.hostname.Namespace, heir.hostname.Created, due
	return c, true
}

// heir returns the Gateway that may have the hostname first, and from which uptime. A
// Gateway whose listener is in the namespace that held the hostname may have it at once;
// the others may have it after the deletion delay. Among those, the oldest one counts.
func (s *situation) heir(name string, eligible func(*party) bool) (heir claim, due time.Duration, ok bool) {
	t, traced := s.Memory.traces[name]
	for _, c := range s.claims[name] {
		if !c.mayHaveRecord() || !eligible(c.party) {
			continue
		}
		from := time.Duration(0)
		if traced && !s.immediate && !s.movesAtOnce(t, c) {
			if !t.unheld.IsSet() {
				continue
			}
			from = t.unheld.at + s.delay()
		}
		if from = max(from, s.Uptime); !ok || from < due {
			heir, due, ok = c, from, true
		}
	}
	return heir, due, ok
}

// movesAtOnce reports whether the claim's Gateway may have a released hostname at once: the
// listener is in the namespace that held it, and the tunnel of the holder is not retained.
func (s *situation) movesAtOnce(t trace, c claim) bool {
	holder := s.byTarget[t.target]
	return t.namespace != "" && t.namespace == c.hostname.Namespace && (holder == nil || holder.State != ownership.Departed)
}

// mayHaveRecord reports whether a record may be created for the claim, or moved to its
// Gateway.
func (c claim) mayHaveRecord() bool {
	return c.mayDepend() && c.hostname.Served && c.State == ownership.Accepted && c.Connected
}

// mayDepend reports whether the hostname may have a record in the zone, and can lead to the
// Gateway's tunnel.
func (c claim) mayDepend() bool {
	return c.permitted && !c.elsewhere && c.target != "" && canBeLookedUp(c.hostname.Name)
}

// creation returns the creation of the record of a hostname that has none.
func (s *situation) creation(name string) (change, bool) {
	if s.heldByWildcard(name) {
		return change{}, false
	}
	heir, due, ok := s.heir(name, func(p *party) bool { return s.verdict(name, p) == VerdictMissing })
	if !ok {
		return change{}, false
	}
	c := s.changeOf(Create, name, heir.party, provider.Record{})
	c.namespace, c.created, c.due = heir.hostname.Namespace, heir.hostname.Created, due
	return c, true
}

// heldByWildcard reports whether a Gateway may hold the hostname through a wildcard, and
// does not release it: because of its state, or because it is not known.
func (s *situation) heldByWildcard(name string) bool {
	if s.view.set(name) != nil {
		return false
	}
	wildcard := s.view.set(s.view.wildcard(name, s.Zone))
	if wildcard == nil {
		return false
	}
	leads, _ := s.view.leads(wildcard, s.Zone)
	holder := s.byTarget[leads]
	if holder == nil {
		return !s.GatewaysKnown && (wildcard.marked || isTunnel(leads))
	}
	_, traced := s.Memory.traces[name]
	return holder.State == ownership.Unknown || traced && s.keeps(name, holder)
}
