package providertest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// DNSFixture is a DNS for the zones in a database, which is empty.
type DNSFixture struct {
	DNS interface {
		provider.DNS
		provider.ZoneSettings
	}
	// Database contains the zones. A test changes them like the dashboard does.
	Database *zones.Database
	// Restrict limits the API token to permissions with the names in Cloudflare's
	// dashboard. Without a call, the token has all permissions.
	Restrict func(permissions ...string)

	// ctx is the test's context, with a reservation: without one, the API request budget
	// would refuse the second call.
	ctx context.Context
}

// RunDNS runs the contract tests for [provider.DNS], each with a new fixture.
func RunDNS(t *testing.T, newFixture func(*testing.T) DNSFixture) {
	for name, test := range dnsContract {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ctx = provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityDNS), 1)
			test(t, f)
		})
	}
}

var dnsContract = map[string]func(*testing.T, DNSFixture){
	"a zone is found by its name":                 findsZoneByName,
	"a zone is found by its ID":                   findsZoneByID,
	"an unknown zone is forbidden":                unknownZone,
	"all records of a zone are listed":            listsRecords,
	"records are listed by name":                  listsRecordsByName,
	"at most 20 names are read":                   limitsNames,
	"the usage counts records of all types":       readsUsage,
	"hosts of active certificates are listed":     listsCertificateHosts,
	"settings are read by name":                   readsSettings,
	"reading needs no permission to edit":         readsWithoutEdit,
	"every method needs its permission":           needsPermission,
	"a canceled call to DNS changes nothing":      canceledDNS,
	"a created record is a proxied CNAME":         createsRecord,
	"a patch keeps the other fields":              patchesRecord,
	"a put replaces a record of another type":     putsRecord,
	"a batch deletes before it creates":           replacesRecord,
	"a batch returns its records in order":        returnsRecordsInOrder,
	"an empty batch changes nothing":              emptyBatch,
	"a batch has at most 200 changes":             limitsBatch,
	"a record is not created beside another one":  recordExists,
	"a record can share its name with others":     sharesName,
	"of concurrent creates of a name one applies": claimsName,
	"a failing batch changes nothing":             failingBatch,
	"a record that was deleted is not found":      deletedRecord,
	"a record above the quota is not created":     exceedsQuota,
	"an invalid record is not created":            invalidRecord,
}

// target is what most records point to.
const target = "6ff42ae2-765d-4adf-8112-31c55c1551ef.cfargotunnel.com"

// zone adds the zone example.com with the Free plan, and returns its ID.
func (f DNSFixture) zone() provider.ZoneID {
	return provider.ZoneID(f.Database.Add(zones.Zone{Name: "example.com", Account: "account"}))
}

// external creates a record that is not managed by the caller, and returns its ID.
func (f DNSFixture) external(t *testing.T, zone provider.ZoneID, name, kind, content string) provider.RecordID {
	t.Helper()
	r, err := f.Database.Create(string(zone), zones.Fields{Name: &name, Type: &kind, Content: &content})
	if err != nil {
		t.Fatal(err)
	}
	return provider.RecordID(r.ID)
}

func cname(name string) provider.CNAME {
	return provider.CNAME{Name: name, Target: target, Comment: "mark of " + name}
}

// stored is the record that a create of [cname] stores, without its ID and time.
func stored(name string) provider.Record {
	return provider.Record{
		Name: name, Type: "CNAME", Content: target, Proxied: true, TTL: provider.AutomaticTTL, Comment: "mark of " + name,
	}
}

// apply applies a batch, which must succeed.
func (f DNSFixture) apply(t *testing.T, zone provider.ZoneID, b provider.Batch) []provider.Record {
	t.Helper()
	records, err := f.DNS.Apply(f.ctx, zone, b)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return records
}

// create creates a record and returns it.
func (f DNSFixture) create(t *testing.T, zone provider.ZoneID, name string) provider.Record {
	t.Helper()
	return f.apply(t, zone, provider.Batch{Creates: []provider.CNAME{cname(name)}})[0]
}

func (f DNSFixture) records(t *testing.T, zone provider.ZoneID, names ...string) []provider.Record {
	t.Helper()
	records, err := f.DNS.Records(f.ctx, zone, names...)
	if err != nil {
		t.Fatalf("Records(%q): %v", names, err)
	}
	return records
}

// wantRecords compares records in any order, without their IDs and times, which must be set.
func wantRecords(t *testing.T, got []provider.Record, want ...provider.Record) {
	t.Helper()
	ids := map[provider.RecordID]bool{}
	for _, r := range got {
		if r.ID == "" || ids[r.ID] || r.ModifiedAt.IsZero() {
			t.Errorf("record %+v has no ID, the ID of another record, or no time", r)
		}
		ids[r.ID] = true
	}
	byName := func(a, b provider.Record) bool { return a.Name+a.Type+a.Content < b.Name+b.Type+b.Content }
	options := cmp.Options{
		cmpopts.EquateEmpty(), cmpopts.SortSlices(byName), cmpopts.IgnoreFields(provider.Record{}, "ID", "ModifiedAt"),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
}

// wantRefused applies a batch, and checks that it returns the error and changes nothing.
func (f DNSFixture) wantRefused(t *testing.T, zone provider.ZoneID, b provider.Batch, want error) {
	t.Helper()
	before := f.Database.Records(string(zone))
	records, err := f.DNS.Apply(f.ctx, zone, b)
	if !errors.Is(err, want) || provider.IsTransient(err) || records != nil {
		t.Errorf("Apply(%+v) returned %+v and error %v, want error %v", b, records, err, want)
	}
	for _, other := range dnsErrors {
		if errors.Is(err, other) && !errors.Is(want, other) {
			t.Errorf("error %v is also %v", err, other)
		}
	}
	if diff := cmp.Diff(before, f.Database.Records(string(zone))); diff != "" {
		t.Errorf("the refused batch has changed the zone (-before +after):\n%s", diff)
	}
}

// dnsErrors are the errors of which a call returns at most one.
var dnsErrors = []error{
	provider.ErrUnauthorized, provider.ErrForbidden, provider.ErrRecordExists, provider.ErrRecordNotFound,
	provider.ErrQuotaExceeded, provider.ErrInvalidRecord, provider.ErrNotFound,
}
