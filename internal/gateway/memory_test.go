package gateway_test

import (
	"slices"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// After a route has got another backend, all other entries, lists and statuses are the same
// as before, so that no other package compares them.
func TestOneChangeKeepsEverythingElse(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		s, m := teamsSnapshot(20), &gateway.Memory{}
		s.DataPlane = plane
		for _, service := range s.Services.All() {
			service.Spec.ClusterIP = "10.96.0.1"
		}
		before := m.Build(s, bothDataPlanes)
		table, statuses := before.Table, report(before, s)
		hosts := table.Hosts()
		next := *s
		next.HTTPRoutes = slices.Clone(s.HTTPRoutes)
		changed := next.HTTPRoutes[7].DeepCopy()
		changed.Spec.Rules[0].BackendRefs[0].Port = new(gatewayv1.PortNumber(81)) // does not exist
		next.HTTPRoutes[7] = changed
		after := m.Build(&next, bothDataPlanes)
		wantShared(t, string(plane)+": lists", len(hosts), 1, func(i int) bool { return isSameList(hosts[i].Entries, after.Table.Hosts()[i].Entries) })
		wantShared(t, string(plane)+": groups", len(table.Groups), 1, func(i int) bool {
			return isSameList(table.Groups[i].Entries, after.Table.Groups[i].Entries)
		})
		later := report(after, &next)
		wantShared(t, string(plane)+": routes", len(statuses.Routes), 1, func(i int) bool { return &statuses.Routes[i].Parents[0] == &later.Routes[i].Parents[0] })
		wantShared(t, string(plane)+": ListenerSets", len(statuses.ListenerSets), 0, func(i int) bool {
			return &statuses.ListenerSets[i].Status.Conditions[0] == &later.ListenerSets[i].Status.Conditions[0]
		})
	}
}

// wantShared checks that all but some of n elements are shared.
func wantShared(t *testing.T, name string, n, changed int, isShared func(i int) bool) {
	t.Helper()
	others := 0
	for i := range n {
		if !isShared(i) {
			others++
		}
	}
	if others != changed || n < 20 {
		t.Errorf("%s: %d of %d are new, want %d", name, others, n, changed)
	}
}

func isSameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
