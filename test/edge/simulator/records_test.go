package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/shared"
	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func jsonBody(body string) option.RequestOption {
	return option.WithRequestBody("application/json", []byte(body))
}

// tryCreate creates a record. It sends the body unchanged.
func tryCreate(ctx context.Context, c client, zone, body string) (*dns.RecordResponse, error) {
	return c.DNS.Records.New(ctx, dns.RecordNewParams{ZoneID: cloudflare.F(zone), Body: dns.RecordNewParamsBody{}}, jsonBody(body))
}

func createRecord(t *testing.T, c client, zone, body string) *dns.RecordResponse {
	t.Helper()
	created, err := tryCreate(t.Context(), c, zone, body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return created
}

func put(ctx context.Context, c client, zone, id, body string) (*dns.RecordResponse, error) {
	return c.DNS.Records.Update(ctx, id, dns.RecordUpdateParams{ZoneID: cloudflare.F(zone), Body: dns.RecordUpdateParamsBody{}}, jsonBody(body))
}

func patch(ctx context.Context, c client, zone, id, body string) (*dns.RecordResponse, error) {
	return c.DNS.Records.Edit(ctx, id, dns.RecordEditParams{ZoneID: cloudflare.F(zone), Body: dns.RecordEditParamsBody{}}, jsonBody(body))
}

func deleteRecord(ctx context.Context, c client, zone, id string) error {
	_, err := c.DNS.Records.Delete(ctx, id, dns.RecordDeleteParams{ZoneID: cloudflare.F(zone)})
	return err
}

func batch(ctx context.Context, c client, zone, body string) (*dns.RecordBatchResponse, error) {
	return c.DNS.Records.Batch(ctx, dns.RecordBatchParams{ZoneID: cloudflare.F(zone)}, jsonBody(body))
}

// describe returns a record's name, type and content.
func describe(r dns.RecordResponse) string { return r.Name + " " + string(r.Type) + " " + r.Content }

// recordNames returns the descriptions of the records that match.
func recordNames(t *testing.T, c client, zone string, params dns.RecordListParams) []string {
	t.Helper()
	params.ZoneID = cloudflare.F(zone)
	return collect(t, c.DNS.Records.ListAutoPaging(t.Context(), params), describe)
}

// withoutFields returns a JSON object without some fields, which must not be empty.
func withoutFields(t *testing.T, object string, names ...string) json.RawMessage {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if value := string(fields[name]); value == "" || value == `""` || value == "null" {
			t.Errorf("%s is %q in %s", name, value, object)
		}
		delete(fields, name)
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

func TestCreatedRecordIsComplete(t *testing.T) {
	c, zone := newExampleZone(t)
	created := createRecord(t, c, zone,
		`{"name":"WWW.Example.com.","type":"CNAME","content":"Target.Example.NET.","proxied":true,"ttl":300,"comment":"mine","tags":["a:b"]}`)
	got, err := c.DNS.Records.Get(t.Context(), created.ID, dns.RecordGetParams{ZoneID: cloudflare.F(zone)})
	if err != nil {
		t.Fatal(err)
	}
	if got.JSON.RawJSON() != created.JSON.RawJSON() || !got.ModifiedOn.Equal(got.CreatedOn) || len(got.ID) != 32 {
		t.Errorf("read %s, created %s", got.JSON.RawJSON(), created.JSON.RawJSON())
	}
	volatile := []string{"id", "created_on", "modified_on"}
	wantJSON(t, withoutFields(t, got.JSON.RawJSON(), volatile...),
		`{"name":"www.example.com","type":"CNAME","content":"target.example.net","proxiable":true,"proxied":true,"ttl":1,`+
			`"comment":"mine","tags":["a:b"],"settings":{},"meta":{}}`)

	mail := createRecord(t, c, zone, `{"name":"@","type":"MX","content":"mail.example.net","priority":10,"ttl":300}`)
	wantJSON(t, withoutFields(t, mail.JSON.RawJSON(), volatile...),
		`{"name":"example.com","type":"MX","content":"mail.example.net","priority":10,"proxiable":false,"proxied":false,"ttl":300,`+
			`"comment":null,"tags":[],"settings":{},"meta":{}}`)
	text := createRecord(t, c, zone, `{"name":"text","type":"TXT","content":"words","priority":0}`)
	wantJSON(t, withoutFields(t, text.JSON.RawJSON(), volatile...),
		`{"name":"text.example.com","type":"TXT","content":"\"words\"","proxiable":false,"proxied":false,"ttl":1,`+
			`"comment":null,"tags":[],"settings":{},"meta":{}}`)
}

func TestNamesAreCompleted(t *testing.T) {
	c, zone := newExampleZone(t)
	for name, want := range map[string]string{
		"@": "example.com", "example.com": "example.com", "a": "a.example.com", "A.B.EXAMPLE.COM": "a.b.example.com",
		"*.c": "*.c.example.com", "*": "*.example.com", "d.*": "d.*.example.com", "_dmarc": "_dmarc.example.com",
		"www.example.net": "www.example.net.example.com", "notexample.com": "notexample.com.example.com",
		"bücher": "xn--bcher-kva.example.com",
	} {
		created := createRecord(t, c, zone, `{"name":"`+name+`","type":"TXT","content":"`+name+`"}`)
		if created.Name != want {
			t.Errorf("%s became %s, want %s", name, created.Name, want)
		}
	}
}

func TestInvalidRecordsAreRefused(t *testing.T) {
	c, zone := newExampleZone(t)
	long := strings.Repeat("x", 64)
	for body, code := range map[string]int64{
		`{`: 1001,
		`{"name":"","type":"A","content":"192.0.2.1"}`:                                                     9000,
		`{"name":"a..b","type":"A","content":"192.0.2.1"}`:                                                 9000,
		`{"name":"a b","type":"A","content":"192.0.2.1"}`:                                                  9000,
		`{"name":"` + long + `","type":"A","content":"192.0.2.1"}`:                                         9000,
		`{"name":"` + strings.Repeat(long[1:]+".", 4) + `example.com","type":"A","content":"192.0.2.1"}`:   9000,
		`{"name":"a","type":"SPF","content":"x"}`:                                                          1004,
		`{"name":"a","type":"MX","content":""}`:                                                            1004,
		`{"name":"a","type":"A","content":"2001:db8::1"}`:                                                  9005,
		`{"name":"a","type":"A","content":"example.net"}`:                                                  9005,
		`{"name":"a","type":"AAAA","content":"192.0.2.1"}`:                                                 9006,
		`{"name":"a","type":"CNAME","content":"no spaces.example"}`:                                        9007,
		`{"name":"a","type":"CNAME","content":"A.example.com."}`:                                           9039,
		`{"name":"a","type":"TXT","content":"x","proxied":true}`:                                           9004,
		`{"name":"a","type":"A","content":"192.0.2.1","ttl":59}`:                                           9021,
		`{"name":"a","type":"A","content":"192.0.2.1","ttl":86401}`:                                        9021,
		`{"name":"a","type":"A","content":"192.0.2.1","comment":"` + strings.Repeat("x", 501) + `"}`:       9313,
		`{"name":"a","type":"A","content":"192.0.2.1","comment":"two\nlines"}`:                             1004,
		`{"name":"a","type":"A","content":"192.0.2.1","tags":[` + strings.Repeat(`"a:b",`, 20) + `"c:d"]}`: 9300,
	} {
		_, err := tryCreate(t.Context(), c, zone, body)
		wantError(t, err, http.StatusBadRequest, code)
	}
	if got := recordNames(t, c, zone, dns.RecordListParams{}); len(got) != 0 {
		t.Errorf("records %q, want none", got)
	}
	createRecord(t, c, zone, `{"name":"a","type":"AAAA","content":"2001:db8:0:0::1","ttl":60,"comment":"`+strings.Repeat("ü", 500)+`"}`)
	if diff := cmp.Diff([]string{"a.example.com AAAA 2001:db8::1"}, recordNames(t, c, zone, dns.RecordListParams{})); diff != "" {
		t.Error(diff)
	}
}

func TestRecordsWithTheSameNameConflict(t *testing.T) {
	const (
		a, otherA = `"type":"A","content":"192.0.2.1"`, `"type":"A","content":"192.0.2.2"`
		aaaa      = `"type":"AAAA","content":"2001:db8::1"`
		cname     = `"type":"CNAME","content":"example.net"`
		otherName = `"type":"CNAME","content":"example.org"`
		txt       = `"type":"TXT","content":"words"`
		mx        = `"type":"MX","content":"mail.example.net","priority":10`
		ns, ns2   = `"type":"NS","content":"ns1.example.net"`, `"type":"NS","content":"ns2.example.net"`
	)
	for name, test := range map[string]struct {
		existing, added string
		code            int64 // 0 if both can exist
	}{
		"a CNAME beside an A":              {a, cname, 81053},
		"a CNAME beside an AAAA":           {aaaa, cname, 81053},
		"a CNAME beside a CNAME":           {cname, otherName, 81053},
		"a CNAME beside the same CNAME":    {cname, cname, 81053},
		"an A beside a CNAME":              {cname, a, 81054},
		"an AAAA beside a CNAME":           {cname, aaaa, 81054},
		"an A beside the same A":           {a, a, 81058},
		"a TXT beside the same TXT":        {txt, txt, 81058},
		"an A beside NS":                   {ns, a, 81056},
		"a CNAME beside NS":                {ns, cname, 81056},
		"NS beside an A":                   {a, ns, 81053},
		"an A beside another A":            {a, otherA, 0},
		"an A beside an AAAA":              {aaaa, a, 0},
		"a TXT beside a CNAME":             {cname, txt, 0},
		"a CNAME beside a TXT":             {txt, cname, 0},
		"an MX beside a CNAME":             {cname, mx, 0},
		"a TXT beside NS":                  {ns, txt, 0},
		"two NS records for one name":      {ns, ns2, 0},
		"the same TXT with another string": {txt, `"type":"TXT","content":"other"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, zone := newExampleZone(t)
			createRecord(t, c, zone, `{"name":"www",`+test.existing+`,"comment":"first"}`)
			_, err := tryCreate(t.Context(), c, zone, `{"name":"WWW.example.com",`+test.added+`,"comment":"second"}`)
			if test.code != 0 {
				wantError(t, err, http.StatusBadRequest, test.code)
			} else if err != nil {
				t.Error(err)
			}
			createRecord(t, c, zone, `{"name":"other",`+test.added+`}`)
		})
	}
}

func TestApexCanHaveACNAMEBesideNameservers(t *testing.T) {
	c, zone := newExampleZone(t)
	createRecord(t, c, zone, `{"name":"@","type":"NS","content":"ns1.example.net"}`)
	createRecord(t, c, zone, `{"name":"@","type":"CNAME","content":"www.example.com","proxied":true}`)
	createRecord(t, c, zone, `{"name":"@","type":"MX","content":"mail.example.net","priority":10}`)
	_, err := tryCreate(t.Context(), c, zone, `{"name":"example.com","type":"A","content":"192.0.2.1"}`)
	wantError(t, err, http.StatusBadRequest, 81054)
}

func TestFreeZonesHaveLowerLimits(t *testing.T) {
	small := func(month time.Month) time.Time { return time.Date(2024, month, 1, 0, 0, 0, 0, time.UTC) }
	_, _, c := newZoneAPI(t,
		zones.Zone{ID: "new", Name: "example.com", CreatedOn: small(time.September)},
		zones.Zone{ID: "old", Name: "example.net", CreatedOn: small(time.August)},
		zones.Zone{ID: "pro", Name: "example.org", Plan: zones.Pro},
		zones.Zone{ID: "tiny", Name: "example.edu", RecordQuota: 2},
	)
	for zone, want := range map[string]int64{"new": 200, "old": 1000, "pro": 3500, "tiny": 2} {
		usage, err := c.DNS.Usage.Zone.Get(t.Context(), dns.UsageZoneGetParams{ZoneID: cloudflare.F(zone)})
		if err != nil || usage.RecordQuota != want || usage.RecordUsage != 0 {
			t.Errorf("%s: %+v, %v, want a quota of %d", zone, usage, err, want)
		}
	}
	_, err := tryCreate(t.Context(), c, "new", `{"name":"a","type":"A","content":"192.0.2.1","comment":"`+strings.Repeat("x", 101)+`"}`)
	wantError(t, err, http.StatusBadRequest, 9313)
	_, err = tryCreate(t.Context(), c, "new", `{"name":"a","type":"A","content":"192.0.2.1","tags":["a:b"]}`)
	wantError(t, err, http.StatusBadRequest, 9300)
	createRecord(t, c, "new", `{"name":"a","type":"A","content":"192.0.2.1","comment":"`+strings.Repeat("x", 100)+`"}`)

	record := createRecord(t, c, "tiny", `{"name":"a","type":"A","content":"192.0.2.1"}`)
	_, err = batch(t.Context(), c, "tiny", `{"posts":[{"name":"b","type":"A","content":"192.0.2.1"},{"name":"c","type":"A","content":"192.0.2.1"}]}`)
	wantError(t, err, http.StatusBadRequest, 81045)
	createRecord(t, c, "tiny", `{"name":"b","type":"A","content":"192.0.2.1"}`)
	_, err = tryCreate(t.Context(), c, "tiny", `{"name":"c","type":"A","content":"192.0.2.1"}`)
	wantError(t, err, http.StatusBadRequest, 81045)
	if _, err := batch(t.Context(), c, "tiny", `{"deletes":[{"id":"`+record.ID+`"}],"posts":[{"name":"c","type":"A","content":"192.0.2.1"}]}`); err != nil {
		t.Errorf("deletes precede creations: %v", err)
	}
	usage, err := c.DNS.Usage.Zone.Get(t.Context(), dns.UsageZoneGetParams{ZoneID: cloudflare.F("tiny")})
	if err != nil || usage.RecordUsage != 2 {
		t.Errorf("usage %+v, %v", usage, err)
	}
}

func TestPutReplacesAndPatchMerges(t *testing.T) {
	c, zone := newExampleZone(t)
	ctx := t.Context()
	created := createRecord(t, c, zone, `{"name":"www","type":"CNAME","content":"example.net","proxied":true,"comment":"mine"}`)

	patched, err := patch(ctx, c, zone, created.ID, `{"content":"example.org"}`)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, withoutFields(t, patched.JSON.RawJSON(), "modified_on"),
		strings.Replace(string(withoutFields(t, created.JSON.RawJSON(), "modified_on")), "example.net", "example.org", 1))
	if !patched.ModifiedOn.After(created.ModifiedOn) {
		t.Errorf("modified on %s, created on %s", patched.ModifiedOn, created.CreatedOn)
	}
	const body = `{"name":"www","type":"CNAME","content":"example.edu"}`
	replaced, err := put(ctx, c, zone, created.ID, body)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, withoutFields(t, replaced.JSON.RawJSON(), "created_on", "modified_on"),
		`{"id":"`+created.ID+`","name":"www.example.com","type":"CNAME","content":"example.edu","proxiable":true,"proxied":false,"ttl":1,`+
			`"comment":null,"tags":[],"settings":{},"meta":{}}`)
	if same, err := put(ctx, c, zone, created.ID, body); err != nil || !same.ModifiedOn.Equal(replaced.ModifiedOn) {
		t.Errorf("an equal record: %v, %v", same, err)
	}
	if changed, err := put(ctx, c, zone, created.ID, `{"name":"www","type":"A","content":"192.0.2.1"}`); err != nil || changed.Type != "A" {
		t.Errorf("another type: %v, %v", changed, err)
	}
}

func TestChangesOfOneRecordAreChecked(t *testing.T) {
	c, zone := newExampleZone(t)
	ctx := t.Context()
	createRecord(t, c, zone, `{"name":"taken","type":"A","content":"192.0.2.1"}`)
	id := createRecord(t, c, zone, `{"name":"www","type":"CNAME","content":"example.net"}`).ID
	_, err := patch(ctx, c, zone, id, `{"name":"taken"}`)
	wantError(t, err, http.StatusBadRequest, 81053)
	_, err = put(ctx, c, zone, id, `{"type":"CNAME","content":"example.edu"}`)
	wantError(t, err, http.StatusBadRequest, 9000)

	if err := deleteRecord(ctx, c, zone, id); err != nil {
		t.Fatal(err)
	}
	wantError(t, deleteRecord(ctx, c, zone, id), http.StatusNotFound, 81044)
	_, err = put(ctx, c, zone, id, `{"name":"www","type":"A","content":"192.0.2.1"}`)
	wantError(t, err, http.StatusNotFound, 81044)
	_, err = patch(ctx, c, zone, id, `{}`)
	wantError(t, err, http.StatusNotFound, 81044)
	_, err = c.DNS.Records.Get(ctx, id, dns.RecordGetParams{ZoneID: cloudflare.F(zone)})
	wantError(t, err, http.StatusNotFound, 81044)
}

func TestTypesCanBeFixed(t *testing.T) {
	database := zones.New(zones.Options{FixedTypes: true})
	zone := database.Add(zones.Zone{Name: "example.com"})
	_, c := newAPI(t, simulator.Options{Zones: database})
	record := createRecord(t, c, zone, `{"name":"www","type":"A","content":"192.0.2.1"}`)
	_, err := put(t.Context(), c, zone, record.ID, `{"name":"www","type":"CNAME","content":"example.net"}`)
	wantError(t, err, http.StatusBadRequest, 1004)
}

func TestBatchIsATransaction(t *testing.T) {
	c, zone := newExampleZone(t)
	ctx := t.Context()
	ids := map[string]string{}
	for _, name := range []string{"deleted", "patched", "put"} {
		ids[name] = createRecord(t, c, zone, `{"name":"`+name+`","type":"A","content":"192.0.2.1","comment":"old"}`).ID
	}
	before := recordNames(t, c, zone, dns.RecordListParams{})
	withPost := func(post string) string {
		return `{"deletes":[{"id":"` + ids["deleted"] + `"}],"patches":[{"id":"` + ids["patched"] + `","content":"192.0.2.2"}],` +
			`"puts":[{"id":"` + ids["put"] + `","name":"put","type":"A","content":"192.0.2.3"}],` +
			`"posts":[{"name":"deleted","type":"CNAME","content":"example.net"},` + post + `]}`
	}

	_, err := batch(ctx, c, zone, withPost(`{"name":"put","type":"CNAME","content":"example.net"},{"name":"bad","type":"A","content":"bad"}`))
	wantError(t, err, http.StatusBadRequest, 81053) // the second error is not reported
	_, err = batch(ctx, c, zone, withPost(`{"name":"bad","type":"A","content":"bad"}`))
	wantError(t, err, http.StatusBadRequest, 9005)
	_, err = batch(ctx, c, zone, `{"deletes":[{"id":"`+ids["deleted"]+`"},{"id":"unknown"}]}`)
	wantError(t, err, http.StatusNotFound, 81044)
	if diff := cmp.Diff(before, recordNames(t, c, zone, dns.RecordListParams{})); diff != "" {
		t.Errorf("failed batches changed records (-before +after):\n%s", diff)
	}

	result, err := batch(ctx, c, zone, withPost(`{"name":"new","type":"A","content":"192.0.2.4"}`))
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(result.Deletes, result.Patches, result.Puts, result.Posts)
	got := make([]string, len(all))
	for i, r := range all {
		got[i] = describe(r)
	}
	if diff := cmp.Diff([]string{
		"deleted.example.com A 192.0.2.1", "patched.example.com A 192.0.2.2", "put.example.com A 192.0.2.3",
		"deleted.example.com CNAME example.net", "new.example.com A 192.0.2.4",
	}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if result.Patches[0].Comment != "old" || result.Puts[0].Comment != "" {
		t.Errorf("comments %q and %q, want only the first", result.Patches[0].Comment, result.Puts[0].Comment)
	}
}

// Each operation needs the name that the one before it frees.
func TestBatchDeletesThenPatchesThenPutsThenPosts(t *testing.T) {
	c, zone := newExampleZone(t)
	ids := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		ids[name] = createRecord(t, c, zone, `{"name":"`+name+`","type":"CNAME","content":"`+name+`.example.net"}`).ID
	}
	_, err := batch(t.Context(), c, zone, `{"posts":[{"name":"three","type":"CNAME","content":"new.example.net"}],`+
		`"puts":[{"id":"`+ids["three"]+`","name":"two","type":"CNAME","content":"three.example.net"}],`+
		`"patches":[{"id":"`+ids["two"]+`","name":"one"}],"deletes":[{"id":"`+ids["one"]+`"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got := recordNames(t, c, zone, dns.RecordListParams{Order: cloudflare.F(dns.RecordListParamsOrderName)})
	if diff := cmp.Diff([]string{
		"one.example.com CNAME two.example.net", "three.example.com CNAME new.example.net", "two.example.com CNAME three.example.net",
	}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestBatchHasALimit(t *testing.T) {
	_, _, c := newZoneAPI(t, zones.Zone{ID: "free", Name: "example.com"}, zones.Zone{ID: "pro", Name: "example.net", Plan: zones.Pro})
	posts := make([]string, 201)
	for i := range posts {
		posts[i] = fmt.Sprintf(`{"name":"n%d","type":"A","content":"192.0.2.1"}`, i)
	}
	all := func(posts []string) string { return `{"posts":[` + strings.Join(posts, ",") + `]}` }
	_, err := batch(t.Context(), c, "free", all(posts))
	wantError(t, err, http.StatusBadRequest, 1004)
	if _, err := batch(t.Context(), c, "free", all(posts[:200])); err != nil {
		t.Error(err)
	}
	if _, err := batch(t.Context(), c, "pro", all(posts)); err != nil {
		t.Error(err)
	}
}

func TestRecordsAreFilteredAndPaged(t *testing.T) {
	c, zone := newExampleZone(t)
	createRecord(t, c, zone, `{"name":"www","type":"CNAME","content":"b.example.net","proxied":true,"comment":"tgw One"}`)
	createRecord(t, c, zone, `{"name":"api","type":"A","content":"192.0.2.1","ttl":300}`)
	createRecord(t, c, zone, `{"name":"www","type":"TXT","content":"a","comment":"other"}`)
	const www, api, txt = "www.example.com CNAME b.example.net", "api.example.com A 192.0.2.1", `www.example.com TXT "a"`
	f := cloudflare.F[string]
	for name, test := range map[string]struct {
		params dns.RecordListParams
		want   []string
	}{
		"all by type":        {dns.RecordListParams{}, []string{api, www, txt}},
		"pages":              {dns.RecordListParams{PerPage: cloudflare.F(2.0)}, []string{api, www, txt}},
		"the second page":    {dns.RecordListParams{PerPage: cloudflare.F(2.0), Page: cloudflare.F(2.0)}, []string{txt}},
		"exact name":         {dns.RecordListParams{Name: cloudflare.F(dns.RecordListParamsName{Exact: f("WWW.example.com")})}, []string{www, txt}},
		"part of a name":     {dns.RecordListParams{Name: cloudflare.F(dns.RecordListParamsName{Contains: f("pi.")})}, []string{api}},
		"start of a name":    {dns.RecordListParams{Name: cloudflare.F(dns.RecordListParamsName{Startswith: f("api")})}, []string{api}},
		"end of a name":      {dns.RecordListParams{Name: cloudflare.F(dns.RecordListParamsName{Endswith: f("w.example.com")})}, []string{www, txt}},
		"content":            {dns.RecordListParams{Content: cloudflare.F(dns.RecordListParamsContent{Endswith: f("example.net")})}, []string{www}},
		"start of a comment": {dns.RecordListParams{Comment: cloudflare.F(dns.RecordListParamsComment{Startswith: f("TGW ")})}, []string{www}},
		"with a comment":     {dns.RecordListParams{Comment: cloudflare.F(dns.RecordListParamsComment{Present: f("true")})}, []string{www, txt}},
		"without a comment":  {dns.RecordListParams{Comment: cloudflare.F(dns.RecordListParamsComment{Absent: f("true")})}, []string{api}},
		"type":               {dns.RecordListParams{Type: cloudflare.F(dns.RecordListParamsTypeTXT)}, []string{txt}},
		"proxied":            {dns.RecordListParams{Proxied: cloudflare.F(true)}, []string{www}},
		"two filters": {dns.RecordListParams{Type: cloudflare.F(dns.RecordListParamsTypeCNAME),
			Name: cloudflare.F(dns.RecordListParamsName{Exact: f("api.example.com")})}, []string{}},
		"any of two filters": {dns.RecordListParams{Match: cloudflare.F(dns.RecordListParamsMatchAny),
			Type: cloudflare.F(dns.RecordListParamsTypeCNAME), Name: cloudflare.F(dns.RecordListParamsName{Exact: f("api.example.com")})},
			[]string{api, www}},
		"by name, descending": {dns.RecordListParams{Order: cloudflare.F(dns.RecordListParamsOrderName),
			Direction: cloudflare.F(shared.SortDirectionDesc)}, []string{www, txt, api}},
		"by content": {dns.RecordListParams{Order: cloudflare.F(dns.RecordListParamsOrderContent)}, []string{txt, api, www}},
		"by TTL":     {dns.RecordListParams{Order: cloudflare.F(dns.RecordListParamsOrderTTL)}, []string{www, txt, api}},
		"by proxied": {dns.RecordListParams{Order: cloudflare.F(dns.RecordListParamsOrderProxied)}, []string{api, txt, www}},
	} {
		if diff := cmp.Diff(test.want, recordNames(t, c, zone, test.params)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	first, err := c.DNS.Records.List(t.Context(), dns.RecordListParams{ZoneID: cloudflare.F(zone), PerPage: cloudflare.F(2.0)})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, []byte(first.ResultInfo.JSON.RawJSON()), `{"page":1,"per_page":2,"count":2,"total_count":3,"total_pages":2}`)
	for _, unsupported := range []dns.RecordListParams{
		{Search: f("x")}, {ShadowingName: f("a.example.com")}, {PerPage: cloudflare.F(0.0)}, {Direction: cloudflare.F[shared.SortDirection]("up")},
		{Order: cloudflare.F[dns.RecordListParamsOrder]("id")},
	} {
		unsupported.ZoneID = cloudflare.F(zone)
		_, err := c.DNS.Records.List(t.Context(), unsupported)
		wantError(t, err, http.StatusBadRequest, 1001)
	}
}

func TestFaultsApplyToZones(t *testing.T) {
	s, _, c := newZoneAPI(t, zones.Zone{ID: "example", Name: "example.com"})
	s.Inject(simulator.Fault{Method: "POST", Path: "/zones/*/dns_records/batch", Times: 1, Drop: simulator.DropAfterWrite})
	const post = `{"posts":[{"name":"www","type":"A","content":"192.0.2.1"}]}`
	if _, err := batch(t.Context(), c, "example", post); err == nil {
		t.Error("the dropped request was answered")
	}
	if got := recordNames(t, c, "example", dns.RecordListParams{}); len(got) != 1 {
		t.Errorf("records %q, want the one whose answer was lost", got)
	}
	s.Inject(simulator.Fault{Path: "/zones/*/dns_records", Times: 1, Status: http.StatusTooManyRequests})
	_, err := c.DNS.Records.List(t.Context(), dns.RecordListParams{ZoneID: cloudflare.F("example")})
	wantError(t, err, http.StatusTooManyRequests, 429)
	if got := s.Count("POST", "/zones/*/dns_records/batch"); got != 1 {
		t.Errorf("%d batches were recorded, want 1", got)
	}
}
