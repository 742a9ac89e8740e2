package routing_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The entries of a confined route cost nothing for hostnames to which they do not apply.
// Entries times hostnames can be a large product, which the limit on repeated rules does
// not limit.
func TestConfinedEntriesCostNothingElsewhere(t *testing.T) {
	const n = 3000
	group := routing.Group{Hostname: "*.example.com"}
	add := func(e routing.Entry, tenant string, confined bool) {
		e.Source.Route.Tenant, e.Source.Route.Confined = tenant, confined
		group.Entries = append(group.Entries, &e)
	}
	for i := range n {
		add(entry("*.example.com", prefix(fmt.Sprintf("/%d", i))), "wide", true)
		add(entry(fmt.Sprintf("h%d.example.com", i), prefix("/a")), "narrow", false)
	}
	table := &routing.Table{Groups: []routing.Group{group}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	hosts := table.Hosts()
	runtime.ReadMemStats(&after)
	if len(hosts) != n+1 || len(hosts[0].Entries) != 1 || len(hosts[n].Entries) != n {
		t.Fatalf("%d hosts, the first has %d entries and the last %d", len(hosts), len(hosts[0].Entries), len(hosts[n].Entries))
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 10<<20 {
		t.Errorf("the hosts take %d bytes, want at most 10 MiB", allocated)
	}
}
