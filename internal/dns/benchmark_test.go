package dns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// largeFacts returns a zone with 20,100 records and 100 Gateways that serve 100 hostnames
// each. All of them have a record, apart from the missing ones.
func largeFacts(missing int) dns.Facts {
	f := dns.Facts{
		Clock: epoch, Options: signed, Zone: zone, Account: account, GatewaysKnown: true, TokenVersion: "1",
		Classes: []dns.Class{{Name: "tunnel", Settings: settings.DNS{
			Mode: "Manage", Zones: settingsZones(zone), DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 100,
		}}},
	}
	var records []provider.Record
	for i := range 100 {
		name := alpha
		name.Namespace, name.Name = fmt.Sprintf("team-%02d", i), fmt.Sprintf("gateway-%02d", i)
		g := gateway(name)
		for j := range 100 {
			h := fmt.Sprintf("h%02d.team-%02d.example.com", j, i)
			g.Hostnames = append(g.Hostnames, dns.Hostname{Name: h, Namespace: name.Namespace, Created: epoch, Served: true, Permitted: true})
			if missing > 0 {
				missing--
				continue
			}
			records = append(records, provider.Record{
				ID: provider.RecordID(h), Name: h, Type: "CNAME", Content: g.Tunnel.Hostname(), Proxied: true, TTL: provider.AutomaticTTL,
				Comment: dns.MarkForTest(signed, "zone", h, g.Tunnel.Hostname()),
			})
		}
		f.Gateways = append(f.Gateways, g)
	}
	for i := len(records); i < 20_100; i++ {
		h := fmt.Sprintf("other%05d.example.com", i)
		records = append(records, provider.Record{ID: provider.RecordID(h), Name: h, Type: "A", Content: "192.0.2.1"})
	}
	conclude := func(a dns.Action, r dns.Result) { f.Memory = dns.Conclude(f.Memory, dns.Step{Action: a, ID: ""}, r) }
	conclude(dns.ReadZone, dns.Result{Zones: []provider.Zone{{ID: "zone", Name: zone, AccountID: account, Status: "active"}}})
	conclude(dns.ReadRecords, dns.Result{Records: records})
	conclude(dns.ReadCertificates, dns.Result{Hosts: []string{zone, star}})
	conclude(dns.ReadUsage, dns.Result{Usage: provider.Usage{Records: 20_000}})
	f.Memory = dns.Observe(f)
	return f
}

// BenchmarkObserve measures noticing the facts about 10,000 hostnames.
func BenchmarkObserve(b *testing.B) {
	f := largeFacts(0)
	for b.Loop() {
		f.Memory = dns.Observe(f)
	}
}

// BenchmarkDecide measures a decision about 10,000 hostnames, of which 1,000 have no
// record.
func BenchmarkDecide(b *testing.B) {
	f := largeFacts(1000)
	for b.Loop() {
		if step := dns.Decide(f); step.Action != dns.Apply {
			b.Fatalf("the step is %s, want Apply", step.Action)
		}
	}
}

// BenchmarkReport measures the report about 10,000 hostnames.
func BenchmarkReport(b *testing.B) {
	f := largeFacts(0)
	for b.Loop() {
		if r := dns.NewReport(f); len(r.Gateways) != 100 {
			b.Fatalf("the report has %d Gateways", len(r.Gateways))
		}
	}
}

// BenchmarkVerify measures verifying the marks of 10,000 records after all were read.
func BenchmarkVerify(b *testing.B) {
	f := largeFacts(0)
	for b.Loop() {
		f.Options.ClusterUID += "x"
		f.Memory = dns.Observe(f)
	}
}
