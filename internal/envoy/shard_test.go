package envoy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// hostsOf returns hosts with so many exact hostnames and wildcards, each with so many entries.
func hostsOf(exact, wildcards, entries int) []*routing.Host {
	var hosts []*routing.Host
	for i := range exact + wildcards {
		hostname := fmt.Sprintf("app-%d.example.com", i)
		if i >= exact {
			hostname = fmt.Sprintf("*.w%d.example.com", i)
		}
		hosts = append(hosts, &routing.Host{Hostname: hostname, Entries: make([]*routing.Entry, entries)})
	}
	return hosts
}

// A small table has one shard. The repeated wildcards at most double a table.
func TestNumberOfShardsFollowsTheTable(t *testing.T) {
	for _, test := range []struct{ exact, wildcards, entries, want int }{
		{0, 0, 1, 1}, {128, 0, 1, 1}, {129, 0, 1, 2}, {1000, 1, 1, 8}, {10_000, 10, 1, 128}, {50_000, 0, 5, 128},
		{10_000, 10_000, 1, 2}, {10_000, 1000, 1, 8}, {0, 10_000, 1, 1},
	} {
		hosts := hostsOf(test.exact, test.wildcards, test.entries)
		got := countShards(hosts, routing.Telemetry{})
		if got != test.want {
			t.Errorf("%+v has %d shards", test, got)
		}
		if size := test.exact + got*test.wildcards; size > 2*len(hosts) {
			t.Errorf("%+v has %d virtual hosts", test, size)
		}
	}
}

// Consecutive names, and names that differ in one letter at any position, fill all buckets
// evenly.
func TestBucketsAreEven(t *testing.T) {
	for name, hostname := range map[string]func(i int) string{
		"numbers":      func(i int) string { return fmt.Sprintf("app-%d.example.com", i) },
		"padded":       func(i int) string { return fmt.Sprintf("app-%05d.example.com", i) },
		"long":         func(i int) string { return fmt.Sprintf("%s%d.apps.eu-west-1.example.com", strings.Repeat("x", 40), i) },
		"domains":      func(i int) string { return fmt.Sprintf("www.shop%d.com", i) },
		"punycode":     func(i int) string { return fmt.Sprintf("xn--bcher-kva%d.example", i) },
		"last letters": func(i int) string { return fmt.Sprintf("www.example.%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26) },
	} {
		counts := make([]int, buckets)
		const n = 100 * buckets
		for i := range n {
			counts[bucketOf(hostname(i))]++
		}
		if least, most := slices.Min(counts), slices.Max(counts); least < 50 || most > 200 {
			t.Errorf("%s: between %d and %d of %d hostnames are in a bucket", name, least, most, n)
		}
	}
}

// Each bucket of a listener leads to its shard, and requests at their start to the only shard or
// to the routes that return 404. A warming scope names each RouteConfiguration, and no key
// occurs twice.
func TestScopesCoverEveryBucket(t *testing.T) {
	for shards := 1; shards <= buckets; shards *= 2 {
		leads, warmed := followScopes(t, shards)
		for _, listener := range []string{ListenerOpen, ListenerProtected} {
			for bucket := range buckets {
				if got, want := leads[fmt.Sprintf("%s/%d", listener, bucket)], shardName(listener, shards, bucket%shards); got != want || !warmed[got] {
					t.Errorf("%d shards: bucket %d leads to %q, want %q", shards, bucket, got, want)
				}
			}
			start := "start"
			if shards == 1 {
				start = listener
			}
			if got := leads[listener+"/start"]; got != start || !warmed[got] {
				t.Errorf("%d shards: requests start with %q", shards, got)
			}
		}
		if want := 2*buckets + 2 + len(warmed); len(leads) != want || len(warmed) != 2*shards+min(1, shards-1) {
			t.Errorf("%d shards: %d scopes, %d of them warming", shards, len(leads), len(warmed))
		}
	}
}

// followScopes returns the RouteConfiguration to which each key leads, and the RouteConfigurations
// that warming scopes name.
func followScopes(t *testing.T, shards int) (leads map[string]string, warmed map[string]bool) {
	t.Helper()
	leads, warmed = map[string]string{}, map[string]bool{}
	for _, s := range newScopes(shards) {
		if key := s.Key.Fragments[0].GetStringKey(); key != s.Name || leads[key] != "" || s.OnDemand {
			t.Errorf("%d shards: scope %v", shards, s)
		}
		leads[s.Name] = s.RouteConfigurationName
		if IsWarmingScope(s.Name) {
			warmed[s.RouteConfigurationName] = true
		}
	}
	return leads, warmed
}

// The shards of a listener have each exact hostname once, in the shard of its bucket, and each
// wildcard in every shard. Together, they are the whole table.
func TestShardsAreTheWholeTable(t *testing.T) {
	c := newChangingTable(3)
	c.resize(2000)
	c.table.Groups = append(c.table.Groups, c.group("*.wide.example.com"))
	c.table.Groups[len(c.table.Groups)-1].Entries = []*routing.Entry{c.entry("*.wide.example.com")}
	c.table.Groups[1].Entries = []*routing.Entry{c.entry("app-1.example.com")}
	c.table.Access = routing.Access{"app-1.example.com": {TeamName: "t", AUDTags: []string{"a"}}}
	r := Render(c.table)
	if r.shards < 8 {
		t.Fatalf("%d shards", r.shards)
	}
	for _, listener := range []string{ListenerOpen, ListenerProtected} {
		found := hostsInShards(t, r, listener)
		whole := Whole(listener, r.Routes)
		for _, host := range whole.VirtualHosts {
			want := 1
			if !routing.IsExact(hostnameOf(host.Name)) {
				want = r.shards
			}
			if found[host.Name] != want {
				t.Errorf("%s is in %d shards of %s", host.Name, found[host.Name], listener)
			}
		}
		if len(whole.VirtualHosts) != len(found) || whole.Name != listener || !whole.IgnorePortInHostMatching || len(whole.RequestHeadersToRemove) == 0 {
			t.Errorf("%s: the whole table has %d of %d virtual hosts", listener, len(whole.VirtualHosts), len(found))
		}
		if listener == ListenerProtected && found["app-1.example.com"] != 1 {
			t.Error("the protected hostname is missing")
		}
	}
}

// hostsInShards counts the shards of the listener that have each virtual host.
func hostsInShards(t *testing.T, r *Resources, listener string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for shard := range r.shards {
		name := shardName(listener, r.shards, shard)
		i := slices.IndexFunc(r.Routes, func(c *routev3.RouteConfiguration) bool { return c.Name == name })
		if i < 0 || ListenerOf(name) != listener {
			t.Fatalf("there is no %s", name)
		}
		for _, host := range r.Routes[i].VirtualHosts {
			found[host.Name]++
			if routing.IsExact(hostnameOf(host.Name)) && bucketOf(host.Name)%r.shards != shard {
				t.Errorf("%s is in %s", host.Name, name)
			}
		}
	}
	return found
}
