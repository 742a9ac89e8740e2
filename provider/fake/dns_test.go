package fake_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func TestDNSContract(t *testing.T) {
	providertest.RunDNS(t, func(*testing.T) providertest.DNSFixture {
		database := zones.New(zones.Options{})
		d := fake.NewDNS(database)
		return providertest.DNSFixture{DNS: d, Database: database, Restrict: d.Restrict}
	})
}

// newDNS returns a DNS, and the ID of a zone.
func newDNS(o zones.Options) (*fake.DNS, *zones.Database, provider.ZoneID) {
	database := zones.New(o)
	id := database.Add(zones.Zone{Name: "example.com"})
	return fake.NewDNS(database), database, provider.ZoneID(id)
}

var creating = provider.Batch{Creates: []provider.CNAME{{Name: "www.example.com", Target: "a.example.net"}}}

func TestScriptedErrorsOfDNS(t *testing.T) {
	d, database, zone := newDNS(zones.Options{})
	d.Fail(fake.OpApply, errFirst, nil)
	d.FailAfter(fake.OpApply, errSecond)
	for i, test := range []struct {
		err     error
		batch   provider.Batch
		records int
	}{{errFirst, creating, 0}, {nil, creating, 1}, {errSecond, provider.Batch{Creates: []provider.CNAME{{Name: "b.example.com", Target: "a.example.net"}}}, 2}} {
		if _, err := d.Apply(t.Context(), zone, test.batch); !errors.Is(err, test.err) {
			t.Errorf("call %d: got %v, want %v", i, err, test.err)
		}
		if got := len(database.Records(string(zone))); got != test.records {
			t.Errorf("call %d: %d records, want %d", i, got, test.records)
		}
	}
}

func TestCallsToDNSAreRecorded(t *testing.T) {
	d, _, zone := newDNS(zones.Options{})
	d.Fail(fake.OpRecords, errFirst)
	_, _ = d.Zones(t.Context(), "example.com", "")
	_, _ = d.Records(t.Context(), zone)
	_, _ = d.Records(t.Context(), zone, "www.example.com")
	_, _ = d.Apply(t.Context(), zone, creating)
	_, _ = d.Apply(t.Context(), zone, provider.Batch{})
	_, _ = d.Usage(t.Context(), zone)
	_, _ = d.CertificateHosts(t.Context(), zone)
	_, _ = d.Settings(t.Context(), zone, "ssl")
	want := []fake.DNSCall{
		{Op: fake.OpZones, Names: []string{"example.com"}},
		{Op: fake.OpRecords, Zone: zone, Err: errFirst},
		{Op: fake.OpRecords, Zone: zone, Names: []string{"www.example.com"}},
		{Op: fake.OpApply, Zone: zone, Batch: creating},
		{Op: fake.OpUsage, Zone: zone},
		{Op: fake.OpCertificateHosts, Zone: zone},
		{Op: fake.OpSettings, Zone: zone, Names: []string{"ssl"}},
	}
	if diff := cmp.Diff(want, d.Calls(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[3:4], d.Calls(fake.OpApply)); diff != "" {
		t.Errorf("calls of Apply differ (-want +got):\n%s", diff)
	}
}

func TestTypeOfARecordThatCannotChange(t *testing.T) {
	d, database, zone := newDNS(zones.Options{FixedTypes: true})
	name, kind, address := "www.example.com", "A", "192.0.2.1"
	r, err := database.Create(string(zone), zones.Fields{Name: &name, Type: &kind, Content: &address})
	if err != nil {
		t.Fatal(err)
	}
	put := provider.Batch{Puts: []provider.Put{{ID: provider.RecordID(r.ID), CNAME: creating.Creates[0]}}}
	if _, err := d.Apply(t.Context(), zone, put); !errors.Is(err, provider.ErrInvalidRecord) {
		t.Errorf("got %v, want ErrInvalidRecord", err)
	}
	replace := provider.Batch{Deletes: []provider.RecordID{provider.RecordID(r.ID)}, Creates: creating.Creates}
	if _, err := d.Apply(t.Context(), zone, replace); err != nil {
		t.Errorf("a batch that deletes and creates: %v", err)
	}
}
