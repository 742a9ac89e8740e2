package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/packages/pagination"
	"github.com/cloudflare/cloudflare-go/v7/ssl"
	zonesapi "github.com/cloudflare/cloudflare-go/v7/zones"
	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// newZoneAPI returns a server with the zones, and a client for its API.
func newZoneAPI(t *testing.T, all ...zones.Zone) (*simulator.Server, *zones.Database, client) {
	t.Helper()
	database := zones.New(zones.Options{})
	for _, z := range all {
		database.Add(z)
	}
	s, c := newAPI(t, simulator.Options{Zones: database})
	return s, database, c
}

// newExampleZone returns a client for the Pro zone example.com, and the zone's ID.
func newExampleZone(t *testing.T) (client, string) {
	t.Helper()
	_, _, c := newZoneAPI(t, zones.Zone{ID: "example", Name: "example.com", Account: account, Plan: zones.Pro})
	return c, "example"
}

// collect returns a value of every item on all pages.
func collect[T any](t *testing.T, pages *pagination.V4PagePaginationArrayAutoPager[T], value func(T) string) []string {
	t.Helper()
	all := []string{}
	for pages.Next() {
		all = append(all, value(pages.Current()))
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestZonesAreListed(t *testing.T) {
	_, _, c := newZoneAPI(t,
		zones.Zone{Name: "example.com", Account: account},
		zones.Zone{Name: "example.net", Account: account, Status: zones.Pending},
		zones.Zone{Name: "child.example.com", Account: "other", Type: zones.Partial},
	)
	for name, test := range map[string]struct {
		params zonesapi.ZoneListParams
		want   []string
	}{
		"all":   {zonesapi.ZoneListParams{}, []string{"example.com", "example.net", "child.example.com"}},
		"paged": {zonesapi.ZoneListParams{PerPage: cloudflare.F(1.0)}, []string{"example.com", "example.net", "child.example.com"}},
		"name":  {zonesapi.ZoneListParams{Name: cloudflare.F("Example.com")}, []string{"example.com"}},
		"operator": {zonesapi.ZoneListParams{Name: cloudflare.F("ends_with:example.com")},
			[]string{"example.com", "child.example.com"}},
		"account": {zonesapi.ZoneListParams{Account: cloudflare.F(zonesapi.ZoneListParamsAccount{ID: cloudflare.F("other")})},
			[]string{"child.example.com"}},
		"account's name": {zonesapi.ZoneListParams{Account: cloudflare.F(zonesapi.ZoneListParamsAccount{Name: cloudflare.F("Account other")})},
			[]string{"child.example.com"}},
		"status": {zonesapi.ZoneListParams{Status: cloudflare.F(zonesapi.ZoneListParamsStatusPending)}, []string{"example.net"}},
		"type": {zonesapi.ZoneListParams{Type: cloudflare.F([]zonesapi.ZoneListParamsType{zonesapi.ZoneListParamsTypePartial})},
			[]string{"child.example.com"}},
		"order": {zonesapi.ZoneListParams{Order: cloudflare.F(zonesapi.ZoneListParamsOrderName),
			Direction: cloudflare.F(zonesapi.ZoneListParamsDirectionDesc)}, []string{"example.net", "example.com", "child.example.com"}},
		"none": {zonesapi.ZoneListParams{Name: cloudflare.F("example.org")}, []string{}},
	} {
		got := collect(t, c.Zones.ListAutoPaging(t.Context(), test.params), func(z zonesapi.Zone) string { return z.Name })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := c.Zones.List(t.Context(), zonesapi.ZoneListParams{Match: cloudflare.F(zonesapi.ZoneListParamsMatchAny)})
	wantError(t, err, http.StatusBadRequest, 1001)
	_, err = c.Zones.List(t.Context(), zonesapi.ZoneListParams{PerPage: cloudflare.F(51.0)})
	wantError(t, err, http.StatusBadRequest, 1001)
}

func TestZoneIsReported(t *testing.T) {
	created := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	_, database, c := newZoneAPI(t,
		zones.Zone{ID: "active", Name: "Example.com.", Account: account, CreatedOn: created},
		zones.Zone{ID: "pending", Name: "example.net", Account: "other", CreatedOn: created,
			Status: zones.Pending, Type: zones.Partial, Plan: zones.Pro},
	)
	get := func(id string) json.RawMessage {
		t.Helper()
		z, err := c.Zones.Get(t.Context(), zonesapi.ZoneGetParams{ZoneID: cloudflare.F(id)})
		if err != nil {
			t.Fatal(err)
		}
		return withoutFields(t, z.JSON.RawJSON(), "name_servers")
	}
	wantJSON(t, get("active"), `{"id":"active","name":"example.com","status":"active","type":"full","paused":false,`+
		`"account":{"id":"`+account+`","name":"Account `+account+`"},"plan":{"name":"free","legacy_id":"free"},`+
		`"created_on":"2025-01-02T03:04:05Z","modified_on":"2025-01-02T03:04:05Z","activated_on":"2025-01-02T03:04:05Z"}`)
	pending := `{"id":"pending","name":"example.net","status":"pending","type":"partial","paused":false,` +
		`"account":{"id":"other","name":"Account other"},"plan":{"name":"pro","legacy_id":"pro"},` +
		`"created_on":"2025-01-02T03:04:05Z","modified_on":"2025-01-02T03:04:05Z","activated_on":null}`
	wantJSON(t, get("pending"), pending)
	database.Update("pending", func(z *zones.Zone) { z.Status = zones.Active })
	wantJSON(t, get("pending"), strings.NewReplacer(`"pending","type"`, `"active","type"`, "null", `"2025-01-02T03:04:05Z"`).Replace(pending))
	_, err := c.Zones.Get(t.Context(), zonesapi.ZoneGetParams{ZoneID: cloudflare.F("unknown")})
	wantError(t, err, http.StatusForbidden, 9109)
}

func TestCertificatePacksAreListed(t *testing.T) {
	_, database, c := newZoneAPI(t, zones.Zone{ID: "example", Name: "example.com"})
	hosts := func(params ssl.CertificatePackListParams) []string {
		params.ZoneID = cloudflare.F("example")
		all := []string{}
		pages := c.SSL.CertificatePacks.ListAutoPaging(t.Context(), params)
		for pages.Next() {
			all = append(all, pages.Current().Hosts...)
		}
		if err := pages.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if diff := cmp.Diff([]string{"example.com", "*.example.com"}, hosts(ssl.CertificatePackListParams{})); diff != "" {
		t.Errorf("Universal certificate (-want +got):\n%s", diff)
	}
	database.Update("example", func(z *zones.Zone) {
		z.CertificatePacks = append(z.CertificatePacks,
			zones.CertificatePack{ID: "deep", Type: "advanced", Hosts: []string{"*.b.example.com"}, Status: "pending_validation"})
	})
	if got := hosts(ssl.CertificatePackListParams{}); len(got) != 2 {
		t.Errorf("hosts of active packs %q, want two", got)
	}
	all := hosts(ssl.CertificatePackListParams{Status: cloudflare.F(ssl.CertificatePackListParamsStatusAll)})
	if diff := cmp.Diff([]string{"example.com", "*.example.com", "*.b.example.com"}, all); diff != "" {
		t.Errorf("all packs (-want +got):\n%s", diff)
	}
}

func TestSettingsAreRead(t *testing.T) {
	s, database, c := newZoneAPI(t, zones.Zone{ID: "example", Name: "example.com"})
	read := func(c client, name string) (any, error) {
		got, err := c.Zones.Settings.Get(t.Context(), name, zonesapi.SettingGetParams{ZoneID: cloudflare.F("example")})
		if err != nil {
			return nil, err
		}
		return got.Value, nil
	}
	if got, err := read(c, "always_use_https"); err != nil || fmt.Sprint(got) != "off" {
		t.Errorf("%v and error %v, want off", got, err)
	}
	database.Update("example", func(z *zones.Zone) { z.Settings = map[string]string{"always_use_https": "on"} })
	if got, err := read(c, "always_use_https"); err != nil || fmt.Sprint(got) != "on" {
		t.Errorf("%v and error %v, want on", got, err)
	}
	_, err := read(c, "grpc")
	wantError(t, err, http.StatusBadRequest, 1006)
	s.Restrict("limited", simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSEdit, simulator.SSLRead}})
	limited := client{cloudflare.NewClient(append(c.Options, option.WithAPIToken("limited"))...)}
	_, err = read(limited, "ssl")
	wantError(t, err, http.StatusForbidden, 9109)
}

func TestTokensHaveOnlyTheirPermissions(t *testing.T) {
	s, _, unrestricted := newZoneAPI(t,
		zones.Zone{ID: "one", Name: "example.com", Account: account}, zones.Zone{ID: "two", Name: "example.net", Account: account})
	record := createRecord(t, unrestricted, "one", `{"name":"www","type":"A","content":"192.0.2.1"}`)
	s.Restrict("limited", simulator.Grant{Zones: []string{"one"}, Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}})
	c := client{cloudflare.NewClient(append(unrestricted.Options, option.WithAPIToken("limited"))...)}
	ctx := t.Context()

	names := collect(t, c.Zones.ListAutoPaging(ctx, zonesapi.ZoneListParams{}), func(z zonesapi.Zone) string { return z.Name })
	if diff := cmp.Diff([]string{"example.com"}, names); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	if _, err := c.DNS.Records.Get(ctx, record.ID, dns.RecordGetParams{ZoneID: cloudflare.F("one")}); err != nil {
		t.Error(err)
	}
	refused := func(code int64, err error) {
		t.Helper()
		wantError(t, err, http.StatusForbidden, code)
	}
	list := func(zone string) error {
		_, err := c.DNS.Records.List(ctx, dns.RecordListParams{ZoneID: cloudflare.F(zone)})
		return err
	}
	_, err := c.Zones.Get(ctx, zonesapi.ZoneGetParams{ZoneID: cloudflare.F("two")})
	refused(9109, err)
	refused(10000, list("two"))
	refused(10000, deleteRecord(ctx, c, "one", record.ID))
	_, err = tryCreate(ctx, c, "one", `{"name":"a","type":"A","content":"192.0.2.1"}`)
	refused(10000, err)
	_, err = batch(ctx, c, "one", `{"deletes":[{"id":"`+record.ID+`"}]}`)
	refused(10000, err)
	_, err = c.SSL.CertificatePacks.List(ctx, ssl.CertificatePackListParams{ZoneID: cloudflare.F("one")})
	refused(10000, err)
	_, err = c.new(ctx, "tunnel")
	refused(10000, err)

	s.Restrict("limited", simulator.Grant{Permissions: []simulator.Permission{simulator.DNSEdit, simulator.SSLRead, simulator.TunnelEdit}})
	if err := deleteRecord(ctx, c, "one", record.ID); err != nil {
		t.Error(err)
	}
	if err := list("two"); err != nil {
		t.Errorf("DNS Edit includes reading: %v", err)
	}
	if _, err = c.SSL.CertificatePacks.List(ctx, ssl.CertificatePackListParams{ZoneID: cloudflare.F("one")}); err != nil {
		t.Error(err)
	}
	if _, err := c.new(ctx, "tunnel"); err != nil {
		t.Error(err)
	}
	_, err = c.Zones.List(ctx, zonesapi.ZoneListParams{})
	refused(9109, err)

	s.Restrict("limited")
	refused(10000, list("one"))
	s.SetToken("another")
	_, err = unrestricted.Zones.List(ctx, zonesapi.ZoneListParams{})
	refused(9109, err)
	_, err = unrestricted.DNS.Records.List(ctx, dns.RecordListParams{ZoneID: cloudflare.F("one")})
	refused(9109, err)
}
