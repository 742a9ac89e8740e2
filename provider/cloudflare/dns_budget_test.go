package cloudflare

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// spacing is the average time between two requests of DNS.
const spacing = 1250 * time.Millisecond

func TestDNSIgnoresThePriorityOfTheContext(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		if _, err := e.Usage(t.Context(), e.zone); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := e.Records(t.Context(), e.zone)
		wantSlot(t, err, spacing)
		_, err = e.Apply(provider.WithPriority(t.Context(), provider.PriorityDeletion), e.zone, creating("www.example.com"))
		wantSlot(t, err, 2*spacing)
		_, err = e.Zones(t.Context(), "example.com", "")
		wantSlot(t, err, 3*spacing)
		wantElapsed(t, start, 0)
		e.wantRequests(t, 0, 0)
		if _, err := e.tunnels.Tunnels(t.Context()); err != nil {
			t.Errorf("Tunnels: %v", err)
		}
		wantElapsed(t, start, 0)
	})
}

func TestDNSSendsAtMost240RequestsInFiveMinutes(t *testing.T) {
	for requests := 1; requests <= 3; requests++ {
		t.Run(fmt.Sprintf("%d at a time", requests), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, sent := &budget{}, 0
				for start := time.Now(); time.Since(start) < 5*time.Minute; advance(50 * time.Millisecond) {
					ctx := reserved(t, requests)
					for range requests {
						if b.acquire(ctx, time.Now()) != nil {
							break
						}
						sent++
					}
				}
				if sent != 240 {
					t.Errorf("%d requests in five minutes, want 240", sent)
				}
			})
		})
	}
}

func TestReadAndDeleteShareAReservation(t *testing.T) {
	// Between the read before a delete and the delete, nothing must wait.
	withZone(t, func(t *testing.T, e *zoneEdge) {
		create("www.example.com")(t, e.database, string(e.zone))
		start, ctx := time.Now(), reserved(t, 2)
		records, err := e.Records(ctx, e.zone, "www.example.com")
		if err != nil || len(records) != 1 {
			t.Fatalf("records %+v, error %v", records, err)
		}
		if _, err := e.Apply(ctx, e.zone, provider.Batch{Deletes: []provider.RecordID{records[0].ID}}); err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, 0)
		e.wantRecords(t, 0)
		for _, slot := range []time.Duration{2 * spacing, 4 * spacing} {
			_, err = e.Usage(reserved(t, 2), e.zone)
			wantSlot(t, err, slot)
		}
	})
}

func TestThousandHostnamesNeedAtMostTenRequests(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.database.Update(string(e.zone), raiseQuota)
		ctx := reserved(t, 10)
		found, err := e.Zones(ctx, "example.com", "")
		if err != nil || len(found) != 1 {
			t.Fatalf("zones %+v, error %v", found, err)
		}
		_, usageErr := e.Usage(ctx, e.zone)
		_, hostsErr := e.CertificateHosts(ctx, e.zone)
		_, recordsErr := e.Records(ctx, e.zone)
		for _, err := range []error{usageErr, hostsErr, recordsErr} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for first := 0; first < 1000; first += provider.MaxBatch {
			var names []string
			for i := range provider.MaxBatch {
				names = append(names, fmt.Sprintf("n%d.example.com", first+i))
			}
			if _, err := e.Apply(ctx, e.zone, creating(names...)); err != nil {
				t.Fatal(err)
			}
		}
		if records, err := e.Records(ctx, e.zone); err != nil || len(records) != 1000 {
			t.Errorf("%d records, error %v, want 1000", len(records), err)
		}
		if got := e.Count("", ""); got != 10 {
			t.Errorf("%d requests, want 10", got)
		}
		e.wantRequests(t, 5, 2)
	})
}

func TestRequestOfAListSelectsNamesExactly(t *testing.T) {
	var queries []string
	d := openDNS(t, &Client{}, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			queries = append(queries, r.URL.RawQuery)
			return jsonResponse(http.StatusOK, `{"success":true,"result":[],"result_info":{"per_page":5000}}`), nil
		})}, "")
	ctx := reserved(t, 1)
	for _, names := range [][]string{nil, {"*.example.com", "a.example.com", "*.example.com"}} {
		if _, err := d.Records(ctx, "zone", names...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"order=name&page=1&per_page=5000",
		"name.exact=%2A.example.com&order=name&page=1&per_page=5000",
		"name.exact=a.example.com&order=name&page=1&per_page=5000",
	}
	if fmt.Sprint(queries) != fmt.Sprint(want) {
		t.Errorf("got queries %q, want %q", queries, want)
	}
}
