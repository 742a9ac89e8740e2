package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A random request's trace has the specified answer, the listeners to which the request
// belongs by the specification, and every other entry that matches the request.
func TestTraceExplainsTheAnswer(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		wantTraces(t, newOracle(s), gateway.Build(s, randomOptions), requestsFor(s, seed, false, 40))
	})
}

func TestTraceExplainsEveryMatchAndAction(t *testing.T) {
	forEachFullCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		wantTraces(t, newOracleFor(s, true), gateway.Build(s, fullOptions()), requestsFor(s, seed, true, 40))
	})
}

func wantTraces(t *testing.T, o *oracle, result *gateway.Result, requests []routing.Request) {
	t.Helper()
	for _, request := range requests {
		trace := result.Trace(request)
		wantClaimants(t, o, trace)
		if result.Table == nil {
			if trace.Answer != nil || len(trace.Shadowed) > 0 || len(trace.Via) > 0 || len(trace.Others) > 0 {
				t.Errorf("%s: a route answers, but the Gateway is not accepted: %+v", request, trace)
			}
			continue
		}
		if got := describeAnswer(trace.Answer); got != o.expected(request, got) {
			t.Errorf("%s: the trace has the answer %s, want %s", request, got, o.describeAnswer(request))
		}
		wantShadowed(t, o, result, trace)
		wantVia(t, result, trace)
		wantUnserved(t, trace)
		wantOtherRoutes(t, o, result, trace)
	}
}

// wantClaimants checks that Claimants has the listeners that claim the most specific
// hostname for the request.
func wantClaimants(t *testing.T, o *oracle, trace *gateway.Trace) {
	t.Helper()
	var want, got []string
	hostname, _ := o.groupOf(trace.Request.Host)
	for _, c := range o.claims {
		if c.claims && c.hostname() == hostname && hostMatches(hostname, trace.Request.Host) {
			want = append(want, fmt.Sprintf("%s %s", c.owner, c.Name))
		}
	}
	for _, l := range trace.Claimants {
		got = append(got, fmt.Sprintf("%s %s", l.Owner, l.Spec.Name))
		if !slices.Contains(trace.Listeners, l) {
			t.Errorf("%s: the claimant %s is not in Listeners", trace.Request, l.Spec.Name)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s: claimants differ (-want +got):\n%s", trace.Request, diff)
	}
}

// wantShadowed checks that Shadowed has every other entry that matches the request once,
// in table order, with a reason.
func wantShadowed(t *testing.T, o *oracle, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	matching := o.matchingSources(trace.Request)
	var want []*routing.Entry
	for i := range result.Table.Groups {
		for _, e := range entriesOf(&result.Table.Groups[i]) {
			redirect := &routing.Entry{Source: e.InsteadOf}
			matches := matching[sourceOf(e)] && (e.InsteadOf.Route == nil || matching[sourceOf(redirect)])
			if e != trace.Answer && hostMatches(e.Hostname, trace.Request.Host) && matches {
				want = append(want, e)
			}
		}
	}
	var got []*routing.Entry
	owner, _ := o.groupOf(trace.Request.Host)
	for _, s := range trace.Shadowed {
		got = append(got, s.Entry)
		if isolated := strings.Contains(s.Reason, "never falls through"); s.Reason == "" || isolated != (s.Group != owner) {
			t.Errorf("%s: the entry of %s in the group %q is shadowed for the reason %q", trace.Request, sourceOf(s.Entry), s.Group, s.Reason)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d entries are shadowed, want %d", trace.Request, len(got), len(want))
	}
}

// entriesOf returns all entries in a group in order.
func entriesOf(g *routing.Group) []*routing.Entry {
	return slices.Concat(g.Redirects, g.Entries)
}

// matchingSources returns the supported matches in all routes that match the request, for
// any host.
func (o *oracle) matchingSources(r routing.Request) map[string]bool {
	sources := map[string]bool{}
	for _, route := range o.routes {
		for i, rule := range route.rules {
			for j, match := range rule.matches {
				if o.isMatchSupported(match) && o.matches(match, r) {
					sources[(&candidate{route: route, rule: i, match: j}).String()] = true
				}
			}
		}
	}
	return sources
}

// wantVia checks that Via has the served claimants to which the answering route is
// attached.
func wantVia(t *testing.T, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	var want []*gateway.Listener
	if trace.Answer != nil {
		for _, l := range trace.Receivers {
			if l.Serves() && isAttached(routeOf(result, trace.Answer), []*gateway.Listener{l}) {
				want = append(want, l)
			}
		}
	}
	if len(want) > 0 && !slices.Equal(trace.Via, want) || (trace.Answer != nil) != (len(trace.Via) > 0) {
		t.Errorf("%s: %s answers, but Via has %d listeners, want %d", trace.Request, describeAnswer(trace.Answer), len(trace.Via), len(want))
	}
	if len(want) == 0 && slices.ContainsFunc(trace.Via, func(l *gateway.Listener) bool { return slices.Contains(trace.Claimants, l) }) {
		t.Errorf("%s: %s answers through a listener that does not receive the request", trace.Request, describeAnswer(trace.Answer))
	}
}

func routeOf(result *gateway.Result, e *routing.Entry) *gateway.Route {
	i := slices.IndexFunc(result.Routes, func(r *gateway.Route) bool {
		return r.Kind == e.Source.Route.Kind && r.NamespacedName == e.Source.Route.NamespacedName
	})
	return result.Routes[i]
}

// isAttached reports whether one of the listeners admits the route.
func isAttached(route *gateway.Route, listeners []*gateway.Listener) bool {
	return slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool {
		return slices.ContainsFunc(p.Listeners, func(l *gateway.Listener) bool { return slices.Contains(listeners, l) })
	})
}

// wantUnserved checks that each route in Unserved has a reason, and that a route that
// serves the request is there only for omitted matches.
func wantUnserved(t *testing.T, trace *gateway.Trace) {
	t.Helper()
	for i, u := range trace.Unserved {
		serves := trace.Answer != nil && u.Route.Kind == trace.Answer.Source.Route.Kind && u.Route.NamespacedName == trace.Answer.Source.Route.NamespacedName
		if u.Reason.String() == "" || u.Message == "" || serves && !strings.HasPrefix(u.Message, "Dropped Rule ") {
			t.Errorf("%s: %s is in Unserved with the reason %q and the message %q", trace.Request, u.Route.NamespacedName, u.Reason, u.Message)
		}
		if slices.Contains(trace.Unserved[:i], u) {
			t.Errorf("%s: %s is in Unserved twice with the message %q", trace.Request, u.Route.NamespacedName, u.Message)
		}
	}
}

// isShadowed reports whether one of the route's entries for the claimants is shadowed.
func isShadowed(result *gateway.Result, trace *gateway.Trace, route *gateway.Route) bool {
	return slices.ContainsFunc(trace.Shadowed, func(s routing.Shadowed) bool {
		return s.Group == trace.Claimants[0].Hostname() && routeOf(result, s.Entry) == route
	})
}

// wantOtherRoutes checks Others. When no route answers the request, Others has every
// route that is attached to the claimants and does not match.
func wantOtherRoutes(t *testing.T, o *oracle, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	if trace.Answer != nil {
		if len(trace.Others) > 0 {
			t.Errorf("%s: a route answers, but Others has %d routes", trace.Request, len(trace.Others))
		}
		return
	}
	for _, route := range result.Routes {
		attached := isAttached(route, trace.Claimants)
		unserved := slices.ContainsFunc(trace.Unserved, func(u gateway.UnservedRoute) bool { return u.Route == route })
		shadowed := isShadowed(result, trace, route)
		other := slices.ContainsFunc(trace.Others, func(o gateway.OtherRoute) bool { return o.Route == route })
		if other != (attached && !unserved && !shadowed) {
			t.Errorf("%s: route %s: attached: %t, in Unserved: %t, in Others: %t", trace.Request, route.NamespacedName, attached, unserved, other)
		}
	}
	wantNoMatches(t, o, trace)
}

// wantNoMatches checks that no match in the routes in Others matches the request.
func wantNoMatches(t *testing.T, o *oracle, trace *gateway.Trace) {
	t.Helper()
	for _, other := range trace.Others {
		name := other.Route.NamespacedName
		i := slices.IndexFunc(o.routes, func(r *specRoute) bool {
			return r.kind == other.Route.Kind && r.Namespace == name.Namespace && r.Name == name.Name
		})
		if len(o.candidates(o.routes[i], o.routes[i].hostnames, trace.Request)) > 0 {
			t.Errorf("%s: route %s is in Others, but a match matches the request", trace.Request, name)
		}
		if len(other.Hostnames) > 0 && len(other.Matches) > 0 {
			t.Errorf("%s: route %s has hostnames %q and matches %q, want one of them", trace.Request, name, other.Hostnames, other.Matches)
		}
	}
}
