package dns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// wantLog compares the changes since the last call.
func (s *scenario) wantLog(when string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.takeLog()); diff != "" {
		s.t.Errorf("%s, the changes differ (-want +got):\n%s", when, diff)
	}
}

// A record moves at once within the namespace that held it, and otherwise after the
// deletion delay.
func TestMove(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.run()
	s.wantLog("at first", "create www.example.com alpha")
	neighbor := types.NamespacedName{Namespace: alpha.Namespace, Name: "neighbor"}
	s.set(gateway(alpha))
	s.set(gateway(neighbor, www))
	s.runFor(10 * time.Second)
	s.wantLog("within the namespace", "move www.example.com neighbor")
	s.set(gateway(neighbor))
	s.set(gateway(beta, www))
	s.runFor(9 * time.Minute)
	s.wantLog("before the deletion delay")
	s.runFor(2 * time.Minute)
	s.wantLog("after the deletion delay", "move www.example.com beta")
}

// The younger Gateway in the namespace that held the hostname precedes an older one in
// another namespace.
func TestMoveWithinTheNamespaceFirst(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(beta, www))
	s.run()
	neighbor := gateway(types.NamespacedName{Namespace: beta.Namespace, Name: "neighbor"}, www)
	neighbor.Created = epoch.Add(24 * time.Hour)
	s.set(gateway(beta))
	s.set(gateway(alpha, www))
	s.set(neighbor)
	s.takeLog()
	s.runFor(time.Hour)
	s.wantLog("later", "move www.example.com neighbor")
}

// A hostname that is wanted again keeps its record, and the deletion delay begins again.
func TestWantedAgain(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.run()
	for range 3 {
		s.set(gateway(alpha))
		s.runFor(9 * time.Minute)
		s.set(gateway(alpha, www))
		s.runFor(time.Minute)
	}
	s.wantLog("with interruptions below the delay", "create www.example.com alpha")
}

// A hostname that a Gateway held through its wildcard moves like one with a record.
func TestMoveFromWildcard(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, star, www))
	s.run()
	s.wantLog("at first", "create *.example.com alpha", "create www.example.com alpha")

	s = newScenario(t)
	managed(s, star, alphaAt)
	s.set(gateway(alpha, star, www))
	s.run()
	s.set(gateway(alpha, star))
	s.set(gateway(beta, www))
	s.runFor(9 * time.Minute)
	s.wantLog("before the deletion delay")
	s.runFor(2 * time.Minute)
	s.wantLog("after the deletion delay", "create www.example.com beta")
}

// Before a wildcard goes, the hostnames that it answers for get their own records, and a
// read shows them at least a minute later.
func TestWildcardIsDeletedLast(t *testing.T) {
	s := newScenario(t)
	managed(s, star, alphaAt)
	s.set(gateway(alpha, www, "a.b.example.com"))
	s.runFor(10*time.Minute + 30*time.Second)
	s.wantLog("after the deletion delay", "create www.example.com alpha", "create a.b.example.com alpha")
	s.runFor(2 * time.Minute)
	s.wantLog("a minute later", "delete *.example.com alpha")
}

// A new record that ends a wildcard waits for the records of the hostnames below it.
func TestRecordThatEndsAWildcard(t *testing.T) {
	s := newScenario(t)
	managed(s, star, alphaAt)
	s.set(gateway(alpha, star, "a.b.example.com", "other.example.com"))
	s.run()
	s.runFor(2 * time.Minute)
	s.set(gateway(beta, "b.example.com"))
	s.runFor(30 * time.Second)
	s.wantLog("first", "create a.b.example.com alpha")
	want := dns.Finding{Verdict: dns.VerdictMissing, Message: "the change would end the wildcard that answers for a.b.example.com. It waits until that hostname has its own record."}
	if f := s.finding(beta, "b.example.com"); f.Verdict != want.Verdict || f.Message != want.Message {
		t.Errorf("the finding is %+v, want %+v", f, want)
	}
	s.runFor(time.Minute)
	s.wantLog("a minute later", "create b.example.com beta")
}

// A record that would end the wildcard of a Gateway that gets no record waits, and the
// finding says why.
func TestWildcardOfAFrozenGateway(t *testing.T) {
	for state, why := range map[ownership.State]string{
		ownership.Frozen:   "its Gateway is paused, its Tunnel is blocked, or its GatewayClass does not manage the zone",
		ownership.Rejected: "its Gateway is not accepted",
	} {
		s := newScenario(t)
		managed(s, star, alphaAt)
		g := gateway(alpha, star, "a.b.example.com")
		g.State = state
		s.set(g)
		s.set(gateway(beta, "b.example.com"))
		s.runFor(time.Hour)
		s.wantLog("while it is " + why)
		want := "the change would end the wildcard that answers for a.b.example.com, and no record can be created for that hostname first: " + why + "."
		if f := s.finding(beta, "b.example.com"); f.Message != want {
			t.Errorf("the message is %q, want %q", f.Message, want)
		}
		s.set(gateway(alpha, star, "a.b.example.com"))
		s.runFor(2 * time.Minute)
		s.wantLog("afterwards", "create a.b.example.com alpha", "create b.example.com beta")
	}
}

// Nothing is created below the wildcard of a Gateway that is unknown.
func TestWildcardOfAnUnknownGateway(t *testing.T) {
	s := newScenario(t)
	managed(s, star, alphaAt)
	s.set(dns.Gateway{NamespacedName: alpha, Class: "tunnel", Tunnel: tunnelOf(alpha)})
	s.set(gateway(beta, www))
	s.runFor(time.Hour)
	s.wantLog("while it is unknown")
	s.set(gateway(alpha, star))
	s.run()
	s.wantLog("afterwards", "create www.example.com beta")
}

// Records that protect a hostname from another namespace's change ignore the limit of its
// namespace.
func TestProtectionIgnoresTheLimit(t *testing.T) {
	s := newScenario(t)
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 1 })
	managed(s, star, alphaAt)
	s.set(gateway(alpha, star, "a.b.example.com"))
	s.set(gateway(beta, "b.example.com"))
	s.runFor(3 * time.Minute)
	s.wantLog("in the end", "create a.b.example.com alpha", "create b.example.com beta")
}

// A namespace that gives up its wildcard gets no more records than its limit. The wildcard
// remains for its other hostnames.
func TestProtectionWithinANamespaceKeepsTheLimit(t *testing.T) {
	s := newScenario(t)
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 3 })
	managed(s, star, alphaAt)
	names := []string{"a.example.com", "b.example.com", "c.example.com", "d.example.com", "e.example.com"}
	s.set(gateway(alpha, append(names, star)...))
	s.runFor(time.Minute)
	s.wantLog("while the wildcard answers")
	s.set(gateway(alpha, names...))
	s.runFor(time.Hour)
	s.wantLog("in the end", "create a.example.com alpha", "create b.example.com alpha")
	if s.target(star) == "" {
		t.Error("the wildcard that other hostnames need was deleted")
	}
}

// A record through which a wanted hostname's chain leads remains.
func TestChainKeepsItsRecords(t *testing.T) {
	s := newScenario(t)
	managed(s, "entry.example.com", alphaAt)
	s.add(www, "CNAME", "entry.example.com")
	s.set(gateway(alpha, www))
	s.runFor(time.Hour)
	s.wantLog("while the chain needs the record")
	s.set(gateway(alpha))
	s.runFor(time.Hour)
	s.wantLog("afterwards", "delete entry.example.com alpha")
}

// At retirement, a record moves to the namespace that held it, or is deleted, or stays for
// a Gateway in another namespace.
func TestRetirement(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, "moved.example.com", "deleted.example.com", "stays.example.com"))
	s.run()
	s.takeLog()
	retiring := gateway(alpha)
	retiring.Class, retiring.State = "", ownership.Retiring
	s.set(retiring)
	neighbor := types.NamespacedName{Namespace: alpha.Namespace, Name: "neighbor"}
	s.set(gateway(neighbor, "moved.example.com"))
	s.set(gateway(beta, "stays.example.com"))
	if s.report().Released[alpha] {
		t.Error("the Gateway is released before its records have moved")
	}
	s.runFor(2 * time.Minute)
	s.wantLog("at retirement", "move moved.example.com neighbor", "delete deleted.example.com alpha")
	if !s.report().Released[alpha] {
		t.Error("the Gateway is not released although its records have moved")
	}
	s.remove(alpha)
	s.runFor(10 * time.Minute)
	s.wantLog("after the deletion delay", "move stays.example.com beta")
}

// Another writer creates one of 100 records first. The batch is read again and split, and
// only that hostname has a conflict.
func TestRecordExists(t *testing.T) {
	s := newScenario(t)
	var hostnames []string
	for i := range 100 {
		hostnames = append(hostnames, fmt.Sprintf("h%02d.example.com", i))
	}
	s.set(gateway(alpha, hostnames...))
	for step := s.next(); step.Action != dns.Apply; step = s.next() {
		s.execute(step)
	}
	s.add("h42.example.com", "A", "192.0.2.1")
	s.run()
	if got := len(s.log); got != 100 {
		t.Errorf("there are %d entries, want a failure and 99 creations: %q", got, s.log)
	}
	if f := s.finding(alpha, "h42.example.com"); f.Verdict != dns.VerdictRecordConflict {
		t.Errorf("the verdict is %s, want a conflict", f.Verdict)
	}
	if s.calls[dns.Apply] > 4 || s.calls[dns.ReadRecords] > 2 {
		t.Errorf("there are too many requests: %v", s.calls)
	}
}

// After a lost answer, nothing is sent until Cloudflare can no longer apply the batch.
func TestLostAnswer(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.cloud.FailAfter("Apply", errors503)
	step := s.run()
	if step.Action != dns.Wait || step.Delay != provider.CallTimeout {
		t.Errorf("the step is %s for %s, want to wait %s", step.Action, step.Delay, provider.CallTimeout)
	}
	s.takeLog()
	s.runFor(time.Minute)
	s.wantLog("when the batch was applied")
	if f := s.finding(alpha, www); f.Verdict != dns.VerdictManaged {
		t.Errorf("the verdict is %s, want Managed", f.Verdict)
	}
}

// A new token is used at once.
func TestNewToken(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.cloud.Restrict("Zone Read", "DNS Read")
	s.run()
	if report := s.report(); report.Forbidden == "" {
		t.Error("the report does not say that the token lacks a permission")
	}
	s.takeLog()
	s.cloud.Restrict("Zone Read", "DNS Edit")
	s.facts.TokenVersion = "2"
	s.run()
	s.wantLog("with the new token", "create www.example.com alpha")
	if report := s.report(); report.Forbidden != "" {
		t.Errorf("the report says %q", report.Forbidden)
	}
}

// A record that another writer edits or deletes is noticed within ten minutes.
func TestExternalChanges(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.run()
	s.takeLog()
	id := string(s.id)
	records := s.database.Records(id)
	if err := s.database.Delete(id, records[0].ID); err != nil {
		t.Fatal(err)
	}
	s.runFor(10 * time.Minute)
	s.wantLog("after the deletion", "create www.example.com alpha")
	target := "elsewhere.example.net"
	if _, err := s.database.Patch(id, s.database.Records(id)[0].ID, zones.Fields{Content: &target}); err != nil {
		t.Fatal(err)
	}
	s.runFor(time.Hour)
	s.wantLog("after the edit")
	if f := s.finding(alpha, www); f.Verdict != dns.VerdictRecordConflict {
		t.Errorf("the verdict is %s, want a conflict", f.Verdict)
	}
}

// 1,000 new hostnames cost at most ten requests, and then one list every ten minutes.
func TestRequests(t *testing.T) {
	s := newScenarioIn(t, zones.Zone{Name: zone, Account: account, Plan: zones.Pro})
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 1000 })
	var hostnames []string
	for i := range 1000 {
		hostnames = append(hostnames, fmt.Sprintf("h%03d.example.com", i))
	}
	s.set(gateway(alpha, hostnames...))
	s.run()
	if len(s.log) != 1000 {
		t.Fatalf("there are %d changes, want 1000", len(s.log))
	}
	if n := len(s.cloud.Calls()); n > 10 {
		t.Errorf("there are %d requests, want at most 10", n)
	}
	before := len(s.cloud.Calls())
	s.runFor(59 * time.Minute)
	if n := len(s.cloud.Calls()) - before; n != 5 {
		t.Errorf("there are %d requests in 59 minutes, want 5 lists", n)
	}
}

// Two namespaces take turns, so that one with many hostnames does not delay the other.
func TestTurns(t *testing.T) {
	s := newScenarioIn(t, zones.Zone{Name: zone, Account: account, Plan: zones.Pro})
	s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 1000 })
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("h%03d.example.com", i))
	}
	s.set(gateway(alpha, many...))
	s.set(gateway(beta, "beta.example.com"))
	for step := s.next(); ; step = s.next() {
		s.execute(step)
		if step.Action == dns.Apply {
			break
		}
	}
	if s.target("beta.example.com") == "" {
		t.Error("the first batch does not contain the only hostname of the second namespace")
	}
}
