package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

func TestWriterReportsEachChangeOnce(t *testing.T) {
	// The Writer reports each change once, for the object that changed.
	cluster := newFakeCluster(t)
	var got []string
	cluster.writer.Notify = func(object client.Object, change status.Change) {
		kind := "normal"
		if change.Warning {
			kind = "warning"
		}
		got = append(got, object.GetName()+" "+kind+": "+change.Reason)
	}
	write := func(conditions ...metav1.Condition) {
		t.Helper()
		r := report()
		r.Gateway.Conditions = conditions
		if err := cluster.writer.Write(t.Context(), owner, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	rejected := condition("Accepted", metav1.ConditionFalse, 2)
	rejected.Reason = "UnsupportedAddress"
	write(condition("Accepted", isTrue, 2))
	write(rejected)
	write(rejected)
	write(condition("Accepted", isTrue, 2))
	want := []string{gatewayName.Name + " warning: UnsupportedAddress", gatewayName.Name + " normal: " + condition("Accepted", isTrue, 2).Reason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported changes differ (-want +got):\n%s", diff)
	}
}

func TestWriterReportsALostLastParentOnce(t *testing.T) {
	orphan := &gateway.Orphan{Generation: 2, Message: "lost"}
	for name, test := range map[string]struct {
		orphan  *gateway.Orphan
		current []gatewayv1.RouteParentStatus
		want    []status.Change
	}{
		"the last entry":                {orphan, []gatewayv1.RouteParentStatus{entry("example.com/other", ref("g"), at(before, condition("Accepted", isTrue, 2))), entry(controllerName, ref("g"), at(before, condition("Accepted", isTrue, 2)))}, []status.Change{{Warning: true, Message: "lost", Orphaned: true}}},
		"the Gateway does not exist":    {nil, []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), at(before, condition("Accepted", isTrue, 2)))}, nil},
		"an entry for another parent":   {orphan, []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), at(before, condition("Accepted", isTrue, 2))), entry(controllerName, ref("kept"), at(before, condition("Accepted", isTrue, 2)))}, nil},
		"a route that never had one":    {orphan, []gatewayv1.RouteParentStatus{entry("example.com/other", ref("g"), at(before, condition("Accepted", isTrue, 2)))}, nil},
		"a report about an older route": {&gateway.Orphan{Generation: 1, Message: "lost"}, []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), at(before, condition("Accepted", isTrue, 2)))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newFakeCluster(t)
			var got []status.Change
			cluster.writer.Notify = func(_ client.Object, change status.Change) { got = append(got, change) }
			cluster.setRoute(t, test.current, "g", "kept")
			report := gateway.Report{
				Owners: map[gateway.Owner]bool{{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: "g"}}: true},
				Routes: []*gateway.RouteStatus{{Kind: gateway.KindHTTPRoute, NamespacedName: routeName, Orphan: test.orphan}},
			}
			for range 2 {
				if err := cluster.writer.WriteAttached(t.Context(), owner, report); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reported changes differ (-want +got):\n%s", diff)
			}
		})
	}
}

// setRoute sets the entries in the route's status, and its parents.
func (cluster *fakeCluster) setRoute(t *testing.T, entries []gatewayv1.RouteParentStatus, parents ...string) {
	t.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := cluster.server.Get(t.Context(), routeName, route); err != nil {
		t.Fatal(err)
	}
	route.Spec.ParentRefs = nil
	for _, parent := range parents {
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, ref(parent))
	}
	if err := cluster.server.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	route.Status.Parents = entries
	if err := cluster.server.Status().Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
}

// A route loses its only parent while a report about its previous generation is written.
func TestOutdatedReportDoesNotHideALostParent(t *testing.T) {
	cluster := newFakeCluster(t)
	var got []status.Change
	cluster.writer.Notify = func(_ client.Object, change status.Change) { got = append(got, change) }
	attached := entry(controllerName, ref("g"), at(before, condition("Accepted", isTrue, 1)))
	cluster.setRoute(t, []gatewayv1.RouteParentStatus{attached}, "none") // generation 2
	write := func(route *gateway.RouteStatus) {
		t.Helper()
		route.Kind, route.NamespacedName = gateway.KindHTTPRoute, routeName
		report := gateway.Report{
			Owners: map[gateway.Owner]bool{{Kind: gateway.KindGateway, NamespacedName: types.NamespacedName{Namespace: "team", Name: "g"}}: true},
			Routes: []*gateway.RouteStatus{route},
		}
		if err := cluster.writer.WriteAttached(t.Context(), owner, report); err != nil {
			t.Fatal(err)
		}
	}
	write(&gateway.RouteStatus{Parents: []gatewayv1.RouteParentStatus{attached}})
	write(&gateway.RouteStatus{Orphan: &gateway.Orphan{Generation: 2, Message: "lost"}})
	want := []status.Change{{Warning: true, Message: "lost", Orphaned: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported changes differ (-want +got):\n%s", diff)
	}
}
