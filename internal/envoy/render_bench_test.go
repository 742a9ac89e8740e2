package envoy_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
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
			g.Entries = append(g.Entries, routing.Entry{
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

// BenchmarkRender measures rendering 10,000 hostnames with five routes each: for the
// first time, when it can share clusters with the last time, and including serialization.
func BenchmarkRender(b *testing.B) {
	table := largeTable(10_000)
	b.Run("again", func(b *testing.B) {
		last := envoy.Render(table)
		b.ReportAllocs()
		for b.Loop() {
			last = envoy.RenderTransition(table, envoy.Transition{}, last)
		}
	})
	for _, serialize := range []bool{false, true} {
		b.Run(fmt.Sprintf("serialize=%t", serialize), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := envoy.Render(table)
				if !serialize {
					continue
				}
				for _, c := range []proto.Message{r.Open, r.Protected} {
					if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(c); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
