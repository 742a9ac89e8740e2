package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// routeTo returns a route that leads the requests with a path prefix to a cluster.
func routeTo(prefix, cluster string) *routev3.Route {
	return &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	}
}

// answer returns the cluster that answers requests with the path, or "".
func answer(routes []*routev3.Route, path string) string {
	for _, route := range routes {
		if strings.HasPrefix(path, route.Match.GetPrefix()) {
			return route.GetRoute().GetCluster()
		}
	}
	return ""
}

// randomRoutes returns routes with distinct prefixes, in the order of a table.
func randomRoutes(dice *rand.Rand) []*routev3.Route {
	var routes []*routev3.Route
	for _, prefix := range []string{"/a/b/c", "/a/b", "/a", "/b", "/"} {
		if dice.IntN(3) > 0 {
			routes = append(routes, routeTo(prefix, fmt.Sprint(dice.IntN(3))))
		}
	}
	if dice.IntN(8) == 0 { // the order can change if a route is created again
		dice.Shuffle(len(routes), func(i, j int) { routes[i], routes[j] = routes[j], routes[i] })
	}
	return routes
}

// keptHost is a hostname that gets Access, whose routes change meanwhile.
type keptHost struct {
	first     map[string]string // the answers before
	remaining []*routev3.Route
	// forwarded counts the requests that are forwarded, and lost the requests that could
	// be.
	forwarded, lost int
}

// change changes the routes, and returns a problem of the kept host, or "".
func (k *keptHost) change(now []*routev3.Route) string {
	size := len(k.remaining)
	host, remaining := keep(&routev3.VirtualHost{Routes: now}, k.remaining)
	k.remaining = remaining
	if len(remaining) != size || len(host.Routes) > size+len(now) {
		return fmt.Sprintf("%d of %d routes remain, in a host with %d", len(remaining), size, len(host.Routes))
	}
	for path, first := range k.first {
		got, mayForward := answer(host.Routes, path), first != "" && first == answer(now, path)
		switch {
		case got != "" && (got != first || !mayForward):
			return fmt.Sprintf("%s is answered by %q, and before by %q", path, got, first)
		case got != "":
			k.forwarded++
		case mayForward:
			k.lost++
		}
	}
	return ""
}

// Over any number of changes, a hostname that gets Access forwards a request only to the
// cluster that answered it before, and only if that still is the desired answer. The list
// that it remembers does not grow.
func TestKeptRoutesNeverForwardMoreThanBefore(t *testing.T) {
	forwarded, lost := 0, 0 // after the first change: routes that are lost do not come back
	for seed := range uint64(3000) {
		dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the test must be reproducible
		k := &keptHost{first: map[string]string{}, remaining: randomRoutes(dice)}
		for _, path := range []string{"/", "/a", "/a/b", "/a/b/c", "/b", "/c"} {
			k.first[path] = answer(k.remaining, path)
		}
		for change := range 1 + dice.IntN(4) {
			if problem := k.change(randomRoutes(dice)); problem != "" {
				t.Errorf("seed %d: %s", seed, problem)
			}
			if change == 0 {
				forwarded, lost = forwarded+k.forwarded, lost+k.lost
			}
		}
	}
	if forwarded == 0 || lost > forwarded {
		t.Errorf("%d requests are forwarded, and %d more could be", forwarded, lost)
	}
}

// Every match of either list that comes before a route that stays returns 403, not the
// route after it.
func TestKeptHostForbidsWhatHasChanged(t *testing.T) {
	before := []*routev3.Route{routeTo("/gone", "1"), routeTo("/changed", "1"), routeTo("/", "1")}
	now := []*routev3.Route{routeTo("/added", "2"), routeTo("/changed", "2"), routeTo("/", "1")}
	host, remaining := keep(&routev3.VirtualHost{Name: "a", Domains: []string{"a"}, Routes: now, ResponseHeadersToRemove: []string{"content-length"}}, before)
	describe := func(routes []*routev3.Route) (lines []string) {
		for _, r := range routes {
			line := r.Match.GetPrefix() + " " + r.GetRoute().GetCluster()
			if status := r.GetDirectResponse().GetStatus(); status != 0 {
				line += fmt.Sprint(status)
			}
			lines = append(lines, line)
		}
		return lines
	}
	if got, want := describe(host.Routes), []string{"/added 403", "/changed 403", "/gone 403", "/changed 403", "/ 1"}; !slices.Equal(got, want) {
		t.Errorf("the routes are %q, want %q", got, want)
	}
	if got, want := describe(remaining), []string{"/gone 403", "/changed 403", "/ 1"}; !slices.Equal(got, want) {
		t.Errorf("the remaining routes are %q, want %q", got, want)
	}
	if host.Name != "a" || len(host.Domains) != 1 || len(host.ResponseHeadersToRemove) != 1 {
		t.Errorf("the host is %v", host)
	}
}
