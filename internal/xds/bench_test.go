package xds_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// largeTable has n hostnames with a route each, and a Service for every two hostnames. The
// route of the first hostname has the path. headless Services have endpoints.
func largeTable(n int, path string, headless bool) *routing.Table {
	t := &routing.Table{ClusterDomain: "cluster.local", Groups: make([]routing.Group, n)}
	for i := range n {
		hostname := fmt.Sprintf("app-%05d.example.com", i)
		route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, Rank: i}
		b := routing.Backend{
			Service:  types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("web-%d", i/2)},
			Protocol: routing.ProtocolHTTP, Port: 80, ServicePort: 80,
		}
		if b.Headless = headless; !headless {
			b.ClusterIP = fmt.Sprintf("10.96.%d.%d", i/500, i/2%250+1)
		}
		e := routing.Entry{
			Hostname: hostname, RouteHostname: hostname, Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
			Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
		}
		if i == 0 {
			e.Match.Path.Value = path
		}
		t.Groups[i] = routing.Group{Hostname: hostname, Namespace: "team", Entries: []routing.Entry{e}}
	}
	return t
}

func largePublication(n int, path string, headless bool) xds.Publication {
	return xds.Publication{Gateway: shared, Tunnel: sharedTunnel, Sequence: 1, Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.Telemetry{}), Resources: envoy.Render(largeTable(n, path, headless))}
}

// BenchmarkPublish publishes 10,000 hostnames and 5,000 clusters: for the first time,
// with one changed route, and unchanged.
func BenchmarkPublish(b *testing.B) {
	const hostnames = 10_000
	first := largePublication(hostnames, "/a", false)
	changed := first
	// The controller renders each publication with the previous clusters.
	changed.Resources = envoy.RenderTransition(largeTable(hostnames, "/b", false), envoy.Transition{}, first.Resources)
	publications := []xds.Publication{first, changed}
	publish := func(b *testing.B, s *xds.Server, i int) {
		if err := s.Publish(publications[i%len(publications)]); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			publish(b, xds.NewServer(xds.Options{}), 0)
		}
	})
	for _, test := range []struct {
		name string
		step int
	}{{"one route", 1}, {"unchanged", 0}} {
		b.Run(test.name, func(b *testing.B) {
			s := xds.NewServer(xds.Options{})
			publish(b, s, 0)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i += test.step
				publish(b, s, i)
			}
		})
	}
}
