package gateway

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// conflictsByDefinition compares the route with every attached route.
func conflictsByDefinition(l *Listener, route *Route) bool {
	return slices.ContainsFunc(l.routes, func(other *Route) bool {
		return other.Kind != route.Kind && !other.isFullyDropped(other.Dropped) && shareHostname(l.Hostname(), route, other)
	})
}

func shareHostname(listener string, a, b *Route) bool {
	for x := range a.hostnamesOnListener(Owner{}, listener) {
		for y := range b.hostnamesOnListener(Owner{}, listener) {
			if _, ok := routing.Intersect(x.served, y.served); ok {
				return true
			}
		}
	}
	return false
}

func TestKindConflictsAreThoseOfTheDefinition(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
		listener := &Listener{}
		if hostname := randomHostname(r); r.IntN(3) > 0 {
			listener.Spec.Hostname = &hostname
		}
		for range 12 {
			route := randomKindOfRoute(r)
			want := conflictsByDefinition(listener, route)
			if got := listener.hasConflictingKind(route); got != want {
				t.Fatalf("seed %d: %s with hostnames %v on listener %q: conflict %t, want %t; attached: %s",
					seed, route.Kind, route.Hostnames, listener.Hostname(), got, want, describeRoutes(listener.routes))
			}
			found[want]++
			if !want && route.intersects(listener.Hostname()) {
				listener.addRoute(route, true)
			}
		}
	}
	if found[true] < 1000 || found[false] < 1000 {
		t.Errorf("conflicts: %v, want many of both results", found)
	}
}

func describeRoutes(routes []*Route) string {
	var parts []string
	for _, route := range routes {
		parts = append(parts, route.Kind+" "+route.describeHostnames(message.MaxSize))
	}
	return strings.Join(parts, "; ")
}

// randomKindOfRoute returns a route without hostnames, or with up to three. Some routes
// are fully dropped.
func randomKindOfRoute(r *rand.Rand) *Route {
	route := &Route{Kind: []string{KindHTTPRoute, KindGRPCRoute}[r.IntN(2)], Rules: make([]gatewayv1.HTTPRouteRule, 1)}
	if r.IntN(6) > 0 {
		for range 1 + r.IntN(3) {
			route.Hostnames = append(route.Hostnames, randomHostname(r))
		}
	}
	if r.IntN(5) == 0 {
		route.Dropped = make([]DroppedRule, 1)
	}
	return route
}

// randomHostname returns an exact name or a wildcard with few labels, so that many
// hostnames intersect. Some labels end with others.
func randomHostname(r *rand.Rand) gatewayv1.Hostname {
	labels := make([]string, 1+r.IntN(4))
	for i := range labels {
		labels[i] = []string{"a", "b", "ba", "c"}[r.IntN(4)]
	}
	if r.IntN(4) == 0 {
		labels = slices.Insert(labels, 0, "*")
	}
	return gatewayv1.Hostname(strings.Join(labels, "."))
}
