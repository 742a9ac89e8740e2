package gateway_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// TestTrace: the trail of a random request ends at the connector's choice,
// starts at the listener that the specification gives the request to, and has
// everything that the document could have answered with instead.
func TestTrace(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o, result := newOracle(s), gateway.Build(s, randomOptions)
		configuration := result.Configuration()
		dice := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // it has to be reproducible
		hosts, paths := hostsAround(s), pathsAround(s)
		for range 100 {
			request := gateway.Request{Host: hosts[dice.IntN(len(hosts))], Path: paths[dice.IntN(len(paths))]}
			trail := result.Trace(request)
			wantClaimants(t, o, trail)
			if configuration == nil {
				if trail.Answer != -1 || len(trail.Shadowed) > 0 {
					t.Errorf("%s: rule %d answers, of a Gateway that is not accepted", request, trail.Answer)
				}
				continue
			}
			index, _, _ := compile(t, configuration).Match(request.Host, request.Path)
			if trail.Answer != index {
				t.Fatalf("%s: rule %d answers, want %d", request, trail.Answer, index)
			}
			wantShadowed(t, result, trail)
			wantOtherRoutes(t, result, trail)
		}
	})
}

func wantClaimants(t *testing.T, o *oracle, trail *gateway.Trace) {
	t.Helper()
	hostname, found := o.groupOf(trail.Request.Host)
	if found != (len(trail.Claimants) > 0) {
		t.Fatalf("%s belongs to %d listeners, and to one by the specification: %t", trail.Request, len(trail.Claimants), found)
	}
	for _, l := range trail.Claimants {
		if l.Hostname() != hostname || !slices.Contains(trail.Listeners, l) {
			t.Errorf("%s belongs to the listener of %q, want %q", trail.Request, l.Hostname(), hostname)
		}
	}
}

// wantOtherRoutes: of a request that no route answers, each route at its listeners
// is named, with what it asks for and the request is not.
func wantOtherRoutes(t *testing.T, result *gateway.Result, trail *gateway.Trace) {
	t.Helper()
	if result.Rules[trail.Answer].Route != nil {
		if len(trail.Others) > 0 {
			t.Errorf("%s: a route answers, and %d others are named", trail.Request, len(trail.Others))
		}
		return
	}
	for _, route := range result.Routes {
		attached := slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool {
			return slices.ContainsFunc(p.Listeners, func(l *gateway.Listener) bool { return slices.Contains(trail.Claimants, l) })
		})
		absent := slices.ContainsFunc(trail.Unserved, func(a gateway.UnservedRoute) bool { return a.Route == route })
		elsewhere := slices.ContainsFunc(trail.Others, func(e gateway.OtherRoute) bool { return e.Route == route })
		if attached && !absent && !elsewhere || elsewhere && (absent || !attached) {
			t.Errorf("%s: %s attached: %t, absent: %t, elsewhere: %t", trail.Request, route.NamespacedName, attached, absent, elsewhere)
		}
	}
	wantOtherRequests(t, trail)
}

// wantOtherRequests: of what is named, the request has the hostname or the path not.
func wantOtherRequests(t *testing.T, trail *gateway.Trace) {
	t.Helper()
	for _, e := range trail.Others {
		if (len(e.Hostnames) > 0) == (len(e.Paths) > 0) {
			t.Errorf("%s: %s asks for hostnames %q and paths %q", trail.Request, e.Route.NamespacedName, e.Hostnames, e.Paths)
		}
		for _, path := range e.Paths {
			only := gateway.Result{Rules: []gateway.Rule{{Path: path}, {}}}
			if only.Trace(trail.Request).Answer == 0 {
				t.Errorf("%s: %s asks for %q, which it is", trail.Request, e.Route.NamespacedName, path)
			}
		}
	}
}

// wantShadowed: what is beaten comes after the answer.
func wantShadowed(t *testing.T, result *gateway.Result, trail *gateway.Trace) {
	t.Helper()
	beaten := map[int]bool{}
	for _, b := range trail.Shadowed {
		if b.Reason == "" || b.Index >= 0 && (b.Index <= trail.Answer || beaten[b.Index]) {
			t.Errorf("%s: rule %d is beaten by rule %d, because %q", trail.Request, b.Index, trail.Answer, b.Reason)
		}
		if (b.Index < 0) != (b.CoveredBy >= 0) {
			t.Errorf("%s: rule %d is hidden by rule %d", trail.Request, b.Index, b.CoveredBy)
		}
		beaten[b.Index] = true
	}
	wantAllShadowed(t, result, trail, beaten)
	wantAnswer(t, result, trail)
}

// wantAllShadowed: every other rule of a route that the request meets is named.
func wantAllShadowed(t *testing.T, result *gateway.Result, trail *gateway.Trace, beaten map[int]bool) {
	t.Helper()
	for place := trail.Answer + 1; place < len(result.Rules); place++ {
		rule := result.Rules[place]
		only := gateway.Result{Rules: []gateway.Rule{rule, {}}}
		if meets := only.Trace(trail.Request).Answer == 0; meets && rule.Route != nil && !beaten[place] {
			t.Errorf("%s: rule %d, %s %s, could answer too and is not named", trail.Request, place, rule.Hostname, rule.Path)
		}
	}
}

// wantAnswer: what is said of the answer is so, and its route is not absent.
func wantAnswer(t *testing.T, result *gateway.Result, trail *gateway.Trace) {
	t.Helper()
	if fails := result.Rules[trail.Answer].Service == answerError; fails != (trail.Failure != nil) {
		t.Errorf("%s: the answer fails: %t, and why: %v", trail.Request, fails, trail.Failure)
	}
	for _, l := range trail.Via {
		if !l.Serves() || !slices.Contains(trail.Claimants, l) {
			t.Errorf("%s: the answer came through listener %s, which has no part in it", trail.Request, l.Spec.Name)
		}
	}
	for _, a := range trail.Unserved {
		if a.Route == result.Rules[trail.Answer].Route && !strings.Contains(a.Message, " leaves match ") {
			t.Errorf("%s: the route that answers is absent: %s", trail.Request, a.Message)
		}
	}
	if ofRoute := result.Rules[trail.Answer].Route != nil; ofRoute != (len(trail.Via) > 0) {
		t.Errorf("%s: the route of rule %d attached by %d listeners", trail.Request, trail.Answer, len(trail.Via))
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
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/cart", "ftp://shop.example.com", "wss://shop.example.com", "https://me:secret@shop.example.com", "me:secret@shop", "*.example.com", "shop_1.example.com", "https://", "shop.example.com/%zz"} {
		if got, err := gateway.ParseRequest(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is taken for %v, %v", text, got, err)
		}
	}
}
