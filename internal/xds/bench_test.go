package xds_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// largeTable has n hostnames with a route each, and a Service for every two hostnames, at most
// 5,000. The route of the first hostname has the path. headless Services have endpoints.
func largeTable(n int, path string, headless bool) *routing.Table {
	t := &routing.Table{ClusterDomain: "cluster.local", Groups: make([]routing.Group, n)}
	for i := range n {
		service := i / 2 % 5000
		hostname := fmt.Sprintf("app-%05d.example.com", i)
		route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, Rank: i}
		b := routing.Backend{
			Service:  types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("web-%d", service)},
			Protocol: routing.ProtocolHTTP, Port: 80, ServicePort: 80,
		}
		if b.Headless = headless; !headless {
			b.ClusterIP = fmt.Sprintf("10.96.%d.%d", service/250, service%250+1)
		}
		e := routing.Entry{
			Hostname: hostname, RouteHostname: hostname, Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
			Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
		}
		if i == 0 {
			e.Match.Path.Value = path
		}
		t.Groups[i] = routing.Group{Hostname: hostname, Namespace: "team", Entries: []*routing.Entry{new(e)}}
	}
	return t
}

func largePublication(n int, path string, headless bool) xds.Publication {
	return xds.Publication{Gateway: shared, Tunnel: sharedTunnel, Sequence: 1, Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.Telemetry{}), Resources: envoy.Render(largeTable(n, path, headless))}
}

// BenchmarkPublish publishes hostnames with a cluster for every two of them, at most 5,000,
// and sends them to an Envoy: for the first time, with one changed route, and unchanged.
func BenchmarkPublish(b *testing.B) {
	for _, hostnames := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(hostnames), func(b *testing.B) { benchmarkPublish(b, hostnames) })
	}
}

func benchmarkPublish(b *testing.B, hostnames int) {
	first := largePublication(hostnames, "/a", false)
	changed := first
	// The controller renders each publication with the previous one.
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
			s := xds.NewServer(xds.Options{})
			publish(b, s, 0)
			s.Follow(shared).Advance()
		}
	})
	for _, test := range []struct {
		name string
		step int
	}{{"one route", 1}, {"unchanged", 0}} {
		b.Run(test.name, func(b *testing.B) {
			s := xds.NewServer(xds.Options{})
			publish(b, s, 0)
			client := s.Follow(shared)
			client.Advance()
			i, sent := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				i += test.step
				publish(b, s, i)
				sent = client.Advance()
			}
			b.ReportMetric(float64(sent), "responses")
		})
	}
}
