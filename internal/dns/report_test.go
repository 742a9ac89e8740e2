package dns_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// A Gateway's findings come from all zones. They are incomplete until each has a report
// with the Gateway.
func TestAssemble(t *testing.T) {
	set := settings.DNS{Mode: v1alpha1.DNSManage, Zones: settingsZones(zone, "team.example.com"), Exclude: []string{"legacy.example.com"}}
	g := gateway(alpha, www, "a.team.example.com", "www.example.net", "legacy.example.com")
	published := dns.Finding{Verdict: dns.VerdictManaged, Reason: conditions.ReasonPublished}
	noZone := dns.Finding{
		Verdict: dns.VerdictNoZone, Reason: conditions.ReasonNoZone,
		Message: "no zone in dns.zones contains the hostname. List its zone, or exclude the hostname.",
	}
	reports := map[string]dns.Report{zone: {Gateways: map[types.NamespacedName]dns.Findings{alpha: {www: published}}}}
	check := func(when string, wantComplete bool, want dns.Findings) {
		t.Helper()
		got, complete := dns.Assemble(g, set, reports)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(conditions.Reason{})); diff != "" || complete != wantComplete {
			t.Errorf("%s, the findings are complete: %t, and differ (-want +got):\n%s", when, complete, diff)
		}
	}
	check("with one report", false, dns.Findings{www: published, "www.example.net": noZone})
	reports["team.example.com"] = dns.Report{Gateways: map[types.NamespacedName]dns.Findings{}}
	check("without the Gateway in a report", false, dns.Findings{www: published, "www.example.net": noZone})
	reports["team.example.com"] = dns.Report{Gateways: map[types.NamespacedName]dns.Findings{alpha: {"a.team.example.com": published}}}
	check("with all reports", true, dns.Findings{www: published, "www.example.net": noZone, "a.team.example.com": published})
	set.Mode = v1alpha1.DNSOff
	check("with Off", true, dns.Findings{})
}

// A plan contains what Manage would do, even while the zone is only observed, and without
// delays. It changes nothing.
func TestPlan(t *testing.T) {
	s := newScenario(t)
	s.settings(func(d *settings.DNS) { d.Mode, d.Exclude = v1alpha1.DNSObserve, []string{"excluded.example.com"} })
	managed(s, star, alphaAt)
	managed(s, "moved.example.com", alphaAt)
	managed(s, "repaired.example.com", betaAt, unproxied)
	managed(s, "excluded.example.com", alphaAt)
	s.add("conflict.example.com", "A", "192.0.2.1")
	s.set(gateway(alpha, "a.b.example.com", "conflict.example.com"))
	s.set(gateway(beta, "moved.example.com", "repaired.example.com", "b.example.com"))
	s.run()
	before := s.database.Records(s.id)
	s.facts.Memory = dns.Observe(s.facts)
	var got []string
	for _, c := range dns.Plan(s.facts) {
		got = append(got, fmt.Sprintf("%s %s %s", c.Operation, c.Name, c.Gateway.Name))
	}
	want := []string{
		"create a.b.example.com alpha", "create b.example.com beta", "move moved.example.com beta", "repair repaired.example.com beta",
		"release excluded.example.com alpha", "delete *.example.com alpha",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plan differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.database.Records(s.id)); diff != "" {
		t.Errorf("the records have changed:\n%s", diff)
	}
}

// Where the older class has the mode Off, the Gateways of a younger one report the
// conflict, and nothing is requested.
func TestConflictWithOff(t *testing.T) {
	s := newScenario(t)
	younger := s.facts.Classes[0]
	younger.Name, younger.Created = "young", epoch.Add(time.Hour)
	s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSOff })
	s.facts.Classes = append(s.facts.Classes, younger)
	g := gateway(alpha, www)
	g.Class = "young"
	s.set(g)
	if step := s.run(); step.Action != dns.None || len(s.cloud.Calls()) > 0 {
		t.Errorf("the step is %s after the calls %v, want none", step.Action, s.cloud.Calls())
	}
	if f := s.finding(alpha, www); f.Reason != conditions.ReasonZoneSettingsConflict {
		t.Errorf("the finding is %+v, want a conflict", f)
	}
}

// A large zone is listed once an hour, and before edits only the names concerned are read,
// while there are fewer of them than pages.
func TestLargeZone(t *testing.T) {
	f := largeFacts(0)
	f.Gateways = slices.Clone(f.Gateways)
	f.Gateways[0].Hostnames = f.Gateways[0].Hostnames[4:]
	var reads []dns.Step
	for f.Uptime < 30*time.Minute {
		f.Memory = dns.Observe(f)
		step := dns.Decide(f)
		r := dns.Result{Sent: f.Uptime, Uptime: f.Uptime}
		switch step.Action {
		case dns.Wait:
			f.Uptime += step.Delay
			continue
		case dns.ReadRecords:
			reads = append(reads, step)
			for _, name := range step.Names {
				r.Records = append(r.Records, provider.Record{
					ID: provider.RecordID(name), Name: name, Type: "CNAME", Content: f.Gateways[0].Tunnel.Hostname(), Proxied: true, TTL: provider.AutomaticTTL,
					Comment: dns.MarkForTest(signed, "zone", name, f.Gateways[0].Tunnel.Hostname()),
				})
			}
		case dns.Apply:
			if n := len(step.Batch.Deletes); n != len(reads[len(reads)-1].Names) {
				t.Errorf("the batch has %d deletions after reading %d names", n, len(reads[len(reads)-1].Names))
			}
		default:
			t.Fatalf("at %s, the step is %s", f.Uptime, step.Action)
		}
		f.Memory = dns.Conclude(f.Memory, step, r)
	}
	if len(reads) != 1 || len(reads[0].Names) != 4 || reads[0].Requests != 5 {
		t.Errorf("the reads are %v, want one of four names", reads)
	}
}

// The records of a namespace count until they are deleted. After a restart, records that no
// listener claims count for no namespace, and are deleted first.
func TestLimitCountsRecordsThatWaitForDeletion(t *testing.T) {
	s := newScenario(t)
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 1 })
	s.set(gateway(alpha, "old.example.com"))
	s.run()
	s.set(gateway(alpha, "new.example.com"))
	s.runFor(9 * time.Minute)
	s.wantLog("before the deletion", "create old.example.com alpha")
	if f := s.finding(alpha, "new.example.com"); f.Reason != conditions.ReasonQuotaExceeded {
		t.Errorf("the finding is %+v, want QuotaExceeded", f)
	}
	s.restart()
	s.run()
	s.wantLog("after a restart", "create new.example.com alpha")
}

// Deletions wait for one read a minute, and creations do not wait for them.
func TestDeletionsWait(t *testing.T) {
	s := newScenarioIn(t, zones.Zone{Name: zone, Account: account, Plan: zones.Pro})
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 1000 })
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("h%03d.example.com", i))
	}
	s.set(gateway(alpha, many...))
	s.runFor(2 * time.Minute)
	s.set(gateway(alpha))
	s.runFor(10*time.Minute + 30*time.Second)
	s.takeLog()
	remaining := len(s.database.Records(s.id))
	if remaining != 300 {
		t.Errorf("%d records remain after the first read, want 300", remaining)
	}
	s.set(gateway(beta, "beta.example.com"))
	s.run()
	s.wantLog("at once", "create beta.example.com beta")
	s.runFor(2 * time.Minute)
	if got := len(s.takeLog()); got != 300 {
		t.Errorf("there are %d deletions in two minutes, want 300", got)
	}
}

// A record that waits for the zone's quota is created when the quota has been raised.
func TestRaisedQuota(t *testing.T) {
	s := newScenarioIn(t, zones.Zone{Name: zone, Account: account, RecordQuota: 10})
	for i := range 9 {
		s.add(fmt.Sprintf("other%d.example.com", i), "A", "192.0.2.1")
	}
	s.set(gateway(alpha, www))
	s.runFor(5 * time.Minute)
	s.wantLog("with a full zone")
	s.database.Update(s.id, func(z *zones.Zone) { z.RecordQuota = 20 })
	s.runFor(6 * time.Minute)
	s.wantLog("with the new quota", "create www.example.com alpha")
}

// A report has the numbers for metrics.
func TestReportNumbers(t *testing.T) {
	s := newScenario(t)
	if r := s.report(); r.Gateways != nil {
		t.Error("there are findings before the zone was read")
	}
	managed(s, "b.example.com", betaAt)
	managed(s, "a.example.com", betaAt)
	s.run()
	r := s.report()
	got := []any{r.Records, r.Quota, r.Unused[dns.VerdictOrphan], r.Orphans, r.ReadAt}
	if diff := cmp.Diff([]any{2, 200, 2, []string{"a.example.com", "b.example.com"}, 100 * time.Millisecond}, got); diff != "" {
		t.Errorf("the report differs (-want +got):\n%s", diff)
	}
	s.facts.TokenVersion, s.facts.TokenMessage = "", "no token"
	if r := s.report(); r.Forbidden != "no token" {
		t.Errorf("the report says %q about the token", r.Forbidden)
	}
}

// A batch that Cloudflare rejects as invalid is split until only the invalid record is left,
// which is tried again later.
func TestInvalidRecord(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, "a.example.com", "b.example.com", "c.example.com"))
	invalid := fmt.Errorf("code 9000: %w", provider.ErrInvalidRecord)
	s.cloud.Fail("Apply", invalid, invalid)
	s.run()
	s.wantLog("in the end", "failed: invalid DNS record", "failed: invalid DNS record", "create b.example.com alpha", "create c.example.com alpha")
	want := "Cloudflare rejects the record as invalid. The controller tries again in ten minutes."
	if f := s.finding(alpha, "a.example.com"); f.Message != want {
		t.Errorf("the message is %q, want %q", f.Message, want)
	}
	s.runFor(10 * time.Minute)
	s.wantLog("later", "create a.example.com alpha")
}
