package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// BenchmarkOneChange measures the decision and the report after one route gets another
// backend, with a memory. The routes of all teams are on listeners of their own, or on one.
func BenchmarkOneChange(b *testing.B) {
	for name, cluster := range map[string]func(n int) *gateway.Snapshot{"teams": teamsOf, "one-listener": oneListener} {
		for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
			for _, n := range []int{1000, 10000, 50000} {
				b.Run(fmt.Sprintf("%s/%s/routes=%d", name, plane, n), func(b *testing.B) { benchmarkOneChange(b, cluster(n), plane) })
			}
		}
	}
}

func teamsOf(n int) *gateway.Snapshot { return teamsSnapshot(n / 2) }

// oneListener has n routes with one hostname each.
func oneListener(n int) *gateway.Snapshot {
	s := routesSnapshot()
	for i := range n {
		route := httpRoute(routeMeta(fmt.Sprintf("route-%05d", i), time.Duration(i%97)*time.Hour), gatewayv1.HTTPRouteMatch{})
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%05d.example.com", i))}
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	return s
}

func benchmarkOneChange(b *testing.B, s *gateway.Snapshot, plane v1alpha1.DataPlane) {
	setLimits(s, v1alpha1.Limits{RulesPerTunnel: new(int32(1000000))})
	s.DataPlane = plane
	for _, service := range s.Services.All() {
		service.Spec.ClusterIP = "10.96.0.1"
	}
	m := &gateway.Memory{}
	first := m.Build(s, bothDataPlanes)
	report(first, s)
	first.Table.Hosts()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next := *s
		next.HTTPRoutes = slices.Clone(s.HTTPRoutes)
		changed := next.HTTPRoutes[i%len(next.HTTPRoutes)].DeepCopy()
		changed.Spec.Rules[0].BackendRefs[0].Weight = new(int32(2 + i%7))
		changed.Generation++
		next.HTTPRoutes[i%len(next.HTTPRoutes)] = changed
		before := m.Build(s, bothDataPlanes)
		result := m.Build(&next, bothDataPlanes)
		if result != before || len(result.Table.Hosts()) == 0 {
			b.Fatal("the decision was made again")
		}
		if plane == v1alpha1.DataPlaneIngressRules {
			rulesConfiguration(result.Table).Hash()
		}
		report(result, &next)
	}
}
