package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func TestBatchWithoutAnAnswerIsSentOnce(t *testing.T) {
	for name, test := range map[string]struct {
		fault   simulator.Fault
		records int
		took    time.Duration
	}{
		"lost request":  {simulator.Fault{Drop: simulator.DropBeforeWrite}, 0, 0},
		"lost answer":   {simulator.Fault{Drop: simulator.DropAfterWrite}, 1, 0},
		"bad gateway":   {simulator.Fault{Status: http.StatusBadGateway}, 0, 0},
		"a proxy's":     {simulator.Fault{Status: http.StatusForbidden, Body: "<html>"}, 0, 0},
		"not JSON":      {simulator.Fault{Body: "<html>"}, 0, 0},
		"too slow":      {simulator.Fault{Latency: time.Hour}, 0, provider.CallTimeout},
		"slow but late": {simulator.Fault{Latency: provider.CallTimeout + time.Second, Late: true}, 1, provider.CallTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			withZone(t, func(t *testing.T, e *zoneEdge) {
				e.Inject(test.fault)
				start := time.Now()
				records, err := e.Apply(t.Context(), e.zone, creating("www.example.com"))
				wantUnavailable(t, err, 0)
				wantElapsed(t, start, test.took)
				if records != nil {
					t.Errorf("Apply returned %+v", records)
				}
				advance(2 * provider.CallTimeout)
				e.wantRequests(t, 1, 0)
				e.wantRecords(t, test.records)
			})
		})
	}
}

func TestBatchThatArrivesLateClaimsItsName(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.Inject(simulator.Fault{Drop: simulator.DropThenWrite, Latency: provider.CallTimeout, Times: 1})
		ctx := reserved(t, 2)
		_, err := e.Apply(ctx, e.zone, creating("www.example.com"))
		wantUnavailable(t, err, 0)
		if records, err := e.Records(ctx, e.zone, "www.example.com"); err != nil || len(records) != 0 {
			t.Errorf("before the late write: records %+v, error %v", records, err)
		}
		advance(provider.CallTimeout + time.Second)
		if _, err := e.Apply(ctx, e.zone, creating("www.example.com")); !errors.Is(err, provider.ErrRecordExists) {
			t.Errorf("a repeated batch returned %v, want ErrRecordExists", err)
		}
		e.wantRecords(t, 1)
	})
}

func TestServiceUnavailableIsReportedWithItsWait(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.Inject(simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 40 * time.Second})
		_, err := e.Apply(t.Context(), e.zone, creating("www.example.com"))
		wantUnavailable(t, err, 40*time.Second)
		e.wantRequests(t, 1, 0)
	})
}

func TestReadsOfDNSAreNotRetried(t *testing.T) {
	for name, fault := range map[string]simulator.Fault{
		"lost answer": {Drop: simulator.DropAfterWrite}, "bad gateway": {Status: http.StatusBadGateway},
		"too slow": {Latency: time.Hour}, "not JSON": {Body: "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			withZone(t, func(t *testing.T, e *zoneEdge) {
				e.Inject(fault)
				records, err := e.Records(t.Context(), e.zone)
				wantUnavailable(t, err, 0)
				if records != nil {
					t.Errorf("Records returned %+v", records)
				}
				e.wantRequests(t, 0, 1)
			})
		})
	}
}

func TestRateLimitStopsTunnelsAndDNS(t *testing.T) {
	// Cloudflare counts the requests of a user, not of a token.
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second, Times: 1})
		start := time.Now()
		_, err := e.Apply(t.Context(), e.zone, creating("www.example.com"))
		wantRateLimited(t, err, 30*time.Second)
		_, err = e.Records(t.Context(), e.zone)
		wantRateLimited(t, err, 30*time.Second)
		_, err = e.tunnels.Tunnels(t.Context())
		wantRateLimited(t, err, 30*time.Second)
		wantElapsed(t, start, 0)
		e.wantRequests(t, 1, 0)
		e.wantRecords(t, 0)
		advance(30 * time.Second)
		if _, err := e.Apply(t.Context(), e.zone, creating("www.example.com")); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestUnansweredDNSLeavesTunnelsAlone(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.Inject(simulator.Fault{Path: recordsPath, Latency: time.Hour})
		ctx := reserved(t, 1)
		for range maxWaiting {
			_, err := e.Records(ctx, e.zone)
			wantUnavailable(t, err, 0)
		}
		results := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := e.Records(ctx, e.zone)
				results <- err
			}()
		}
		advance(time.Second) // these wait, so a further one is not sent
		start := time.Now()
		_, err := e.Records(ctx, e.zone)
		wantUnavailable(t, err, 0)
		wantElapsed(t, start, 0)
		if _, err := e.tunnels.Tunnels(t.Context()); err != nil {
			t.Errorf("Tunnels while DNS does not respond: %v", err)
		}
		for range maxWaiting {
			wantUnavailable(t, <-results, 0)
		}
		e.wantRequests(t, 0, 2*maxWaiting)
	})
}

func TestRevokedTokenIsForbidden(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		revoked := openDNS(t, &Client{}, Options{AccountID: account, APIToken: "revoked", BaseURL: baseURL, Transport: e.transport}, "")
		ctx := reserved(t, 1)
		_, zonesErr := revoked.Zones(ctx, "example.com", "")
		_, recordsErr := revoked.Records(ctx, e.zone)
		_, applyErr := revoked.Apply(ctx, e.zone, creating("www.example.com"))
		for _, err := range []error{zonesErr, recordsErr, applyErr} {
			if !errors.Is(err, provider.ErrForbidden) || provider.IsTransient(err) {
				t.Errorf("got %v, want ErrForbidden", err)
			}
		}
	})
}

func TestListThatChangesWhileItIsReadIsAnError(t *testing.T) {
	const first, last = "a.example.com", "e.example.com"
	for name, test := range map[string]struct {
		change func(t *testing.T, d *zones.Database, zone string)
		failed bool
	}{
		"nothing":          {func(*testing.T, *zones.Database, string) {}, false},
		"created in front": {create("0.example.com"), true},
		"created behind":   {create("z.example.com"), true},
		"deleted in front": {remove(first), true},
		"deleted behind":   {remove(last), true},
		"moved to the front": {func(t *testing.T, d *zones.Database, zone string) {
			remove(last)(t, d, zone)
			create("0.example.com")(t, d, zone)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			withZone(t, func(t *testing.T, e *zoneEdge) {
				for _, name := range []string{first, "b.example.com", "c.example.com", "d.example.com", last} {
					create(name)(t, e.database, string(e.zone))
				}
				e.recordsPerPage = 2
				e.Inject(simulator.Fault{Path: recordsPath, Times: 1, After: func(simulator.Request) {
					test.change(t, e.database, string(e.zone))
				}})
				records, err := e.Records(t.Context(), e.zone)
				if !test.failed {
					if err != nil || len(records) != 5 {
						t.Errorf("got %d records and error %v, want 5", len(records), err)
					}
					e.wantRequests(t, 0, 3)
					return
				}
				wantUnavailable(t, err, 0)
				if records != nil {
					t.Errorf("Records returned %+v", records)
				}
			})
		})
	}
}

func create(name string) func(*testing.T, *zones.Database, string) {
	return func(t *testing.T, d *zones.Database, zone string) {
		kind, content := "CNAME", "a.example.net"
		if _, err := d.Create(zone, zones.Fields{Name: &name, Type: &kind, Content: &content}); err != nil {
			t.Error(err)
		}
	}
}

func remove(name string) func(*testing.T, *zones.Database, string) {
	return func(t *testing.T, d *zones.Database, zone string) {
		for _, r := range d.Records(zone) {
			if r.Name == name {
				if err := d.Delete(zone, r.ID); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestInvalidZoneIDsAreNotSent(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		for _, id := range []provider.ZoneID{"", ".", "..", "a/b", "a?b", "é"} {
			_, recordsErr := e.Records(t.Context(), id)
			_, applyErr := e.Apply(t.Context(), id, creating("www.example.com"))
			for _, err := range []error{recordsErr, applyErr} {
				if !errors.Is(err, provider.ErrForbidden) {
					t.Errorf("zone %q: got %v, want ErrForbidden", id, err)
				}
			}
		}
		if got := e.Requests(); len(got) > 0 {
			t.Errorf("sent %+v", got)
		}
	})
}

func TestEndOfTheContextEndsABatch(t *testing.T) {
	withZone(t, func(t *testing.T, e *zoneEdge) {
		e.Inject(simulator.Fault{Latency: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Apply(ctx, e.zone, creating("www.example.com")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}
