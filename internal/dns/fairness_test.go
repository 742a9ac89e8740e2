package dns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// numbered returns hostnames of a namespace.
func numbered(namespace string, first, count int, created time.Time) []dns.Hostname {
	list := make([]dns.Hostname, 0, count)
	for i := range count {
		list = append(list, dns.Hostname{
			Name: fmt.Sprintf("%s-%d.example.com", namespace, first+i), Namespace: namespace, Created: created, Served: true, Permitted: true,
		})
	}
	return list
}

// records counts the zone's records that lead to the Gateway.
func (s *simulation) records(gateway int) int {
	n := 0
	for _, r := range s.database.Records(s.id) {
		if r.Content == s.facts.Gateways[gateway].Tunnel.Hostname() {
			n++
		}
	}
	return n
}

// exists reports whether the zone has a record with the name.
func (s *simulation) exists(name string) bool {
	return slices.ContainsFunc(s.database.Records(s.id), func(r zones.Record) bool { return r.Name == name })
}

// TestNoTenantDelaysAnother has a tenant whose 1,000 hostnames come and go. Another tenant's
// record appears within a minute, and the first one takes no more than its share.
func TestNoTenantDelaysAnother(t *testing.T) {
	const share = 100
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, zones.Zone{}, settings.DNS{DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: share})
		noisy, quiet := s.gateway("noisy", "noisy"), s.gateway("quiet", "quiet")
		random := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- not a secret
		var slowest time.Duration
		for round := range 200 {
			s.set(noisy, numbered("noisy", random.IntN(5000), 1000, time.Now()))
			s.run(time.Duration(1+random.IntN(30)) * time.Second)
			if n := s.records(noisy); n > share {
				t.Fatalf("after round %d, the noisy namespace has %d records", round, n)
			}
			if round%10 != 5 {
				continue
			}
			s.set(quiet, append(slices.Clone(s.facts.Gateways[quiet].Hostnames), numbered("quiet", round, 1, time.Now())...))
			begin, name := time.Now(), fmt.Sprintf("quiet-%d.example.com", round)
			for !s.exists(name) && time.Since(begin) < 5*time.Minute {
				s.set(noisy, numbered("noisy", random.IntN(5000), 1000, time.Now()))
				s.run(time.Second)
			}
			slowest = max(slowest, time.Since(begin))
			if time.Since(begin) > time.Minute {
				t.Fatalf("in round %d, the quiet tenant's record takes %s; actions: %v", round, time.Since(begin), s.actions)
			}
		}
		t.Logf("the slowest record took %s; the noisy tenant has %d records; requests: %v", slowest, s.records(noisy), s.actions)
	})
}

// TestOldestHostnamesStay has a namespace with more hostnames than its share: the youngest
// exceed it.
func TestOldestHostnamesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, zones.Zone{}, settings.DNS{DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 10})
		g := s.gateway("tenant", "tenant")
		s.set(g, slices.Concat(numbered("old", 0, 10, s.start), numbered("young", 0, 10, s.start.Add(time.Hour))))
		for i := range s.facts.Gateways[g].Hostnames {
			s.facts.Gateways[g].Hostnames[i].Namespace = "tenant"
		}
		s.run(time.Hour)
		for i := range 10 {
			if old, young := s.exists(fmt.Sprintf("old-%d.example.com", i)), s.exists(fmt.Sprintf("young-%d.example.com", i)); !old || young {
				t.Errorf("hostname %d: the old one's record exists: %v, the young one's: %v", i, old, young)
			}
		}
		if f := s.finding("young-0.example.com", g); f.Reason != conditions.ReasonQuotaExceeded {
			t.Errorf("young-0 is reported as %+v", f)
		}
	})
}

// TestRequestsForManyHostnames counts the requests to publish hostnames, and those of the
// hours afterwards.
func TestRequestsForManyHostnames(t *testing.T) {
	for _, test := range []struct{ hostnames, most, hourly int }{{1000, 10, 9}, {10_000, 60, 15}} {
		t.Run(fmt.Sprint(test.hostnames), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, zones.Zone{RecordQuota: 30_000}, settings.DNS{DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 20_000})
				g := s.gateway("tenant", "tenant")
				s.set(g, numbered("tenant", 0, test.hostnames, s.start))
				begin := time.Now()
				for s.records(g) < test.hostnames && time.Since(begin) < time.Hour {
					s.run(time.Second)
				}
				if n := s.records(g); n != test.hostnames || len(s.requests) > test.most {
					t.Fatalf("%d records after %d requests: %v", n, len(s.requests), s.actions)
				}
				t.Logf("published in %s with %d requests: %v", time.Since(begin), len(s.requests), s.actions)
				s.run(10 * time.Minute)
				before := len(s.requests)
				s.run(3 * time.Hour)
				if n := len(s.requests) - before; n > 3*test.hourly {
					t.Errorf("%d requests in three hours: %v", n, s.actions)
				}
			})
		})
	}
}

// TestManyHostnamesGo withdraws 1,000 hostnames: the deletions need few requests.
func TestManyHostnamesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, zones.Zone{RecordQuota: 3500}, settings.DNS{DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 2000})
		g := s.gateway("tenant", "tenant")
		s.set(g, numbered("tenant", 0, 1000, s.start))
		s.run(20 * time.Minute)
		s.set(g, nil)
		before := len(s.requests)
		s.run(9 * time.Minute)
		if n := s.records(g); n != 1000 {
			t.Fatalf("%d records after nine minutes", n)
		}
		s.run(time.Hour)
		if n := s.records(g); n != 0 {
			t.Errorf("%d records stay", n)
		}
		if n := len(s.requests) - before; n > 40 {
			t.Errorf("%d requests: %v", n, s.actions)
		}
	})
}
