package providertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// wantZones checks the result of Zones, in any order.
func (f DNSFixture) wantZones(t *testing.T, name string, id provider.ZoneID, want ...provider.Zone) {
	t.Helper()
	got, err := f.DNS.Zones(f.ctx, name, id)
	if err != nil {
		t.Fatalf("Zones(%q, %q): %v", name, id, err)
	}
	byID := cmpopts.SortSlices(func(a, b provider.Zone) bool { return a.ID < b.ID })
	if diff := cmp.Diff(want, got, byID, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Zones(%q, %q) differ (-want +got):\n%s", name, id, diff)
	}
}

// addZones adds a zone, a child zone, and a zone with the same name in another account.
func (f DNSFixture) addZones() (example, child, another provider.Zone) {
	example = provider.Zone{ID: "example", Name: "example.com", AccountID: "account", Status: "active", Type: "full"}
	child = provider.Zone{ID: "child", Name: "a.example.com", AccountID: "account", Status: "active", Type: "partial"}
	another = provider.Zone{ID: "another", Name: "example.com", AccountID: "other", Status: "pending", Type: "full"}
	for _, z := range []provider.Zone{example, child, another} {
		f.Database.Add(zones.Zone{
			ID: string(z.ID), Name: z.Name, Account: z.AccountID, Status: zones.Status(z.Status), Type: zones.Type(z.Type),
		})
	}
	return example, child, another
}

func findsZoneByName(t *testing.T, f DNSFixture) {
	f.wantZones(t, "example.com", "")
	example, child, another := f.addZones()
	f.wantZones(t, "example.com", "", example, another)
	f.wantZones(t, "a.example.com", "", child)
	f.wantZones(t, "com", "")
}

func findsZoneByID(t *testing.T, f DNSFixture) {
	example, child, another := f.addZones()
	f.wantZones(t, "example.com", example.ID, example)
	f.wantZones(t, "example.com", another.ID, another)
	f.wantZones(t, "example.com", child.ID)
}

func unknownZone(t *testing.T, f DNSFixture) {
	f.zone()
	for method, err := range f.allMethods(f.ctx, "unknown", "record") {
		if !errors.Is(err, provider.ErrForbidden) || provider.IsTransient(err) {
			t.Errorf("%s: got %v, want ErrForbidden", method, err)
		}
	}
}

// allMethods calls every method once for a zone, of which it deletes a record, and returns
// the errors by method name.
func (f DNSFixture) allMethods(ctx context.Context, zone provider.ZoneID, record provider.RecordID) map[string]error {
	_, zonesErr := f.DNS.Zones(ctx, "example.com", zone)
	_, recordsErr := f.DNS.Records(ctx, zone)
	_, usageErr := f.DNS.Usage(ctx, zone)
	_, hostsErr := f.DNS.CertificateHosts(ctx, zone)
	_, settingsErr := f.DNS.Settings(ctx, zone, "ssl")
	_, applyErr := f.DNS.Apply(ctx, zone, provider.Batch{Deletes: []provider.RecordID{record}})
	return map[string]error{
		"Zones": zonesErr, "Records": recordsErr, "Usage": usageErr, "CertificateHosts": hostsErr,
		"Settings": settingsErr, "Apply": applyErr,
	}
}

func listsRecords(t *testing.T, f DNSFixture) {
	zone, other := f.zone(), provider.ZoneID(f.Database.Add(zones.Zone{Name: "example.net"}))
	wantRecords(t, f.records(t, zone))
	f.create(t, zone, "www.example.com")
	f.external(t, zone, "example.com", "A", "192.0.2.1")
	f.external(t, zone, "example.com", "MX", "mail.example.com")
	f.external(t, zone, "*.example.com", "CNAME", "elsewhere.example.net")
	f.create(t, other, "www.example.net")
	wantRecords(t, f.records(t, zone),
		stored("www.example.com"),
		provider.Record{Name: "example.com", Type: "A", Content: "192.0.2.1", TTL: provider.AutomaticTTL},
		provider.Record{Name: "example.com", Type: "MX", Content: "mail.example.com", TTL: provider.AutomaticTTL},
		provider.Record{Name: "*.example.com", Type: "CNAME", Content: "elsewhere.example.net", TTL: provider.AutomaticTTL},
	)
	wantRecords(t, f.records(t, other), stored("www.example.net"))
}

func listsRecordsByName(t *testing.T, f DNSFixture) {
	zone := f.zone()
	names := []string{"example.com", "a.example.com", "b.a.example.com", "*.example.com", "ba.example.com"}
	for _, name := range names {
		f.create(t, zone, name)
	}
	for _, name := range names {
		wantRecords(t, f.records(t, zone, name), stored(name))
	}
	f.external(t, zone, "a.example.com", "TXT", "text")
	text := provider.Record{Name: "a.example.com", Type: "TXT", Content: `"text"`, TTL: provider.AutomaticTTL}
	wantRecords(t, f.records(t, zone, "a.example.com", "*.example.com", "none.example.com", "a.example.com"),
		stored("a.example.com"), text, stored("*.example.com"))
	wantRecords(t, f.records(t, zone, "none.example.com"))
}

func limitsNames(t *testing.T, f DNSFixture) {
	zone := f.zone()
	f.create(t, zone, "n0.example.com")
	names := []string{}
	for i := range provider.MaxNames {
		names = append(names, fmt.Sprintf("n%d.example.com", i))
	}
	wantRecords(t, f.records(t, zone, names...), stored("n0.example.com"))
	records, err := f.DNS.Records(f.ctx, zone, append(names, "another.example.com")...)
	if err == nil || provider.IsTransient(err) || records != nil {
		t.Errorf("21 names: got records %+v and error %v, want a permanent error", records, err)
	}
}

func (f DNSFixture) wantUsage(t *testing.T, zone provider.ZoneID, want provider.Usage) {
	t.Helper()
	if got, err := f.DNS.Usage(f.ctx, zone); err != nil || got != want {
		t.Errorf("Usage returned %+v and error %v, want %+v", got, err, want)
	}
}

func readsUsage(t *testing.T, f DNSFixture) {
	zone := f.zone()
	f.wantUsage(t, zone, provider.Usage{Quota: 200})
	f.create(t, zone, "www.example.com")
	f.external(t, zone, "example.com", "MX", "mail.example.com")
	f.wantUsage(t, zone, provider.Usage{Records: 2, Quota: 200})
	f.Database.Update(string(zone), func(z *zones.Zone) { z.RecordQuota = 3 })
	f.wantUsage(t, zone, provider.Usage{Records: 2, Quota: 3})
}

func listsCertificateHosts(t *testing.T, f DNSFixture) {
	zone := f.zone()
	want := func(hosts ...string) {
		t.Helper()
		got, err := f.DNS.CertificateHosts(f.ctx, zone)
		if err != nil {
			t.Fatalf("CertificateHosts: %v", err)
		}
		if diff := cmp.Diff(hosts, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("hosts differ (-want +got):\n%s", diff)
		}
	}
	want("*.example.com", "example.com")
	f.Database.Update(string(zone), func(z *zones.Zone) {
		z.CertificatePacks = append(z.CertificatePacks,
			zones.CertificatePack{ID: "1", Hosts: []string{"example.com", "*.b.example.com"}, Status: "active"},
			zones.CertificatePack{ID: "2", Hosts: []string{"*.c.example.com"}, Status: "pending_validation"})
	})
	want("*.b.example.com", "*.example.com", "example.com")
	f.Database.Update(string(zone), func(z *zones.Zone) { z.CertificatePacks = []zones.CertificatePack{} })
	want()
}

func readsSettings(t *testing.T, f DNSFixture) {
	zone := f.zone()
	want := func(want map[string]string, names ...string) {
		t.Helper()
		got, err := f.DNS.Settings(f.ctx, zone, names...)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("error %v, and settings differ (-want +got):\n%s", err, diff)
		}
	}
	want(nil)
	want(map[string]string{"ssl": "full", "always_use_https": "off"}, "ssl", "always_use_https")
	f.Database.Update(string(zone), func(z *zones.Zone) { z.Settings = map[string]string{"ssl": "off"} })
	want(map[string]string{"ssl": "off"}, "ssl")
	for _, names := range [][]string{{"ssl", "grpc"}, make([]string, provider.MaxNames+1)} {
		if got, err := f.DNS.Settings(f.ctx, zone, names...); err == nil || provider.IsTransient(err) || got != nil {
			t.Errorf("settings %q: got %v and error %v, want a permanent error", names, got, err)
		}
	}
}

// wantForbidden calls every method, and checks that exactly the named methods return
// ErrForbidden and the others nothing.
func (f DNSFixture) wantForbidden(t *testing.T, zone provider.ZoneID, methods ...string) {
	t.Helper()
	record := f.external(t, zone, "www.example.com", "CNAME", target)
	want := map[string]bool{}
	for _, method := range methods {
		want[method] = true
	}
	for method, err := range f.allMethods(f.ctx, zone, record) {
		if errors.Is(err, provider.ErrForbidden) != want[method] || err != nil && !want[method] || provider.IsTransient(err) {
			t.Errorf("%s returned error %v, want ErrForbidden: %t", method, err, want[method])
		}
	}
	if kept := len(f.Database.Records(string(zone))) == 1; kept != want["Apply"] {
		t.Errorf("the record is kept: %t, want %t", kept, want["Apply"])
	}
}

func readsWithoutEdit(t *testing.T, f DNSFixture) {
	zone := f.zone()
	f.Restrict("Zone Read", "DNS Read", "SSL and Certificates Read", "Zone Settings Read")
	f.wantForbidden(t, zone, "Apply")
}

func needsPermission(t *testing.T, f DNSFixture) {
	for _, test := range []struct{ permissions, forbidden []string }{
		{nil, []string{"Zones", "Records", "Usage", "CertificateHosts", "Settings", "Apply"}},
		{[]string{"Zone Read"}, []string{"Records", "Usage", "CertificateHosts", "Settings", "Apply"}},
		{[]string{"DNS Read"}, []string{"Zones", "CertificateHosts", "Settings", "Apply"}},
		{[]string{"DNS Edit"}, []string{"Zones", "CertificateHosts", "Settings"}},
		{[]string{"SSL and Certificates Read"}, []string{"Zones", "Records", "Usage", "Settings", "Apply"}},
		{[]string{"Zone Settings Read"}, []string{"Zones", "Records", "Usage", "CertificateHosts", "Apply"}},
		{[]string{"Zone Read", "DNS Edit", "SSL and Certificates Read", "Zone Settings Read"}, nil},
	} {
		f.Restrict(test.permissions...)
		f.wantForbidden(t, f.zone(), test.forbidden...)
	}
}

func canceledDNS(t *testing.T, f DNSFixture) {
	zone := f.zone()
	record := f.external(t, zone, "www.example.com", "CNAME", target)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	methods := f.allMethods(ctx, zone, record)
	_, methods["Apply without changes"] = f.DNS.Apply(ctx, zone, provider.Batch{})
	for method, err := range methods {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", method, err)
		}
	}
	if n := len(f.Database.Records(string(zone))); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}
