package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
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

// A decision about a new hostname takes over the actions of all other routes, and the statuses
// of all other routes and ListenerSets.
func TestNewHostnameKeepsOtherRoutes(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		s, m := teamsSnapshot(20), &gateway.Memory{}
		s.DataPlane = plane
		s.Grants = []*gatewayv1beta1.ReferenceGrant{{ObjectMeta: routeMeta("one", 0)}, {ObjectMeta: routeMeta("two", 0)}}
		for _, service := range s.Services.All() {
			service.Spec.ClusterIP = "10.96.0.1"
		}
		before := m.Build(s, bothDataPlanes)
		actions, statuses := actionsOf(before), report(before, s)
		next := *s
		next.Grants = slices.Clone(s.Grants)
		slices.Reverse(next.Grants) // a cache has no order
		added := s.HTTPRoutes[3].DeepCopy()
		added.Name, added.Spec.Hostnames = "added", []gatewayv1.Hostname{"added.team-0001.example.com"}
		next.HTTPRoutes = append(slices.Clone(s.HTTPRoutes), added)
		after := m.Build(&next, bothDataPlanes)
		if len(after.Routes) != len(before.Routes)+1 || m.KeepsDecision(before) {
			t.Fatal("the decision has no new route")
		}
		others := actionsOf(after)
		wantShared(t, string(plane)+": actions", len(others), 1, func(i int) bool { return slices.Contains(actions, others[i]) })
		later := report(after, &next)
		wantShared(t, string(plane)+": routes", len(later.Routes), 1, func(i int) bool { return slices.Contains(statuses.Routes, later.Routes[i]) })
		wantShared(t, string(plane)+": ListenerSets", len(later.ListenerSets), 1, func(i int) bool {
			return isSameList(statuses.ListenerSets[i].Status.Conditions, later.ListenerSets[i].Status.Conditions)
		})
	}
}

func actionsOf(r *gateway.Result) []*routing.Action {
	var actions []*routing.Action
	for e := range r.Table.Entries() {
		actions = append(actions, e.Action)
	}
	return actions
}

// What is taken over from the decision before does not hide a change of parentRefs.
func TestMemoryNoticesOtherParents(t *testing.T) {
	for name, change := range map[string]func(*gatewayv1.CommonRouteSpec){
		"another listener": func(spec *gatewayv1.CommonRouteSpec) {
			spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName("any"))
		},
		"so many that messages get shorter": func(spec *gatewayv1.CommonRouteSpec) {
			for i := range 31 {
				spec.ParentRefs = append(spec.ParentRefs, gatewayv1.ParentReference{Name: "shared", SectionName: new(gatewayv1.SectionName(fmt.Sprint("other-", i)))})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := routesSnapshot(), &gateway.Memory{}
			route := httpRoute(routeMeta("web", 0))
			for range 15 {
				missing := webBackend()[0]
				missing.Name = gatewayv1.ObjectName(strings.Repeat("missing", 30))
				route.Spec.Rules[0].BackendRefs = append(route.Spec.Rules[0].BackendRefs, missing)
			}
			s.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
			report(m.Build(s, bothDataPlanes), s)
			next, changed := *s, route.DeepCopy()
			change(&changed.Spec.CommonRouteSpec)
			next.HTTPRoutes = []*gatewayv1.HTTPRoute{changed}
			got, want := report(m.Build(&next, bothDataPlanes), &next), report(gateway.Build(&next, bothDataPlanes), &next)
			if diff := cmp.Diff(want.Routes, got.Routes); diff != "" {
				t.Errorf("the memory affects the statuses (-without +with):\n%s", diff)
			}
		})
	}
}

// A route's expressions are translated once there is room for them, although the route has not changed.
func TestMemoryNoticesRoomForExpressions(t *testing.T) {
	long := httpRoute(routeMeta("long", time.Hour), gatewayv1.HTTPRouteMatch{Path: pathMatch(gatewayv1.PathMatchRegularExpression, "/"+strings.Repeat("a", 49_990))})
	short := httpRoute(routeMeta("short", 0), gatewayv1.HTTPRouteMatch{Path: pathMatch(gatewayv1.PathMatchRegularExpression, "/short[0-9]*")})
	s, m := routesSnapshot(), &gateway.Memory{}
	s.DataPlane, s.HTTPRoutes = v1alpha1.DataPlaneEnvoy, []*gatewayv1.HTTPRoute{long, short}
	for _, service := range s.Services.All() {
		service.Spec.ClusterIP = "10.96.0.1"
	}
	if before := m.Build(s, bothDataPlanes); before.Routes[1].Parents[0].Rejected == nil {
		t.Fatal("there is room for the expressions of both routes")
	}
	next := *s
	next.HTTPRoutes = []*gatewayv1.HTTPRoute{short}
	if after := m.Build(&next, bothDataPlanes); len(actionsOf(after)) != 1 {
		t.Errorf("the route has %d entries, want 1", len(actionsOf(after)))
	}
}
