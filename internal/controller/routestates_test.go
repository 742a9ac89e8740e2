package controller

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// The states that are counted after changes of some routes are those of all routes.
func TestRouteStatesEqualNewCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a reproducible test
	parents := func() (list []gatewayv1.RouteParentStatus) {
		for range random.IntN(3) {
			list = append(list, gatewayv1.RouteParentStatus{Conditions: []metav1.Condition{
				{Type: conditions.TypeAccepted.String(), Status: []metav1.ConditionStatus{"True", "True", "False"}[random.IntN(3)]},
				{Type: conditions.TypeResolvedRefs.String(), Status: []metav1.ConditionStatus{"True", "True", "False"}[random.IntN(3)]},
			}})
		}
		return list
	}
	var known routeStates
	var routes []*gateway.RouteStatus
	seen := map[metrics.RouteState]bool{}
	for step := range 500 {
		routes = slices.Clone(routes)
		if len(routes) == 0 || random.IntN(10) == 0 {
			routes = make([]*gateway.RouteStatus, random.IntN(5))
		}
		for i := range routes {
			if routes[i] == nil || random.IntN(3) == 0 {
				routes[i] = &gateway.RouteStatus{Parents: parents()}
			}
		}
		got, want := known.update(routes), new(routeStates).update(routes)
		if !maps.Equal(got, want) {
			t.Fatalf("step %d: the routes have the states %v, want %v", step, got, want)
		}
		for state := range want {
			seen[state] = true
		}
	}
	if len(seen) < 3 {
		t.Errorf("the test has only the states %v", seen)
	}
}
