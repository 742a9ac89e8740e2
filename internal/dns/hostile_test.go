package dns_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Two hostnames wait for each other while the nameservers may not have noticed a new
// wildcard: the one is below the other, whose wildcard leads to the first through a chain.
// Then the next read shows the wildcard, and the changes continue.
func TestHostnamesThatWaitForEachOther(t *testing.T) {
	s := newScenario(t)
	s.add(star, "CNAME", "q.y.example.com")
	managed(s, "*.y.example.com", alphaAt)
	s.set(gateway(alpha, "*.y.example.com", "q.y.example.com", "y.example.com"))
	s.run()
	s.set(gateway(alpha, "q.y.example.com", "y.example.com"))
	s.set(gateway(types.NamespacedName{Namespace: alpha.Namespace, Name: "neighbor"}, "*.y.example.com"))
	s.runFor(time.Minute)
	s.wantLog("while nothing is settled")
	s.runFor(20 * time.Minute)
	s.wantLog("later", "create y.example.com alpha", "create q.y.example.com alpha", "move *.y.example.com neighbor")
}

// Nested wildcards, each of which leads to a name below the next one, have more paths than
// can be followed one by one.
func TestNestedChains(t *testing.T) {
	s := newScenario(t)
	parents := []string{zone}
	for i := range 12 {
		parents = append(parents, fmt.Sprintf("level%d.%s", i, parents[i]))
	}
	for i, name := range parents {
		target := alphaAt
		if i+1 < len(parents) {
			target = "x." + parents[i+1]
		}
		s.add("*."+name, "CNAME", target)
	}
	s.set(gateway(alpha, "a.example.com"))
	s.set(gateway(beta, "b.example.com"))
	s.facts.Classes[0].Settings.RequiresPermission = true
	done := make(chan bool)
	go func() {
		defer close(done)
		s.run()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the decision takes longer than ten seconds")
	}
	s.wantLog("at once", "create b.example.com beta")
}

// A hostname with a label of more than 63 characters cannot be looked up. It needs no
// record, and no other change waits for one.
func TestNamesThatCannotBeLookedUp(t *testing.T) {
	s := newScenario(t)
	managed(s, star, alphaAt)
	long := strings.Repeat("x", 64) + "." + www
	s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
	s.set(gateway(alpha, star, long))
	s.set(gateway(beta, www))
	s.run()
	s.wantLog("at once", "create www.example.com beta")
	f := s.finding(alpha, long)
	if f.Reason != conditions.ReasonPending || !strings.Contains(f.Message, "63 characters") {
		t.Errorf("the finding is %+v", f)
	}
}

// Records that Cloudflare refuses delay those of other namespaces by a few requests.
func TestRefusedRecordsDelayNoOtherNamespace(t *testing.T) {
	s := newScenario(t)
	refused := map[string]bool{}
	for i := range 300 {
		refused[fmt.Sprintf("refused-%d.example.com", i)] = true
	}
	s.set(gateway(alpha, slices.Collect(maps.Keys(refused))...))
	s.set(gateway(beta, www))
	for n := 0; s.target(www) == ""; n++ {
		if n > 20 {
			t.Fatalf("no record after %d requests: %v", n, s.calls)
		}
		step := s.next()
		if slices.ContainsFunc(step.Batch.Creates, func(c provider.CNAME) bool { return refused[c.Name] }) {
			s.calls[step.Action]++
			s.facts.Memory = dns.Conclude(s.facts.Memory, step, dns.Result{Uptime: s.facts.Uptime, Err: provider.ErrInvalidRecord})
			continue
		}
		s.execute(step)
	}
}

// memoryZone is a zone whose records are in memory.
type memoryZone struct {
	facts   dns.Facts
	records map[provider.RecordID]provider.Record
	// requests counts the requests.
	requests int
}

// newMemoryZone returns a zone with that many records of others.
func newMemoryZone(others int) *memoryZone {
	z := &memoryZone{records: map[provider.RecordID]provider.Record{}, facts: dns.Facts{
		Clock: epoch, Options: signed, Zone: zone, Account: account, GatewaysKnown: true, TokenVersion: "1",
		Classes: []dns.Class{{Name: "tunnel", Settings: settings.DNS{
			Mode: "Manage", Zones: settingsZones(zone), DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 10_000,
		}}},
	}}
	for i := range others {
		z.add(provider.Record{Name: fmt.Sprintf("other%05d.example.com", i), Type: "TXT"})
	}
	return z
}

func (z *memoryZone) add(r provider.Record) {
	r.ID = provider.RecordID(r.Name)
	z.records[r.ID] = r
}

// addManaged adds a record that the controller manages.
func (z *memoryZone) addManaged(name, target string) {
	z.add(provider.Record{Name: name, Type: "CNAME", Content: target, Proxied: true, TTL: provider.AutomaticTTL, Comment: dns.MarkForTest(signed, "zone", name, target)})
}

// run executes steps for that time. act is called every second.
func (z *memoryZone) run(d time.Duration, act func(second int)) {
	end := z.facts.Uptime + d
	for second := 0; z.facts.Uptime < end; second++ {
		act(second)
		for {
			z.facts.Memory = dns.Observe(z.facts)
			step := dns.Decide(z.facts)
			if step.Ends() {
				break
			}
			z.facts.Memory = dns.Conclude(z.facts.Memory, step, z.execute(step))
		}
		z.facts.Uptime += time.Second
	}
}

func (z *memoryZone) execute(step dns.Step) dns.Result {
	z.requests++
	r := dns.Result{Sent: z.facts.Uptime, Uptime: z.facts.Uptime}
	switch step.Action {
	case dns.ReadZone:
		r.Zones = []provider.Zone{{ID: "zone", Name: zone, AccountID: account, Status: "active"}}
	case dns.ReadRecords:
		r.Records = slices.Collect(maps.Values(z.records))
		z.requests += max((len(r.Records)+4999)/5000, 1) - 1
		if len(step.Names) > 0 {
			r.Records = slices.DeleteFunc(r.Records, func(r provider.Record) bool { return !slices.Contains(step.Names, r.Name) })
			z.requests += len(step.Names) - (len(z.records)+4999)/5000
		}
	case dns.Apply:
		for _, p := range step.Batch.Patches {
			z.addManaged(string(p.ID), *p.Target)
			r.Records = append(r.Records, z.records[p.ID])
		}
	default: // nothing else matters
	}
	return r
}

// A tenant that moves a hostname between two Gateways every second leaves most of the
// requests to other zones.
func TestRequestsForAHostnameThatMovesAllTheTime(t *testing.T) {
	for _, others := range []int{100, 12_000, 25_000} {
		z := newMemoryZone(others)
		z.addManaged(www, alphaAt)
		neighbor := types.NamespacedName{Namespace: alpha.Namespace, Name: "neighbor"}
		z.run(10*time.Minute, func(second int) {
			hostnames := [][]string{{www}, nil}
			z.facts.Gateways = []dns.Gateway{gateway(alpha, hostnames[second%2]...), gateway(neighbor, hostnames[1-second%2]...)}
		})
		if z.requests > 150 {
			t.Errorf("%d other records: %d requests in ten minutes", others, z.requests)
		}
	}
}

// Many records that move in a large zone leave most of the requests to other zones.
func TestRequestsForManyMoves(t *testing.T) {
	for _, others := range []int{100, 12_000, 25_000} {
		z := newMemoryZone(others)
		var hostnames []string
		for i := range 1000 {
			hostnames = append(hostnames, fmt.Sprintf("h%d.example.com", i))
			z.addManaged(hostnames[i], "old.cfargotunnel.com")
		}
		z.facts.Gateways = []dns.Gateway{gateway(alpha, hostnames...)}
		z.run(20*time.Minute, func(int) {})
		moved := 0
		for _, r := range z.records {
			moved += strings.Count(r.Content, alphaAt)
		}
		if z.requests > 100 || moved < 1000 {
			t.Errorf("%d other records: %d requests, and %d of 1000 records have moved", others, z.requests, moved)
		}
	}
}
