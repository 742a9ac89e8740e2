package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// forEachFullCluster checks a property for random clusters whose routes have every kind
// of match and action, and for a data plane that can express everything.
func forEachFullCluster(t *testing.T, property func(t *testing.T, s *gateway.Snapshot, seed uint64)) {
	t.Helper()
	for seed := range *clusters {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { property(t, newRandomSnapshot(seed, true), seed) })
	}
}

func fullOptions() gateway.Options {
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: everything}
	return o
}

func requestsFor(s *gateway.Snapshot, seed uint64, everything bool, n int) []routing.Request {
	d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 6)), everything: everything} //nolint:gosec // the test must be reproducible
	return d.randomRequests(s, n)
}

// With a data plane that can express everything, the table answers with the specified
// match and action.
func TestEveryMatchAndActionGetsTheSpecifiedAnswer(t *testing.T) {
	answers := map[string]int{}
	forEachFullCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o, table := newOracleFor(s, true), gateway.Build(s, fullOptions()).Table
		if (table != nil) != o.accepted() {
			t.Fatalf("has a table: %t, but the Gateway is accepted: %t", table != nil, o.accepted())
		}
		if table == nil {
			return
		}
		hosts := table.Hosts()
		for _, request := range requestsFor(s, seed, true, 150) {
			answer, _ := table.Answer(request)
			want := o.describeAnswer(request)
			if got := describeAnswer(answer); got != o.expected(request, got) {
				t.Errorf("%s, headers %v: the table answers with %s, want %s", request, request.Headers, got, want)
			}
			if got := answerOfHosts(hosts, request); got != answer {
				t.Errorf("%s: the hosts answer with %s, the table with %s", request, describeAnswer(got), want)
			}
			answers[kindOfAnswer(want)]++
		}
	})
	for _, kind := range []string{"no match", "HTTPRoute", "GRPCRoute", "status 500", "status 503", "redirect", "several backends"} {
		if answers[kind] == 0 {
			t.Errorf("no request of the clusters has the answer %q", kind)
		}
	}
}

// A route that is attached to several listeners with one hostname has one entry.
func TestRouteOfTwoListenersHasOneEntry(t *testing.T) {
	s := routesSnapshot()
	second := s.Gateway.Spec.Listeners[0]
	second.Name, second.Port = "second", 8080
	s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, second)
	s.HTTPRoutes = []*gatewayv1.HTTPRoute{httpRoute(routeMeta("a", time.Hour)), httpRoute(routeMeta("b", 0))}
	if diff := gocmp.Diff([]string{"a00", "b00"}, order(t, s)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// kindOfAnswer returns the kind of an answer, so that the test can check that the
// clusters have answers of each kind.
func kindOfAnswer(description string) string {
	for kind, part := range map[string]string{"status 500": ": status 500", "status 503": ": status 503", "redirect": ": redirect", "several backends": " to http"} {
		if n := strings.Count(description, part); n == 1 && kind != "several backends" || n > 1 {
			return kind
		}
	}
	kind, _, _ := strings.Cut(description, " ")
	if kind == "no" {
		return "no match"
	}
	return kind
}

const noMatch = "no match"

// describeAnswer names the match of the entry and its action, like
// [oracle.describeAnswer].
func describeAnswer(e *routing.Entry) string {
	if e == nil || e.Action.Status == http.StatusNotFound {
		return noMatch
	}
	return sourceOf(e) + ": " + describeAction(e.Action)
}

func sourceOf(e *routing.Entry) string {
	return fmt.Sprintf("%s %s, rule %d, match %d", e.Source.Route.Kind, e.Source.Route.NamespacedName, e.Source.Rule, e.Source.Match)
}

func describeAction(a *routing.Action) string {
	switch {
	case a.Status != 0:
		return fmt.Sprintf("status %d", a.Status)
	case a.Redirect != nil:
		return fmt.Sprintf("redirect %d", a.Redirect.Status)
	}
	var backends []string
	for _, b := range a.Forward.Backends {
		target := fmt.Sprintf("status %d", b.Status)
		if b.Status == 0 {
			target = b.Backend.URL(randomOptions.ClusterDomain)
		}
		backends = append(backends, fmt.Sprintf("%d to %s", b.Weight, target))
	}
	return strings.Join(backends, ", ")
}

// answerOfHosts does what a data plane with virtual hosts does: it chooses the most
// specific hostname, and then the first entry that matches.
func answerOfHosts(hosts []*routing.Host, request routing.Request) *routing.Entry {
	var best *routing.Host
	for i := range hosts {
		if hostMatches(hosts[i].Hostname, request.Host) && (best == nil || specificity(hosts[i].Hostname) > specificity(best.Hostname)) {
			best = hosts[i]
		}
	}
	if best == nil {
		return nil
	}
	i := slices.IndexFunc(best.Entries, func(e *routing.Entry) bool { return e.Matches(request) })
	if i < 0 {
		return nil
	}
	return best.Entries[i]
}

// A route on a wildcard listener gets no requests for a hostname that has its own
// listener, so the Gateway serves neither the hostname nor gRPC.
func TestHostnameOfAnotherListenerHasNoEntry(t *testing.T) {
	s := routesSnapshot()
	s.Gateway.Spec.Listeners = []gatewayv1.Listener{
		{Name: "wild", Hostname: new(gatewayv1.Hostname("*.example.com")), Port: 80, Protocol: gatewayv1.HTTPProtocolType},
		{Name: "shop", Hostname: new(gatewayv1.Hostname("shop.example.com")), Port: 80, Protocol: gatewayv1.HTTPProtocolType},
	}
	parents := gatewayv1.CommonRouteSpec{ParentRefs: slices.Clone(toShared.ParentRefs)}
	parents.ParentRefs[0].SectionName = new(gatewayv1.SectionName("wild"))
	s.GRPCRoutes = []*gatewayv1.GRPCRoute{{
		ObjectMeta: routeMeta("calls", time.Hour),
		Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: parents, Hostnames: []gatewayv1.Hostname{"shop.example.com"}, Rules: []gatewayv1.GRPCRouteRule{{}},
		},
	}}
	result := gateway.Build(s, fullOptions())
	if result.ServesGRPC() || len(result.Hostnames()) > 0 {
		t.Errorf("ServesGRPC is %t and the hostnames are %q, want none", result.ServesGRPC(), result.Hostnames())
	}
}

// Several hostnames in a route can have the same intersection with a listener hostname.
// The most specific one decides the order.
func TestOverlappingHostnamesOfARouteHaveOneEntry(t *testing.T) {
	s := routesSnapshot()
	s.Gateway.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname("a.b.example.com"))
	route := httpRoute(routeMeta("route", time.Hour), gatewayv1.HTTPRouteMatch{})
	route.Spec.Hostnames = []gatewayv1.Hostname{"*.example.com", "a.b.example.com", "*.b.example.com"}
	s.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
	entries := gateway.Build(s, fullOptions()).Table.Groups[0].Entries
	if len(entries) != 1 || entries[0].RouteHostname != "a.b.example.com" {
		t.Errorf("entries %+v, want one for a.b.example.com", entries)
	}
}
