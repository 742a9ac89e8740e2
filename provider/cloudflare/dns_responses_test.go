package cloudflare

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// dnsReturning returns a DNS whose requests all get the same response.
func dnsReturning(t *testing.T, status int, body string) *DNS {
	t.Helper()
	return openDNS(t, &Client{}, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) { return jsonResponse(status, body), nil }),
	}, "")
}

func TestCodeDeterminesTheErrorOfABatch(t *testing.T) {
	const transient = "transient"
	classes := map[string]error{
		"unauthorized": provider.ErrUnauthorized, "forbidden": provider.ErrForbidden, "exists": provider.ErrRecordExists,
		"not found": provider.ErrRecordNotFound, "quota": provider.ErrQuotaExceeded, "invalid": provider.ErrInvalidRecord,
		"no tunnel": provider.ErrNotFound,
	}
	for _, test := range []struct {
		status int
		codes  []int
		class  string
	}{
		{400, []int{81053}, "exists"},
		{400, []int{81054}, "exists"},
		{400, []int{81056}, "exists"},
		{400, []int{81057}, "exists"},
		{400, []int{81058}, "exists"},
		{409, []int{81058}, "exists"},
		{400, []int{9999999, 81053}, "exists"},
		{400, []int{81045}, "quota"},
		{404, []int{81044}, "not found"},
		{400, []int{81044}, "not found"},
		{400, []int{1004}, "invalid"},
		{400, []int{9000}, "invalid"},
		{400, []int{9313}, "invalid"},
		{400, []int{9999}, "invalid"},
		{400, []int{8999}, ""},
		{400, []int{10000}, ""},
		{400, []int{6003}, ""}, // a malformed token
		{404, []int{7003}, ""},
		{401, []int{10000}, "unauthorized"},
		{403, []int{10000}, "forbidden"},
		{403, []int{9109}, "forbidden"},
		{500, []int{81053}, transient},
		{502, []int{10000}, transient},
	} {
		synctest.Test(t, func(t *testing.T) {
			var entries []string
			for _, code := range test.codes {
				entries = append(entries, fmt.Sprintf(`{"code":%d,"message":"refused"}`, code))
			}
			d := dnsReturning(t, test.status, `{"success":false,"errors":[`+strings.Join(entries, ",")+`]}`)
			_, err := d.Apply(t.Context(), "zone", creating("www.example.com"))
			for class, sentinel := range classes {
				if errors.Is(err, sentinel) != (class == test.class) {
					t.Errorf("%d %v: got %v, want class %q", test.status, test.codes, err, test.class)
				}
			}
			if err == nil || provider.IsTransient(err) != (test.class == transient) || !strings.Contains(err.Error(), "refused (code ") {
				t.Errorf("%d %v: got %v, want the API's message", test.status, test.codes, err)
			}
		})
	}
}

func TestErrorOfABatchNamesTheZoneAndTheReason(t *testing.T) {
	d := dnsReturning(t, http.StatusBadRequest, `{"success":false,"errors":[{"code":81053,"message":"It exists."}]}`)
	_, err := d.Apply(t.Context(), "023e", creating("www.example.com", "a.example.com"))
	want := `apply 2 changes to zone "023e": a DNS record with this name already exists: ` +
		`POST /client/v4/zones/023e/dns_records/batch: 400 Bad Request: It exists. (code 81053)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUnexpectedResponsesOfDNSAreUnavailableErrors(t *testing.T) {
	const (
		record = `{"id":"1","name":"www.example.com","type":"CNAME"}`
		batch  = `{"success":true,"result":{"posts":[%s]}}`
		list   = `{"success":true,"result":[%s],"result_info":{"per_page":100,"total_count":1}}`
	)
	apply := func(d *DNS) (any, error) { return d.Apply(t.Context(), "zone", creating("www.example.com")) }
	records := func(d *DNS) (any, error) { return d.Records(t.Context(), "zone") }
	found := func(d *DNS) (any, error) { return d.Zones(t.Context(), "example.com", "") }
	usage := func(d *DNS) (any, error) { return d.Usage(t.Context(), "zone") }
	hosts := func(d *DNS) (any, error) { return d.CertificateHosts(t.Context(), "zone") }
	settings := func(d *DNS) (any, error) { return d.Settings(t.Context(), "zone", "ssl") }
	for name, test := range map[string]struct {
		call func(*DNS) (any, error)
		body string
		ok   bool
	}{
		"batch":                   {apply, fmt.Sprintf(batch, record), true},
		"batch without result":    {apply, `{"success":true,"result":null}`, false},
		"batch without records":   {apply, fmt.Sprintf(batch, ""), false},
		"batch with two records":  {apply, fmt.Sprintf(batch, record+","+record), false},
		"batch's record, no ID":   {apply, fmt.Sprintf(batch, `{"name":"a","type":"A"}`), false},
		"truncated batch":         {apply, `{"success":true,"res`, false},
		"list":                    {records, fmt.Sprintf(list, record), true},
		"incomplete list":         {records, fmt.Sprintf(list, ""), false},
		"no list":                 {records, `{"success":true,"result":null}`, false},
		"list's record, no name":  {records, fmt.Sprintf(list, `{"id":"1","type":"A"}`), false},
		"list's record, no type":  {records, fmt.Sprintf(list, `{"id":"1","name":"a"}`), false},
		"no list of zones":        {found, `{"success":true,"result":null}`, false},
		"zone without an account": {found, fmt.Sprintf(list, `{"id":"1","name":"example.com","status":"active"}`), false},
		"zone without a status":   {found, fmt.Sprintf(list, `{"id":"1","name":"example.com","account":{"id":"a"}}`), false},
		"zone":                    {found, fmt.Sprintf(list, `{"id":"1","name":"example.com","status":"active","account":{"id":"a"}}`), true},
		"usage":                   {usage, `{"success":true,"result":{"record_quota":null,"record_usage":1}}`, true},
		"no usage":                {usage, `{"success":true,"result":{}}`, false},
		"setting":                 {settings, `{"success":true,"result":{"id":"ssl","value":"full"}}`, true},
		"no setting":              {settings, `{"success":true,"result":null}`, false},
		"setting without text":    {settings, `{"success":true,"result":{"id":"ssl","value":{"a":1}}}`, false},
		"no list of certificates": {hosts, `{"success":true,"result":null}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := test.call(dnsReturning(t, http.StatusOK, test.body))
			if _, unavailable := errors.AsType[*provider.UnavailableError](err); unavailable == test.ok || err != nil && test.ok {
				t.Errorf("got %+v and error %v, want success: %t", result, err, test.ok)
			}
		})
	}
}

func TestErrorsOfDNSHideItsToken(t *testing.T) {
	for name, transport := range echoes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token := rand.Text()
				d := openDNS(t, &Client{}, Options{AccountID: account, APIToken: "other", Transport: transport}, token)
				wantHidden(t, token, d)
				wantHidden(t, token, *d)
				ctx := reserved(t, 1)
				_, zonesErr := d.Zones(ctx, "example.com", "")
				_, zoneErr := d.Zones(ctx, "example.com", "zone")
				_, recordsErr := d.Records(ctx, "zone")
				_, applyErr := d.Apply(ctx, "zone", creating("www.example.com"))
				_, usageErr := d.Usage(ctx, "zone")
				_, hostsErr := d.CertificateHosts(ctx, "zone")
				_, settingsErr := d.Settings(ctx, "zone", "ssl")
				for _, err := range []error{zonesErr, zoneErr, recordsErr, applyErr, usageErr, hostsErr, settingsErr} {
					if err == nil {
						t.Error("got no error")
					}
					for ; err != nil; err = errors.Unwrap(err) {
						wantHidden(t, token, err)
					}
				}
			})
		})
	}
}

func TestOptionsOfDNSAreValidated(t *testing.T) {
	valid := Options{AccountID: account, APIToken: "token"}
	if _, err := new(Client).OpenDNS(valid, "a\nb"); err == nil || strings.Contains(err.Error(), "a\nb") {
		t.Errorf("an invalid token: got %v, want an error without the token", err)
	}
	if _, err := new(Client).OpenDNS(Options{APIToken: "token"}, "token"); err != nil {
		t.Errorf("no account, which no request needs: %v", err)
	}
	if _, err := new(Client).OpenDNS(Options{AccountID: "a/b", APIToken: "token"}, "token"); err == nil {
		t.Error("an invalid account: got no error")
	}
}

func TestTokenOfDNS(t *testing.T) {
	var got []string
	o := Options{AccountID: account, APIToken: "account-token",
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.Header.Get("Authorization"))
			return jsonResponse(http.StatusOK, `{"success":true,"result":{"record_usage":1}}`), nil
		})}
	for _, token := range []string{"", "dns-token"} {
		if _, err := openDNS(t, &Client{}, o, token).Usage(t.Context(), "zone"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Bearer account-token", "Bearer dns-token"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

// Each operation is in the result, also a deletion. Otherwise it is unknown whether Cloudflare has
// applied the batch.
func TestResultOfABatchMustBeComplete(t *testing.T) {
	batch := provider.Batch{Deletes: []provider.RecordID{"a", "b"}}
	for body, complete := range map[string]bool{
		`{"success":true,"result":{"deletes":[{"id":"a"},{"id":"b"}],"patches":[],"posts":[],"puts":[]}}`: true,
		`{"success":true,"result":{"deletes":[{"id":"a"}]}}`:                                              false,
		`{"success":true,"result":{}}`:                                                                    false,
		`{"success":true,"result":null}`:                                                                  false,
		`null`:                                                                                            false,
	} {
		_, err := dnsReturning(t, http.StatusOK, body).Apply(t.Context(), "zone", batch)
		if complete && err != nil {
			t.Errorf("%s: %v", body, err)
		} else if !complete {
			wantUnavailable(t, err, 0)
		}
	}
}
