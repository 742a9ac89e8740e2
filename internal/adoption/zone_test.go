package adoption

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func TestReadZoneReadsTheZoneOfTheAccount(t *testing.T) {
	database := zones.New(zones.Options{})
	database.Add(zones.Zone{Name: "example.com", Account: "another", Status: zones.Pending})
	id := database.Add(zones.Zone{Name: "example.com", Account: account})
	if _, err := database.Create(id, zones.Fields{Name: new("a.example.com"), Type: new("CNAME"), Content: new(here), Proxied: new(true), TTL: new(1)}); err != nil {
		t.Fatal(err)
	}
	d := fake.NewDNS(database)
	d.Restrict("Zone Read", "DNS Read")
	z, err := ReadZone(t.Context(), d, v1alpha1.DNSZone{Name: "example.com"}, account)
	if err != nil {
		t.Fatal(err)
	}
	if found := z.Addresses("a.example.com"); len(found) != 1 || found[0].Content != here || !found[0].Proxied {
		t.Errorf("read %v", found)
	}
	if calls := d.Calls(fake.OpApply); len(calls) > 0 {
		t.Errorf("changed the zone: %v", calls)
	}
}

func TestReadZoneExplainsWhyItCannotReadTheZone(t *testing.T) {
	const permissions = "the API token needs the permissions Zone: Read and DNS: Read"
	for name, test := range map[string]struct {
		zones   []zones.Zone
		id      string
		prepare func(*fake.DNS)
		want    string
	}{
		"no zone":             {nil, "", nil, "zone example.com: the API token cannot read a zone with this name in account account; it needs the permissions Zone: Read and DNS: Read for the zone"},
		"another account":     {[]zones.Zone{{Name: "example.com", Account: "another"}}, "", nil, "the API token cannot read a zone with this name in account account"},
		"pending":             {[]zones.Zone{{Name: "example.com", Account: account, Status: zones.Pending}}, "", nil, `zone example.com: its status is "pending", so its records are not in effect`},
		"several":             {[]zones.Zone{{Name: "example.com", Account: account}, {Name: "example.com", Account: account}}, "", nil, "zone example.com: account account has 2 zones with this name; set the zone's id in dns.zones"},
		"another ID":          {[]zones.Zone{{Name: "example.com", Account: account}}, "unknown", nil, permissions},
		"no Zone Read":        {[]zones.Zone{{Name: "example.com", Account: account}}, "", func(d *fake.DNS) { d.Restrict("DNS Read") }, permissions},
		"no DNS Read":         {[]zones.Zone{{Name: "example.com", Account: account}}, "", func(d *fake.DNS) { d.Restrict("Zone Read") }, permissions},
		"revoked":             {[]zones.Zone{{Name: "example.com", Account: account}}, "", func(d *fake.DNS) { d.Fail(fake.OpZones, provider.ErrUnauthorized) }, permissions},
		"the API is too busy": {[]zones.Zone{{Name: "example.com", Account: account}}, "", func(d *fake.DNS) { d.Fail(fake.OpRecords, &provider.RateLimitedError{}) }, "zone example.com: "},
	} {
		t.Run(name, func(t *testing.T) {
			database := zones.New(zones.Options{})
			for _, z := range test.zones {
				database.Add(z)
			}
			d := fake.NewDNS(database)
			if test.prepare != nil {
				test.prepare(d)
			}
			_, err := ReadZone(t.Context(), d, v1alpha1.DNSZone{Name: "example.com", ID: test.id}, account)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that contains %q", err, test.want)
			}
		})
	}
}

func TestReadZoneRepeatsAListThatChanged(t *testing.T) {
	for failures, succeeds := range []bool{true, true, true, false} {
		synctest.Test(t, func(t *testing.T) {
			database := zones.New(zones.Options{})
			database.Add(zones.Zone{Name: "example.com", Account: account})
			d := fake.NewDNS(database)
			for range failures {
				d.Fail(fake.OpRecords, &provider.UnavailableError{})
			}
			if _, err := ReadZone(t.Context(), d, v1alpha1.DNSZone{Name: "example.com"}, account); (err == nil) != succeeds {
				t.Errorf("error after %d failures = %v, want success: %t", failures, err, succeeds)
			}
		})
	}
}
