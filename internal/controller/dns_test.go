package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// testBook is a book whose zone example.com the account "account" manages, and of which the
// Gateways a and b exist at the start.
type testBook struct {
	*dnsBook
	t        *testing.T
	enqueued []string
	requeued []string
}

func newTestBook(t *testing.T) *testBook {
	t.Helper()
	b := &testBook{t: t}
	class := zoneClass{name: "tunnel", settings: settings.DNS{Mode: v1alpha1.DNSManage}}
	b.dnsBook = &dnsBook{
		zones:   newZones(nil),
		enqueue: func(key zoneKey) { b.enqueued = append(b.enqueued, key.account+"/"+key.name) },
		requeue: func(key state.Key) { b.requeued = append(b.requeued, key.Name) },
		entries: map[types.NamespacedName]*dnsEntry{}, undecided: &undecided{names: map[types.NamespacedName]bool{gatewayName("a"): true, gatewayName("b"): true}},
	}
	for _, key := range []zoneKey{{"account", "example.com"}, {"another", "example.com"}} {
		b.zones.byKey[key] = &zone{classes: []zoneClass{class}}
	}
	return b
}

func gatewayName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "infra", Name: name}
}

// decide records a decision about the Gateway in the account "account".
func (b *testBook) decide(name string, inEffect bool, change func(g *dns.Gateway), hostnames ...string) {
	u := dnsUpdate{account: "account", inEffect: inEffect, gateway: dns.Gateway{NamespacedName: gatewayName(name), Class: "tunnel", State: ownership.Accepted, Tunnel: "t-1"}}
	for _, h := range hostnames {
		u.gateway.Hostnames = append(u.gateway.Hostnames, dns.Hostname{Name: h, Served: inEffect})
	}
	if change != nil {
		change(&u.gateway)
	}
	b.update(u)
}

// get returns what the zone sees of the Gateway a, and whether the book is complete.
func (b *testBook) get(account string) (dns.Gateway, bool) {
	all, complete := b.gateways(zoneKey{account, "example.com"}, []dns.Class{{Name: "tunnel"}})
	for _, g := range all {
		if g.Name == "a" {
			return g, complete
		}
	}
	return dns.Gateway{}, complete
}

func (b *testBook) wantEnqueued(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.enqueued); diff != "" {
		b.t.Errorf("the enqueued zones differ (-want +got):\n%s", diff)
	}
	b.enqueued = nil
}

func TestBookIsCompleteWhenEveryGatewayWasDecided(t *testing.T) {
	for name, last := range map[string]func(b *testBook){
		"a decision":             func(b *testBook) { b.decide("b", true, nil) },
		"a Gateway that is gone": func(b *testBook) { b.forget(gatewayName("b")) },
		"an unknown Gateway":     func(b *testBook) { b.suspend(gatewayName("b"), "", "") },
		"a Tunnel of a Gateway":  func(b *testBook) { b.suspend(gatewayName("b"), "t-2", "account") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBook(t)
			b.decide("a", true, nil, "a.example.com")
			b.enqueued = nil
			if _, complete := b.get("account"); complete {
				t.Error("the book is complete without the second Gateway")
			}
			last(b)
			if _, complete := b.get("account"); !complete {
				t.Error("the book is not complete")
			}
			if len(b.enqueued) != 2 {
				t.Errorf("the zones %v were enqueued, want all", b.enqueued)
			}
		})
	}
	b := newTestBook(t)
	b.undecided = &undecided{}
	if _, complete := b.get("account"); complete {
		t.Error("the book is complete before the Gateways were listed")
	}
}

func TestServedCountsOnlyInEffect(t *testing.T) {
	b := newTestBook(t)
	b.decide("a", true, nil, "a.example.com")
	b.decide("a", false, nil, "a.example.com", "b.example.com")
	g, _ := b.get("account")
	if !g.Hostnames[0].Served || g.Hostnames[1].Served {
		t.Errorf("got %+v: only the hostname that was served before is served", g.Hostnames)
	}
	b.decide("a", true, nil, "a.example.com", "b.example.com")
	if g, _ = b.get("account"); !g.Hostnames[1].Served {
		t.Error("the hostname is not served although the configuration is in effect")
	}
}

func TestConnectedIsRememberedForATunnel(t *testing.T) {
	b := newTestBook(t)
	tunnel := func(id string, connected bool) func(*dns.Gateway) {
		return func(g *dns.Gateway) { g.Tunnel, g.Connected = provider.TunnelID(id), connected }
	}
	for _, step := range []struct {
		id              string
		connected, want bool
	}{{"t-1", false, false}, {"t-1", true, true}, {"t-1", false, true}, {"t-2", false, false}, {"t-2", true, true}} {
		b.decide("a", true, tunnel(step.id, step.connected))
		if g, _ := b.get("account"); g.Connected != step.want {
			t.Errorf("%+v: connected is %t", step, g.Connected)
		}
	}
}

func TestGatewayOfAnotherAccountIsFrozen(t *testing.T) {
	b := newTestBook(t)
	b.decide("a", true, nil, "a.example.com")
	if g, _ := b.get("another"); g.State != ownership.Frozen {
		t.Errorf("in the other account, the state is %d", g.State)
	}
	if g, _ := b.get("account"); g.State != ownership.Accepted {
		t.Errorf("the state is %d", g.State)
	}
}

func TestSuspendedGatewayKeepsItsHostnames(t *testing.T) {
	b := newTestBook(t)
	b.decide("a", true, nil, "a.example.com")
	b.suspend(gatewayName("a"), "", "")
	if g, _ := b.get("account"); g.State != ownership.Unknown || len(g.Hostnames) != 1 || !g.Hostnames[0].Served || g.Tunnel != "t-1" {
		t.Errorf("got %+v", g)
	}
}

func TestChangesEnqueueZones(t *testing.T) {
	b := newTestBook(t)
	b.undecided.names = map[types.NamespacedName]bool{}
	b.decide("a", true, nil, "a.example.com")
	b.wantEnqueued("account/example.com")
	b.decide("a", true, nil, "a.example.com")
	b.wantEnqueued()
	b.decide("a", true, nil, "a.example.com", "a.example.net", "notexample.com")
	b.wantEnqueued()
	b.decide("a", true, nil, "*.example.com")
	b.wantEnqueued("account/example.com")
	b.decide("a", true, func(g *dns.Gateway) { g.State = ownership.Frozen }, "*.example.com")
	b.wantEnqueued("account/example.com")
	b.forget(gatewayName("a"))
	b.wantEnqueued("account/example.com")
	b.forget(gatewayName("a"))
	b.wantEnqueued()
}

func TestReportsRequeueGateways(t *testing.T) {
	b := newTestBook(t)
	key := zoneKey{"account", "example.com"}
	b.decide("a", true, nil, "a.example.com")
	b.decide("b", true, nil, "b.example.com")
	report := func(reason conditions.Reason) dns.Report {
		return dns.Report{Gateways: map[types.NamespacedName]dns.Findings{gatewayName("a"): {"a.example.com": {Reason: reason}}}}
	}
	pending, published := report(conditions.ReasonPending), report(conditions.ReasonPublished)
	for _, step := range []struct {
		name          string
		before, after dns.Report
		want          int
	}{
		{"the first report affects every Gateway", dns.Report{}, pending, 2},
		{"a report without a change", pending, report(conditions.ReasonPending), 0},
		{"a changed finding", pending, published, 1},
	} {
		b.reported(key, step.before, step.after)
		if len(b.requeued) != step.want {
			t.Errorf("%s: requeued %v, want %d", step.name, b.requeued, step.want)
		}
		b.requeued = nil
	}
}

func TestReleaseCountsForEachZoneAndRetirement(t *testing.T) {
	b := newTestBook(t)
	key, second := zoneKey{"account", "example.com"}, zoneKey{"account", "example.net"}
	b.zones.byKey[second] = &zone{classes: b.zones.byKey[key].classes}
	retiring := func(g *dns.Gateway) { g.State = ownership.Retiring }
	released := dns.Report{Released: map[types.NamespacedName]bool{gatewayName("a"): true}}
	want := func(when string, want bool) {
		t.Helper()
		if got, _ := b.unreleased(gatewayName("a"), "account"); got != want {
			t.Errorf("%s: unreleased is %t", when, got)
		}
	}
	b.reported(key, dns.Report{}, released)
	want("before the retirement", true)
	b.decide("a", true, retiring)
	b.reported(key, dns.Report{}, released)
	want("one of two zones", true)
	b.reported(second, dns.Report{}, released)
	want("both zones", false)
	b.reported(second, released, dns.Report{})
	want("a zone that has records again", true)
	b.zones.byKey[key].report.BlockedUntil, b.zones.byKey[second].report.BlockedUntil = 2*time.Minute, time.Minute
	if _, blockedUntil := b.unreleased(gatewayName("a"), "account"); blockedUntil != time.Minute {
		t.Errorf("blocked until %s, want the second zone's minute", blockedUntil)
	}
	b.reported(second, dns.Report{}, released)
	b.decide("a", true, nil)
	want("the Gateway has returned", true)
	b.decide("a", true, retiring)
	want("the Gateway is gone again", true)
	b.zones.byKey = map[zoneKey]*zone{}
	want("no zone is managed", false)
}

func TestBookListsTheGatewaysOnce(t *testing.T) {
	h := newDNSHarness(t)
	lists := 0
	list := h.process.dns.undecided.listManaged
	h.process.dns.undecided.listManaged = func(ctx context.Context) ([]state.Key, error) { lists++; return list(ctx) }
	h.runFor(time.Minute)
	h.changed("shared")
	h.runFor(time.Minute)
	if lists != 1 {
		t.Errorf("the Gateways were listed %d times", lists)
	}
}
