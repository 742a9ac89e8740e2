package cloudflare

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// zoneEdge is a simulator with a zone, and a DNS and a provider with one budget that call it
// over HTTP on in-memory connections.
type zoneEdge struct {
	*simulator.Server
	*DNS
	tunnels  *Provider
	database *zones.Database
	zone     provider.ZoneID
}

// API paths as patterns for the simulator.
const (
	recordsPath = "/zones/*/dns_records"
	batchPath   = "/zones/*/dns_records/batch"
)

// withZone runs a test with a new zoneEdge and the fake clock from testing/synctest.
func withZone(t *testing.T, test func(*testing.T, *zoneEdge)) {
	synctest.Test(t, func(t *testing.T) {
		database := zones.New(zones.Options{})
		e := &zoneEdge{
			Server:   simulator.New(simulator.Options{AccountID: account, Token: "account-token", Zones: database}),
			database: database,
			zone:     provider.ZoneID(database.Add(zones.Zone{Name: "example.com", Account: account})),
		}
		e.Restrict("dns-token", everyPermission)
		o := Options{AccountID: account, APIToken: "account-token", BaseURL: baseURL, Transport: serve(t, e.API())}
		var client Client
		e.tunnels = open(t, &client, o)
		e.DNS = openDNS(t, &client, o, "dns-token")
		test(t, e)
	})
}

func openDNS(t *testing.T, c *Client, o Options, token string) *DNS {
	t.Helper()
	d, err := c.OpenDNS(o, token)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func creating(names ...string) provider.Batch {
	var b provider.Batch
	for _, name := range names {
		b.Creates = append(b.Creates, provider.CNAME{Name: name, Target: "a.example.net"})
	}
	return b
}

// wantRecords checks how many records the zone has.
func (e *zoneEdge) wantRecords(t *testing.T, want int) {
	t.Helper()
	if got := len(e.database.Records(string(e.zone))); got != want {
		t.Errorf("the zone has %d records, want %d", got, want)
	}
}

// wantRequests checks the number of requests with batches and of lists.
func (e *zoneEdge) wantRequests(t *testing.T, batches, lists int) {
	t.Helper()
	if got := e.Count("POST", batchPath); got != batches {
		t.Errorf("%d batches, want %d", got, batches)
	}
	if got := e.Count("GET", recordsPath); got != lists {
		t.Errorf("%d lists, want %d", got, lists)
	}
}

// reserved returns a context whose calls the budget grants together.
func reserved(t *testing.T, requests int) context.Context {
	return provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityDNS), requests)
}

// raiseQuota lets a zone have 100,000 records.
func raiseQuota(z *zones.Zone) { z.RecordQuota = 100_000 }
