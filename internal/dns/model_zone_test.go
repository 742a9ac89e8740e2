package dns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	modelZoneName = "example.com"
	modelZoneID   = provider.ZoneID("z1")
	modelAccount  = "account"
	// modelPropagation is how long the nameservers take at most to notice a change.
	modelPropagation = time.Minute
)

// modelZone is a zone at Cloudflare. It is a value: a change replaces its slices.
type modelZone struct {
	// records is the database, sorted by name, type and ID.
	records []provider.Record
	// notices are the changes that some nameservers may not have noticed yet, in the order
	// in which they were made. Nameservers notice the changes of one record in order, and
	// those of different records in any order.
	notices []modelNotice
	created int
	quota   int
	// fixed reports whether Cloudflare refuses to change a record's type.
	fixed bool
	// account and status are what the API returns for the zone.
	account, status string
}

// modelNotice is one changed record.
type modelNotice struct {
	id            provider.RecordID
	before, after *provider.Record // nil: the record does not exist
	due           time.Duration    // when all nameservers have noticed
}

// modelAddress reports whether the record gives its name an address.
func modelAddress(r provider.Record) bool {
	return r.Type == "A" || r.Type == "AAAA" || r.Type == "CNAME"
}

// find returns the index of the record with the ID, or -1.
func (z *modelZone) find(id provider.RecordID) int {
	return slices.IndexFunc(z.records, func(r provider.Record) bool { return r.ID == id })
}

// named returns the records with the name.
func (z *modelZone) named(name string) []provider.Record {
	var found []provider.Record
	for _, r := range z.records {
		if r.Name == name {
			found = append(found, r)
		}
	}
	return found
}

// address returns the first address record with the name, or nil.
func (z *modelZone) address(name string) *provider.Record {
	for i := range z.records {
		if z.records[i].Name == name && modelAddress(z.records[i]) {
			return &z.records[i]
		}
	}
	return nil
}

// settle forgets the changes that all nameservers have noticed.
func (z *modelZone) settle(now time.Duration) {
	if slices.ContainsFunc(z.notices, func(n modelNotice) bool { return n.due <= now }) {
		z.notices = slices.DeleteFunc(slices.Clone(z.notices), func(n modelNotice) bool { return n.due <= now })
	}
}

// apply applies a batch as Cloudflare does: all operations in order, or none.
func (z *modelZone) apply(b provider.Batch, now time.Duration) ([]provider.Record, error) {
	next := *z
	next.records, next.notices = slices.Clone(z.records), slices.Clone(z.notices)
	var changed []provider.Record
	for _, id := range b.Deletes {
		if err := next.remove(id, now); err != nil {
			return nil, err
		}
	}
	for _, p := range b.Patches {
		r, err := next.patch(p, now)
		if err != nil {
			return nil, err
		}
		changed = append(changed, r)
	}
	for _, p := range b.Puts {
		r, err := next.put(p, now)
		if err != nil {
			return nil, err
		}
		changed = append(changed, r)
	}
	for _, c := range b.Creates {
		r, err := next.create(modelRecord(c), now)
		if err != nil {
			return nil, err
		}
		changed = append(changed, r)
	}
	slices.SortFunc(next.records, compareRecords)
	*z = next
	return changed, nil
}

func compareRecords(a, b provider.Record) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}

// modelRecord returns the record that Cloudflare stores for the CNAME.
func modelRecord(c provider.CNAME) provider.Record {
	return provider.Record{Name: c.Name, Type: "CNAME", Content: c.Target, Proxied: true, TTL: provider.AutomaticTTL, Comment: c.Comment}
}

func (z *modelZone) remove(id provider.RecordID, now time.Duration) error {
	i := z.find(id)
	if i < 0 {
		return provider.ErrRecordNotFound
	}
	old := z.records[i]
	z.records = slices.Delete(z.records, i, i+1)
	z.notice(id, &old, nil, now)
	return nil
}

func (z *modelZone) patch(p provider.Patch, now time.Duration) (provider.Record, error) {
	i := z.find(p.ID)
	if i < 0 {
		return provider.Record{}, provider.ErrRecordNotFound
	}
	r := z.records[i]
	if p.Target != nil {
		r.Content = *p.Target
	}
	if p.Comment != nil {
		r.Comment = *p.Comment
	}
	if p.Proxy {
		r.Proxied, r.TTL = true, provider.AutomaticTTL
	}
	return r, z.replace(i, r, now)
}

func (z *modelZone) put(p provider.Put, now time.Duration) (provider.Record, error) {
	i := z.find(p.ID)
	if i < 0 {
		return provider.Record{}, provider.ErrRecordNotFound
	}
	r := modelRecord(p.CNAME)
	r.ID = p.ID
	if z.fixed && z.records[i].Type != r.Type {
		return provider.Record{}, provider.ErrInvalidRecord
	}
	return r, z.replace(i, r, now)
}

func (z *modelZone) replace(i int, r provider.Record, now time.Duration) error {
	old := z.records[i]
	if z.occupied(r) {
		return provider.ErrRecordExists
	}
	z.records[i] = r
	if old != r {
		z.notice(r.ID, &old, &r, now)
	}
	return nil
}

func (z *modelZone) create(r provider.Record, now time.Duration) (provider.Record, error) {
	if z.occupied(r) {
		return provider.Record{}, provider.ErrRecordExists
	}
	if z.quota != 0 && len(z.records) >= z.quota {
		return provider.Record{}, provider.ErrQuotaExceeded
	}
	z.created++
	r.ID = provider.RecordID(fmt.Sprintf("r%d", z.created))
	z.records = append(z.records, r)
	z.notice(r.ID, nil, &r, now)
	return r, nil
}

// occupied reports whether another record prevents this one.
func (z *modelZone) occupied(r provider.Record) bool {
	for _, other := range z.records {
		if other.ID == r.ID || other.Name != r.Name {
			continue
		}
		if r.Type == "CNAME" && (modelAddress(other) || other.Type == "NS") || other.Type == "CNAME" && (modelAddress(r) || r.Type == "NS") {
			return true
		}
	}
	return false
}

func (z *modelZone) notice(id provider.RecordID, before, after *provider.Record, now time.Duration) {
	if after != nil {
		c := *after
		after = &c
	}
	z.notices = append(z.notices, modelNotice{id: id, before: before, after: after, due: now + modelPropagation})
}

// modelView is what one nameserver may serve.
type modelView []provider.Record

// named reports whether the view has a record with the name, and returns its first address
// record.
func (v modelView) named(name string) (exists bool, address *provider.Record) {
	for i := range v {
		if v[i].Name != name {
			continue
		}
		exists = true
		if modelAddress(v[i]) && address == nil {
			address = &v[i]
		}
	}
	return exists, address
}

// answer returns the address record that answers for the name: its own, or that of the
// closest wildcard. A wildcard ends at any record at or above the name, not at an empty
// non-terminal.
func (v modelView) answer(name string) *provider.Record {
	exists, own := v.named(name)
	if exists {
		return own
	}
	for n := name; n != modelZoneName; {
		if n != name {
			if exists, _ := v.named(n); exists {
				return nil
			}
		}
		_, n, _ = strings.Cut(n, ".")
		if exists, wildcard := v.named("*." + n); exists {
			return wildcard
		}
	}
	return nil
}

// delegated reports whether NS records delegate the name.
func (v modelView) delegated(name string) bool {
	for n := name; strings.HasSuffix(n, "."+modelZoneName); _, n, _ = strings.Cut(n, ".") {
		for i := range v {
			if v[i].Name == n && v[i].Type == "NS" {
				return true
			}
		}
	}
	return false
}

// leads returns the target outside the zone to which the name leads, and whether visitors
// reach it: whether a record of the chain is proxied. The target is an address for an A
// record.
func (v modelView) leads(hostname string) (target string, proxied bool) {
	name := probe(hostname)
	for range 8 {
		if v.delegated(name) {
			return "", false
		}
		r := v.answer(name)
		if r == nil {
			return "", false
		}
		proxied = proxied || r.Proxied
		if r.Type != "CNAME" {
			return r.Content, proxied
		}
		if name = r.Content; name != modelZoneName && !strings.HasSuffix(name, "."+modelZoneName) {
			return name, proxied
		}
	}
	return "", false
}

// probe returns a hostname that resolves like the hostname. For a wildcard, it is one that
// has no record of its own.
func probe(hostname string) string {
	if rest, ok := strings.CutPrefix(hostname, "*."); ok {
		return "zzz." + rest
	}
	return hostname
}

// reaches reports whether the hostname leads visitors to the tunnel.
func (v modelView) reaches(hostname string, tunnel provider.TunnelID) bool {
	target, proxied := v.leads(hostname)
	return proxied && target == tunnel.Hostname()
}
