package envoy_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// largeTable has n hostnames with five routes each, and a Service for every two hostnames.
func largeTable(n int) *routing.Table {
	t := &routing.Table{ClusterDomain: "cluster.local", Groups: make([]routing.Group, n)}
	for i := range n {
		hostname := fmt.Sprintf("app-%05d.example.com", i)
		route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, Rank: i}
		g := routing.Group{Hostname: hostname, Namespace: "team"}
		for rule := range 5 {
			g.Entries = append(g.Entries, &routing.Entry{
				Hostname: hostname, RouteHostname: hostname, Source: routing.Source{Route: route, Rule: rule},
				Match:  &routing.Match{Path: routing.Path{Value: fmt.Sprintf("/part-%d", rule)}},
				Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: backend(i / 2), Weight: 1}}}},
			})
		}
		t.Groups[i] = g
	}
	return t
}

func backend(service int) routing.Backend {
	return routing.Backend{
		Service:  types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("web-%d", service)},
		Protocol: routing.ProtocolHTTP, Port: 80, ServicePort: 80,
		ClusterIP: fmt.Sprintf("10.96.%d.%d", service/250, service%250+1),
	}
}

// BenchmarkRender measures rendering hostnames with five routes each for the first time, and again
// after one of them has changed. The other entries are the same objects.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		table := largeTable(n)
		b.Run(fmt.Sprintf("hostnames=%d/first", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				envoy.Render(table)
			}
		})
		b.Run(fmt.Sprintf("hostnames=%d/change", n), func(b *testing.B) {
			b.ReportAllocs()
			last := envoy.Render(table)
			for i := 0; b.Loop(); i++ {
				next := envoy.RenderTransition(withChangedHost(table, i%n), envoy.Transition{}, last)
				if changed := changedRoutes(next, last); changed != 1+min(i, 1) { // the host that changed before changes back
					b.Fatalf("one hostname changes %d RouteConfigurations", changed)
				}
				last = next
			}
		})
	}
}

// withChangedHost returns the table with other entries for one hostname.
func withChangedHost(t *routing.Table, group int) *routing.Table {
	changed := *t
	changed.Groups = slices.Clone(t.Groups)
	entries := slices.Clone(t.Groups[group].Entries)
	for i, e := range entries {
		entry := *e
		entry.Match = &routing.Match{Path: routing.Path{Value: fmt.Sprintf("/changed-%d", i)}}
		entries[i] = &entry
	}
	changed.Groups[group].Entries = entries
	return &changed
}

// changedRoutes counts the RouteConfigurations that are not those of the last resources.
func changedRoutes(next, last *envoy.Resources) int {
	changed := 0
	for _, c := range next.Routes {
		if !slices.Contains(last.Routes, c) {
			changed++
		}
	}
	return changed
}
