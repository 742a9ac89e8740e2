package dns

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// dependent is a wanted hostname that resolves to its Gateway through the records of other
// names: a wildcard, or a chain of CNAME records. Records that the nameservers may not have
// noticed yet do not count as the hostname's own.
type dependent struct {
	claim
	// looked is the name that is looked up: the hostname, or a name in its chain.
	looked string
}

// dependents is an index of the hostnames that would stop resolving if a record were
// created, moved or deleted.
type dependents struct {
	s *situation
	// through has the dependents whose lookup uses the records of a name.
	through map[string][]dependent
	// below has the dependents for which records with a name would end the wildcard: the
	// names from the one that is looked up to the one below the wildcard's parent.
	below map[string][]dependent
	// followed are the names that were looked up for the current hostname. Each is followed
	// once: nested wildcards have more paths than can be followed one by one.
	followed map[string]bool
}

func newDependents(s *situation) *dependents {
	d := &dependents{s: s, through: map[string][]dependent{}, below: map[string][]dependent{}, followed: map[string]bool{}}
	for name, claims := range s.claims {
		if s.view.delegated(name, s.Zone) {
			continue
		}
		for _, c := range claims {
			if c.mayDepend() {
				clear(d.followed)
				d.follow(dependent{claim: c, looked: name})
			}
		}
	}
	return d
}

// follow adds the dependent for every record that may answer for the name that is looked
// up, and follows chains of CNAME records.
func (d *dependents) follow(w dependent) {
	if d.followed[w.looked] {
		return
	}
	d.followed[w.looked] = true
	set := d.s.view.set(w.looked)
	for served := set; served != nil; served = served.before {
		d.chain(w, w.looked, served)
	}
	if set == nil || !set.settled {
		d.followWildcards(w)
	}
}

// followWildcards adds the dependent for every wildcard that may answer for the name that
// is looked up.
func (d *dependents) followWildcards(w dependent) {
	for n := range upwards(w.looked, d.s.Zone) {
		if other := d.s.view.set(n); n != w.looked && other != nil && other.settled {
			return
		}
		name := "*." + parent(n)
		wildcard := d.s.view.set(name)
		if wildcard == nil || name == w.looked {
			continue
		}
		if d.s.leadsTo(wildcard, w.party) {
			d.addBelow(w, n)
			d.through[name] = append(d.through[name], w)
			d.chain(w, name, wildcard)
		}
		if wildcard.settled {
			return
		}
	}
}

// addBelow adds the dependent to the names from the one that is looked up to the last.
func (d *dependents) addBelow(w dependent, last string) {
	for n := w.looked; ; n = parent(n) {
		d.below[n] = append(d.below[n], w)
		if n == last {
			return
		}
	}
}

// chain follows the set's CNAME record if it leads to a name in the zone, and from there to
// the dependent's tunnel. name is the set's name.
func (d *dependents) chain(w dependent, name string, set *recordSet) {
	if !d.s.leadsTo(set, w.party) {
		return
	}
	if name == w.looked && name != w.hostname.Name {
		d.through[name] = append(d.through[name], w)
	}
	r, _ := set.address()
	if next := target(r); InZone(next, d.s.Zone) {
		w.looked = next
		d.follow(w)
	}
}

// affected returns the dependents that the change would affect, apart from its own name:
// the oldest hostname first.
func (d *dependents) affected(c change) []dependent {
	var all []dependent
	switch c.Operation {
	case Move, Delete:
		all = d.through[c.Name]
	case Adopt:
		if c.replaces() {
			all = d.through[c.Name]
		}
	case Create:
		name := c.Name
		if isWildcard(name) {
			name = parent(name)
		}
		for _, w := range d.below[name] {
			if !isWildcard(c.Name) || w.looked != name {
				all = append(all, w)
			}
		}
	default: // Repair and Release change no target
	}
	var others []dependent
	for _, w := range all {
		if w.hostname.Name != c.Name {
			others = append(others, w)
		}
	}
	slices.SortFunc(others, func(a, b dependent) int {
		return cmp.Or(a.hostname.Created.Compare(b.hostname.Created), cmp.Compare(a.hostname.Name, b.hostname.Name))
	})
	return others
}

// protection is what must happen before a change, so that a dependent keeps resolving.
type protection struct {
	// create is the dependent's own record, which must be created first; nil if it exists
	// or cannot be created.
	create *change
	// confirm is from when a read can show that the nameservers have the dependent's own
	// record; unset if it does not exist.
	confirm Instant
	// obstacle is why the dependent's own record cannot be created, as a predicate whose
	// subject is the dependent's Gateway or record; "" if it can.
	obstacle string
}

// protect returns what must happen before the dependent may be affected.
func (s *situation) protect(w dependent) protection {
	name := w.hostname.Name
	own := s.view.set(name)
	if own != nil && !own.settled {
		return protection{confirm: At(own.since.at + propagation)}
	}
	if own != nil {
		return protection{obstacle: "its record leads through this name"}
	}
	if reason := stateObstacle(w.State); reason != "" {
		return protection{obstacle: reason}
	}
	if _, ok := s.refusal(name); ok {
		return protection{obstacle: "Cloudflare refuses its record"}
	}
	c := s.changeOf(Create, name, w.party, noRecord)
	c.namespace, c.created = w.hostname.Namespace, w.hostname.Created
	return protection{create: &c}
}

// stateObstacle returns why no record is created for a Gateway in the state, or "".
func stateObstacle(state ownership.State) string {
	switch state {
	case ownership.Unknown:
		return "the controller has not processed its Gateway yet"
	case ownership.Rejected:
		return "its Gateway is not accepted"
	case ownership.Frozen:
		return "its Gateway is paused, its Tunnel is blocked, or its GatewayClass does not manage the zone"
	case ownership.Departed, ownership.Retiring:
		return "its Gateway is gone"
	default: // Accepted
		return ""
	}
}

// waitsFor returns the message about a change that waits for a dependent.
func waitsFor(w dependent, obstacle string) string {
	if obstacle == "" {
		return fmt.Sprintf("the change would end the wildcard that answers for %s. It waits until that hostname has its own record.", w.hostname.Name)
	}
	return fmt.Sprintf("the change would end the wildcard that answers for %s, and no record can be created for that hostname first: %s.", w.hostname.Name, obstacle)
}
