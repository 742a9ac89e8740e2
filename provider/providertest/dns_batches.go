package providertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// creating returns a batch that creates records with these names.
func creating(names ...string) provider.Batch {
	var b provider.Batch
	for _, name := range names {
		b.Creates = append(b.Creates, cname(name))
	}
	return b
}

// numbered returns a batch that creates that many records.
func numbered(count int) provider.Batch {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("n%d.example.com", i))
	}
	return creating(names...)
}

func createsRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	created := f.apply(t, zone, creating("www.example.com", "example.com", "*.example.com"))
	wantRecords(t, created, stored("www.example.com"), stored("example.com"), stored("*.example.com"))
	if diff := cmp.Diff(created, f.records(t, zone, "www.example.com", "example.com", "*.example.com")); diff != "" {
		t.Errorf("Apply and Records returned different records:\n%s", diff)
	}
	without := provider.CNAME{Name: "a.example.com", Target: target}
	f.apply(t, zone, provider.Batch{Creates: []provider.CNAME{without}})
	if got := f.records(t, zone, "a.example.com"); len(got) != 1 || got[0].Comment != "" {
		t.Errorf("a record without a comment is %+v", got)
	}
}

func patchesRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	no, ttl, name, kind, old, comment := false, 300, "www.example.com", "CNAME", "old.example.net", "by hand"
	r, err := f.Database.Create(string(zone), zones.Fields{
		Name: &name, Type: &kind, Content: &old, Proxied: &no, TTL: &ttl, Comment: &comment,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Record{Name: name, Type: kind, Content: old, TTL: ttl, Comment: comment}
	patch := func(p provider.Patch) {
		t.Helper()
		p.ID = provider.RecordID(r.ID)
		wantRecords(t, f.apply(t, zone, provider.Batch{Patches: []provider.Patch{p}}), want)
		wantRecords(t, f.records(t, zone), want)
	}
	patch(provider.Patch{})
	want.Comment = "mark"
	patch(provider.Patch{Comment: new("mark")})
	want.Content = target
	patch(provider.Patch{Target: new(target)})
	want.Proxied, want.TTL = true, provider.AutomaticTTL
	patch(provider.Patch{Proxy: true})
	want.Comment = ""
	patch(provider.Patch{Comment: new("")})
	want.Content, want.Comment = "b.example.net", "mark b"
	patch(provider.Patch{Target: new("b.example.net"), Comment: new("mark b")})
}

func putsRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	id := f.external(t, zone, "www.example.com", "A", "192.0.2.1")
	got := f.apply(t, zone, provider.Batch{Puts: []provider.Put{{ID: id, CNAME: cname("www.example.com")}}})
	wantRecords(t, got, stored("www.example.com"))
	wantRecords(t, f.records(t, zone), stored("www.example.com"))
	if got[0].ID != id {
		t.Errorf("the record has ID %q after the put, want %q", got[0].ID, id)
	}
}

func replacesRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	b := creating("www.example.com")
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
		b.Deletes = append(b.Deletes, f.external(t, zone, "www.example.com", "A", address))
	}
	wantRecords(t, f.apply(t, zone, b), stored("www.example.com"))
	wantRecords(t, f.records(t, zone), stored("www.example.com"))
}

func returnsRecordsInOrder(t *testing.T, f DNSFixture) {
	zone := f.zone()
	a, b, c := f.create(t, zone, "a.example.com"), f.create(t, zone, "b.example.com"), f.create(t, zone, "c.example.com")
	got := f.apply(t, zone, provider.Batch{
		Deletes: []provider.RecordID{b.ID},
		Patches: []provider.Patch{{ID: c.ID, Comment: new("patched")}},
		Puts:    []provider.Put{{ID: a.ID, CNAME: cname("a.example.com")}},
		Creates: []provider.CNAME{cname("e.example.com"), cname("d.example.com")},
	})
	var names []string
	for _, r := range got {
		names = append(names, r.Name)
	}
	want := []string{"c.example.com", "a.example.com", "e.example.com", "d.example.com"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("returned records (-want +got):\n%s", diff)
	}
}

func emptyBatch(t *testing.T, f DNSFixture) {
	zone := f.zone()
	if got := f.apply(t, zone, provider.Batch{}); len(got) != 0 {
		t.Errorf("an empty batch returned %+v", got)
	}
	wantRecords(t, f.records(t, zone))
}

func limitsBatch(t *testing.T, f DNSFixture) {
	zone := provider.ZoneID(f.Database.Add(zones.Zone{Name: "example.com", Plan: zones.Pro}))
	if _, err := f.DNS.Apply(f.ctx, zone, numbered(provider.MaxBatch+1)); err == nil || provider.IsTransient(err) {
		t.Errorf("201 changes: got %v, want a permanent error", err)
	}
	if n := len(f.Database.Records(string(zone))); n != 0 {
		t.Errorf("%d records after a batch that is too large", n)
	}
	if got := f.apply(t, zone, numbered(provider.MaxBatch)); len(got) != provider.MaxBatch {
		t.Errorf("200 changes returned %d records", len(got))
	}
}

func recordExists(t *testing.T, f DNSFixture) {
	for kind, content := range map[string]string{
		"A": "192.0.2.1", "AAAA": "2001:db8::1", "CNAME": "elsewhere.example.net", "NS": "ns.example.net",
	} {
		zone := f.zone()
		f.external(t, zone, "www.example.com", kind, content)
		f.wantRefused(t, zone, creating("www.example.com"), provider.ErrRecordExists)
	}
	zone := f.zone()
	f.create(t, zone, "www.example.com")
	f.wantRefused(t, zone, creating("www.example.com"), provider.ErrRecordExists)
	f.wantRefused(t, zone, creating("a.example.com", "a.example.com"), provider.ErrRecordExists)
}

func sharesName(t *testing.T, f DNSFixture) {
	zone := f.zone()
	f.external(t, zone, "www.example.com", "TXT", "text")
	f.external(t, zone, "example.com", "NS", "ns.example.net")
	f.apply(t, zone, creating("www.example.com", "example.com"))
	if n := len(f.Database.Records(string(zone))); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}

func claimsName(t *testing.T, f DNSFixture) {
	zone := f.zone()
	wantRecords(t, f.records(t, zone)) // the budget grants the reservation
	const claimants = 4
	errs := make([]error, claimants)
	var claiming sync.WaitGroup
	for i := range claimants {
		claiming.Go(func() {
			_, errs[i] = f.DNS.Apply(f.ctx, zone, creating("www.example.com"))
		})
	}
	claiming.Wait()
	applied := 0
	for _, err := range errs {
		if err == nil {
			applied++
		} else if !errors.Is(err, provider.ErrRecordExists) {
			t.Errorf("got %v, want ErrRecordExists", err)
		}
	}
	if applied != 1 {
		t.Errorf("%d calls have created the record, want 1", applied)
	}
	wantRecords(t, f.records(t, zone), stored("www.example.com"))
}

func failingBatch(t *testing.T, f DNSFixture) {
	zone := f.zone()
	kept, taken := f.create(t, zone, "kept.example.com"), f.create(t, zone, "taken.example.com")
	// The put fails first, then the create, which is invalid.
	invalid := cname("invalid.example.com")
	invalid.Comment = strings.Repeat("x", 101)
	f.wantRefused(t, zone, provider.Batch{
		Deletes: []provider.RecordID{kept.ID},
		Patches: []provider.Patch{{ID: taken.ID, Comment: new("changed")}},
		Puts:    []provider.Put{{ID: "missing", CNAME: cname("put.example.com")}},
		Creates: []provider.CNAME{cname("new.example.com"), invalid},
	}, provider.ErrRecordNotFound)
}

func deletedRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	id := f.create(t, zone, "www.example.com").ID
	if err := f.Database.Delete(string(zone), string(id)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []provider.Batch{
		{Deletes: []provider.RecordID{id}},
		{Patches: []provider.Patch{{ID: id, Comment: new("changed")}}},
		{Puts: []provider.Put{{ID: id, CNAME: cname("www.example.com")}}},
	} {
		b.Creates = []provider.CNAME{cname("other.example.com")}
		f.wantRefused(t, zone, b, provider.ErrRecordNotFound)
	}
}

func exceedsQuota(t *testing.T, f DNSFixture) {
	zone := f.zone()
	f.Database.Update(string(zone), func(z *zones.Zone) { z.RecordQuota = 2 })
	first := f.create(t, zone, "a.example.com")
	f.wantRefused(t, zone, creating("b.example.com", "c.example.com"), provider.ErrQuotaExceeded)
	f.create(t, zone, "b.example.com")
	f.wantRefused(t, zone, creating("c.example.com"), provider.ErrQuotaExceeded)
	b := creating("c.example.com")
	b.Deletes = []provider.RecordID{first.ID}
	f.apply(t, zone, b)
	wantRecords(t, f.records(t, zone), stored("b.example.com"), stored("c.example.com"))
}

func invalidRecord(t *testing.T, f DNSFixture) {
	zone := f.zone()
	id := f.create(t, zone, "kept.example.com").ID
	for problem, change := range map[string]func(*provider.CNAME){
		"long comment":   func(c *provider.CNAME) { c.Comment = strings.Repeat("x", 101) },
		"line break":     func(c *provider.CNAME) { c.Comment = "a\nb" },
		"invalid name":   func(c *provider.CNAME) { c.Name = "a..example.com" },
		"invalid target": func(c *provider.CNAME) { c.Target = "a b" },
		"self-reference": func(c *provider.CNAME) { c.Target = c.Name },
		"no target":      func(c *provider.CNAME) { c.Target = "" },
	} {
		c := cname("www.example.com")
		change(&c)
		t.Log(problem)
		f.wantRefused(t, zone, provider.Batch{Creates: []provider.CNAME{cname("valid.example.com"), c}}, provider.ErrInvalidRecord)
	}
	f.wantRefused(t, zone, provider.Batch{Patches: []provider.Patch{{ID: id, Comment: new(strings.Repeat("x", 101))}}},
		provider.ErrInvalidRecord)
	longest := cname("www.example.com")
	longest.Comment = strings.Repeat("x", 100)
	f.apply(t, zone, provider.Batch{Creates: []provider.CNAME{longest}})
}
