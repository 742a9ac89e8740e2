package gateway_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The trace of a random request has the rule that the connector chooses, the
// listener to which the request belongs by the specification, and every other match
// that matches the request.
func TestTraceExplainsTheAnswer(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o, result := newOracle(s), gateway.Build(s, randomOptions)
		configuration := result.Configuration()
		dice := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // the test must be reproducible
		hosts, paths := hostsAround(s), pathsAround(s)
		for range 100 {
			request := gateway.Request{Host: hosts[dice.IntN(len(hosts))], Path: paths[dice.IntN(len(paths))]}
			trace := result.Trace(request)
			wantClaimants(t, o, trace)
			if configuration == nil {
				if trace.Answer != -1 || len(trace.Shadowed) > 0 {
					t.Errorf("%s: rule %d answers, but the Gateway is not accepted", request, trace.Answer)
				}
				continue
			}
			index, _, _ := compile(t, configuration).Match(request.Host, request.Path)
			if trace.Answer != index {
				t.Fatalf("%s: rule %d answers, want rule %d", request, trace.Answer, index)
			}
			wantShadowed(t, result, trace)
			wantOtherRoutes(t, result, trace)
		}
	})
}

func wantClaimants(t *testing.T, o *oracle, trace *gateway.Trace) {
	t.Helper()
	hostname, found := o.groupOf(trace.Request.Host)
	if found != (len(trace.Claimants) > 0) {
		t.Fatalf("%s: got %d claimants, but the specification has a claimant: %t", trace.Request, len(trace.Claimants), found)
	}
	for _, l := range trace.Claimants {
		if l.Hostname() != hostname || !slices.Contains(trace.Listeners, l) {
			t.Errorf("%s: got claimant with hostname %q, want %q", trace.Request, l.Hostname(), hostname)
		}
	}
}

// wantOtherRoutes checks Others. When no route answers the request, Others has every
// route that is attached to the claimants and does not match.
func wantOtherRoutes(t *testing.T, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	if result.Rules[trace.Answer].Route != nil {
		if len(trace.Others) > 0 {
			t.Errorf("%s: a route answers, but Others has %d routes", trace.Request, len(trace.Others))
		}
		return
	}
	for _, route := range result.Routes {
		attached := slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool {
			return slices.ContainsFunc(p.Listeners, func(l *gateway.Listener) bool { return slices.Contains(trace.Claimants, l) })
		})
		unserved := slices.ContainsFunc(trace.Unserved, func(u gateway.UnservedRoute) bool { return u.Route == route })
		other := slices.ContainsFunc(trace.Others, func(o gateway.OtherRoute) bool { return o.Route == route })
		if attached && !unserved && !other || other && (unserved || !attached) {
			t.Errorf("%s: route %s: attached: %t, in Unserved: %t, in Others: %t", trace.Request, route.NamespacedName, attached, unserved, other)
		}
	}
	wantOtherRequests(t, trace)
}

// wantOtherRequests checks that each route in Others has either hostnames or paths,
// and that no path matches the request.
func wantOtherRequests(t *testing.T, trace *gateway.Trace) {
	t.Helper()
	for _, other := range trace.Others {
		if (len(other.Hostnames) > 0) == (len(other.Paths) > 0) {
			t.Errorf("%s: route %s has hostnames %q and paths %q, want exactly one of them", trace.Request, other.Route.NamespacedName, other.Hostnames, other.Paths)
		}
		for _, path := range other.Paths {
			only := gateway.Result{Rules: []gateway.Rule{{Path: path}, {}}}
			if only.Trace(trace.Request).Answer == 0 {
				t.Errorf("%s: route %s is in Others, but its path %q matches", trace.Request, other.Route.NamespacedName, path)
			}
		}
	}
}

// wantShadowed checks that each shadowed match comes after the answer and has a
// reason.
func wantShadowed(t *testing.T, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	shadowed := map[int]bool{}
	for _, s := range trace.Shadowed {
		if s.Reason == "" || s.Index >= 0 && (s.Index <= trace.Answer || shadowed[s.Index]) {
			t.Errorf("%s: rule %d is shadowed by rule %d for the reason %q", trace.Request, s.Index, trace.Answer, s.Reason)
		}
		if (s.Index < 0) != (s.CoveredBy >= 0) {
			t.Errorf("%s: rule %d is covered by rule %d, want a covering rule exactly when the rule is omitted", trace.Request, s.Index, s.CoveredBy)
		}
		shadowed[s.Index] = true
	}
	wantAllShadowed(t, result, trace, shadowed)
	wantAnswer(t, result, trace)
}

// wantAllShadowed checks that Shadowed has every other rule of a route that matches
// the request.
func wantAllShadowed(t *testing.T, result *gateway.Result, trace *gateway.Trace, shadowed map[int]bool) {
	t.Helper()
	for index := trace.Answer + 1; index < len(result.Rules); index++ {
		rule := result.Rules[index]
		only := gateway.Result{Rules: []gateway.Rule{rule, {}}}
		if matches := only.Trace(trace.Request).Answer == 0; matches && rule.Route != nil && !shadowed[index] {
			t.Errorf("%s: rule %d (%s %s) matches, but is not in Shadowed", trace.Request, index, rule.Hostname, rule.Path)
		}
	}
}

// wantAnswer checks Failure and Via, and that the route that answers is not in
// Unserved except for omitted matches.
func wantAnswer(t *testing.T, result *gateway.Result, trace *gateway.Trace) {
	t.Helper()
	if fails := result.Rules[trace.Answer].Service == answerError; fails != (trace.Failure != nil) {
		t.Errorf("%s: answers 500: %t, but Failure is %v", trace.Request, fails, trace.Failure)
	}
	for _, l := range trace.Via {
		if !l.Serves() || !slices.Contains(trace.Claimants, l) {
			t.Errorf("%s: Via has listener %s, which is not served or not a claimant", trace.Request, l.Spec.Name)
		}
	}
	for _, unserved := range trace.Unserved {
		if unserved.Route == result.Rules[trace.Answer].Route && !strings.Contains(unserved.Message, " is omitted, ") {
			t.Errorf("%s: the route that answers is in Unserved: %s", trace.Request, unserved.Message)
		}
	}
	if hasRoute := result.Rules[trace.Answer].Route != nil; hasRoute != (len(trace.Via) > 0) {
		t.Errorf("%s: rule %d has a route: %t, but Via has %d listeners", trace.Request, trace.Answer, hasRoute, len(trace.Via))
	}
}

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]gateway.Request{
		"shop.example.com":                       {Host: "shop.example.com", Path: "/"},
		"Shop.Example.com./cart":                 {Host: "shop.example.com", Path: "/cart"},
		"shop.example.com:8443/cart?item=1#top":  {Host: "shop.example.com", Path: "/cart"},
		"https://shop.example.com/a%20b":         {Host: "shop.example.com", Path: "/a b"},
		"shop.example.com/hello.Greeter/SayHi":   {Host: "shop.example.com", Path: "/hello.Greeter/SayHi"},
		"HTTPS://shop.example.com/cart":          {Host: "shop.example.com", Path: "/cart"},
		"shop.example.com/to?url=https://a.test": {Host: "shop.example.com", Path: "/to"},
	} {
		if got, err := gateway.ParseRequest(text); err != nil || got != want {
			t.Errorf("ParseRequest(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/cart", "ftp://shop.example.com", "wss://shop.example.com", "https://me:secret@shop.example.com", "me:secret@shop", "*.example.com", "shop_1.example.com", "https://", "shop.example.com/%zz"} {
		if got, err := gateway.ParseRequest(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseRequest(%q) = %v, %v, want an error without the password", text, got, err)
		}
	}
}
