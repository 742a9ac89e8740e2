package dns

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// propagation is how long the nameservers take to notice a change. Records of one batch
// are noticed in any order.
const propagation = time.Minute

// maxChain is the longest chain of CNAME records that is followed. Resolvers have similar
// limits.
const maxChain = 16

// view is an index of a zone's records. Nothing changes a view: later views share its
// sets.
type view struct {
	sets  map[string]*recordSet
	total int
	// unverified are the names whose marks [view.verified] has not looked at.
	unverified []string
	// marked counts the sets with a valid mark.
	marked int
}

// recordSet is the records with one name.
type recordSet struct {
	records []provider.Record // of all types, sorted
	// since is when this process first saw these records, and settled whether a read has
	// shown them when every nameserver had noticed them.
	since   Instant
	settled bool
	// before is the previous records with the name, which nameservers may still serve. It
	// is nil once the set is settled, and if there were none.
	before *recordSet
	// marked reports whether the set's address is a CNAME record with a valid mark.
	marked bool
}

// newView returns the index of a zone's records, which a request sent at that time has
// read. before is the previous index, or nil.
func newView(before *view, records []provider.Record, sent Instant) *view {
	v := &view{sets: make(map[string]*recordSet, len(records)), total: len(records), unverified: make([]string, 0, len(records))}
	for _, r := range records {
		v.add(r)
	}
	for name, set := range v.sets {
		set.adopt(before.set(name), sent)
		v.unverified = append(v.unverified, name)
	}
	slices.Sort(v.unverified)
	return v
}

func (v *view) add(r provider.Record) {
	set := v.sets[r.Name]
	if set == nil {
		set = &recordSet{}
		v.sets[r.Name] = set
	}
	set.records = append(set.records, r)
}

// adopt sorts a new set, and takes over from the previous one since when the records are
// known.
func (s *recordSet) adopt(before *recordSet, sent Instant) {
	slices.SortFunc(s.records, func(a, b provider.Record) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Content, b.Content), cmp.Compare(a.ID, b.ID))
	})
	s.since, s.before = sent, before.servedAt(sent)
	if before != nil && slices.EqualFunc(s.records, before.records, sameRecord) {
		s.since, s.before = before.since, before.before
		s.settled = before.settled || sent.at >= before.since.at+propagation
	}
	if s.settled {
		s.before = nil
	}
}

// servedAt returns the set, without the previous ones that no nameserver serves at that
// time. s can be nil.
func (s *recordSet) servedAt(at Instant) *recordSet {
	if s == nil || s.before == nil {
		return s
	}
	latest := *s
	latest.before = nil
	if at.at < s.since.at+propagation {
		latest.before = s.before.servedAt(at)
	}
	return &latest
}

func sameRecord(a, b provider.Record) bool {
	return a.ID == b.ID && a.Type == b.Type && a.Content == b.Content && a.Proxied == b.Proxied
}

// set returns the records with the name, or nil. v can be nil.
func (v *view) set(name string) *recordSet {
	if v == nil {
		return nil
	}
	return v.sets[name]
}

// with returns the view in which the names have exactly these records. sent is when the
// request that has read or changed them was sent.
func (v *view) with(names []string, records []provider.Record, sent Instant) *view {
	next := &view{sets: maps.Clone(v.sets), total: v.total, unverified: slices.Clone(v.unverified), marked: v.marked}
	for _, name := range names {
		if old := next.sets[name]; old != nil {
			next.total -= len(old.records)
			if old.marked {
				next.marked--
			}
			delete(next.sets, name)
		}
	}
	for _, r := range records {
		next.add(r)
	}
	next.total += len(records)
	for _, name := range names {
		if set := next.sets[name]; set != nil {
			set.adopt(v.sets[name], sent)
			next.unverified = append(next.unverified, name)
		}
	}
	slices.Sort(next.unverified)
	next.unverified = slices.Compact(next.unverified)
	return next
}

// verified returns the view in which every set's mark is verified. If the options have
// changed, all of them are verified again.
func (v *view) verified(zone provider.ZoneID, o Options, all bool) *view {
	if v == nil || !all && len(v.unverified) == 0 {
		return v
	}
	names := slices.Values(v.unverified)
	if all {
		names = maps.Keys(v.sets)
	}
	next := &view{sets: maps.Clone(v.sets), total: v.total, marked: v.marked}
	for name := range names {
		old := v.sets[name]
		if old == nil {
			continue
		}
		set := *old
		r, _ := set.address()
		set.marked = o.hasMark(zone, r)
		next.sets[name] = &set
		next.marked += count(set.marked) - count(old.marked)
	}
	return next
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// address returns the A, AAAA or CNAME record of the set, a CNAME record first, and
// whether it has one. s can be nil.
func (s *recordSet) address() (provider.Record, bool) {
	if s == nil {
		return provider.Record{}, false
	}
	found := -1
	for i, r := range s.records {
		if r.Type == typeCNAME || found < 0 && isAddress(r.Type) {
			found = i
		}
	}
	if found < 0 {
		return provider.Record{}, false
	}
	return s.records[found], true
}

// proxied reports whether Cloudflare proxies the name: one proxied record is enough.
func (s *recordSet) proxied() bool {
	return slices.ContainsFunc(s.records, func(r provider.Record) bool { return r.Proxied })
}

// delegated reports whether other nameservers answer for the name.
func (v *view) delegated(name, zone string) bool { return v.delegation(name, zone) != "" }

// delegation returns the name itself, or a name between it and the apex, that has NS
// records, or "".
func (v *view) delegation(name, zone string) string {
	for n := range upwards(name, zone) {
		if set := v.sets[n]; set != nil && slices.ContainsFunc(set.records, func(r provider.Record) bool { return r.Type == typeNS }) {
			return n
		}
	}
	return ""
}

// wildcard returns the name of the wildcard whose records answer for a name without
// records, or "". A record of any type at the name, or between the name and the wildcard,
// ends it. An empty non-terminal does not. (Source: Cloudflare's documentation of wildcard
// records, for its standard nameservers.)
func (v *view) wildcard(name, zone string) string {
	for n := range upwards(name, zone) {
		if v.sets[n] != nil {
			return ""
		}
		if w := "*." + parent(n); v.sets[w] != nil {
			return w
		}
	}
	return ""
}

// answer returns the records that answer for the name, and their name: its own, or those
// of a wildcard. They are nil if there are none.
func (v *view) answer(name, zone string) (*recordSet, string) {
	if own := v.sets[name]; own != nil {
		return own, name
	}
	w := v.wildcard(name, zone)
	return v.sets[w], w
}

// leads returns the last target of the chain of CNAME records that begins with the set,
// as far as the zone contains the chain, and whether Cloudflare proxies it. The target is
// "" if the chain ends with another record, or nowhere. One proxied record in the chain is
// enough: a record that is not proxied only leads the client to it.
func (v *view) leads(set *recordSet, zone string) (last string, proxied bool) {
	for range maxChain {
		r, ok := set.address()
		if !ok || r.Type != typeCNAME {
			return "", false
		}
		proxied = proxied || set.proxied()
		next := target(r)
		if !InZone(next, zone) {
			return next, proxied
		}
		if set, _ = v.answer(next, zone); set == nil || v.delegated(next, zone) {
			return "", false
		}
	}
	return "", false
}
