package gateway_test

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Every reported match answers at least one request with a redirect to the request URL. A
// visitor who sends any request that the match answers, and follows the redirect, gets
// the same redirect again.
func TestAReportedRedirectLoopsForEveryRequest(t *testing.T) {
	loops, requests := map[string]int{}, map[string]int{}
	forEachFullCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 9)), everything: true} //nolint:gosec // the test must be reproducible
		d.addRedirects(s)
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		for _, loop := range result.Table.RedirectLoops() {
			wantReport(t, result, loop)
			loops[kindOfLoop(loop)]++
			for _, scheme := range []routing.Scheme{routing.SchemeHTTP, routing.SchemeHTTPS} {
				if loop.Schemes.Has(scheme) {
					wantFirst(t, result.Table, loop.Entry, scheme)
					requests[kindOfLoop(loop)] += wantLoops(t, d, result.Table, loop.Entry, scheme)
				}
			}
		}
	})
	for _, kind := range []string{"http", "https", "both"} {
		if loops[kind] < 5 || requests[kind] < 5*loops[kind] {
			t.Errorf("%d redirects loop for the schemes %q, with %d requests; want more", loops[kind], kind, requests[kind])
		}
	}
}

func kindOfLoop(loop routing.RedirectLoop) string {
	switch {
	case loop.Schemes.HasBoth():
		return "both"
	case loop.Schemes.Has(routing.SchemeHTTP):
		return "http"
	default:
		return "https"
	}
}

// addRedirects replaces rules by redirects that often keep the request URL.
func (d *randomizer) addRedirects(s *gateway.Snapshot) {
	hosts := hostsAround(s)
	for _, route := range s.HTTPRoutes {
		for i := range route.Spec.Rules {
			rule := &route.Spec.Rules[i]
			if len(rule.Matches) == 0 || d.chance(50) {
				continue
			}
			redirect := &gatewayv1.HTTPRequestRedirectFilter{
				Scheme: pick(d, nil, nil, new("http"), new("https")), StatusCode: pick(d, nil, new(301), new(303), new(307), new(308)),
				Port: pick(d, nil, nil, nil, new(gatewayv1.PortNumber(80)), new(gatewayv1.PortNumber(443)), new(gatewayv1.PortNumber(8443))),
			}
			if d.chance(40) {
				redirect.Hostname = new(gatewayv1.PreciseHostname(pick(d, hosts...)))
			}
			if own := route.Spec.Hostnames; len(own) > 0 && own[0][0] != '*' && d.chance(20) {
				redirect.Hostname = new(gatewayv1.PreciseHostname(own[0]))
			}
			if d.chance(60) {
				redirect.Path = d.replacement(rule)
			}
			rule.BackendRefs, rule.Filters = nil, []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: redirect}}
			if d.chance(10) {
				rule.Filters = append(rule.Filters, gatewayv1.HTTPRouteFilter{
					Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: &gatewayv1.HTTPHeaderFilter{Remove: []string{"Location"}},
				})
			}
		}
	}
}

// replacement returns a path change, often to the first match's path. A rule that
// replaces a prefix keeps only this match.
func (d *randomizer) replacement(rule *gatewayv1.HTTPRouteRule) *gatewayv1.HTTPPathModifier {
	path := rule.Matches[0].Path
	if *path.Type == gatewayv1.PathMatchRegularExpression {
		return &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new("/a")}
	}
	value := pick(d, *path.Value, *path.Value, *path.Value+"/", "", "/a")
	if *path.Type == gatewayv1.PathMatchExact || d.chance(30) {
		return &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &value}
	}
	rule.Matches = rule.Matches[:1]
	return &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &value}
}

// wantReport checks that one of the parents of the route reports the loop.
func wantReport(t *testing.T, result *gateway.Result, loop routing.RedirectLoop) {
	t.Helper()
	source := loop.Entry.Source
	want := gateway.RedirectLoop{Rule: source.Rule, Match: source.Match, Hostname: loop.Entry.Hostname, Schemes: loop.Schemes}
	for _, route := range result.Routes {
		if route.Kind != source.Route.Kind || route.NamespacedName != source.Route.NamespacedName {
			continue
		}
		if !slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool { return slices.Contains(p.RedirectLoops, want) }) {
			t.Errorf("no parent of %s reports %+v", source.Route.Describe(), want)
		}
	}
}

// firstRequest returns a request that the entry matches.
func firstRequest(e *routing.Entry, scheme routing.Scheme) routing.Request {
	r := routing.Request{Scheme: scheme, Host: hostOf(e.Hostname), Path: e.Match.Path.Value, Method: e.Match.Method, Headers: map[string][]string{}}
	switch {
	case replacesPath(e):
		r.Path = e.Action.Redirect.Path.Apply("", e.Match.Path)
	case e.Match.Path.Kind == routing.PathPrefix:
		r.Path += "/below-the-prefix"
	}
	matching(&r, e.Match)
	return r
}

// replacesPath reports whether the redirect leads from every path to one path.
func replacesPath(e *routing.Entry) bool {
	path := e.Action.Redirect.Path
	return path != nil && !path.Prefix
}

// matching sets the headers and query parameters that the match requires.
func matching(r *routing.Request, m *routing.Match) {
	for _, h := range m.Headers {
		r.Headers[http.CanonicalHeaderKey(h.Name)] = []string{h.Value}
	}
	var query []string
	for _, q := range m.Query {
		query = append(query, q.Name+"="+q.Value)
	}
	if r.Query != "" {
		query = append(query, r.Query)
	}
	r.Query = strings.Join(query, "&")
}

// wantFirst checks that the entry answers a request with a redirect to the request URL.
func wantFirst(t *testing.T, table *routing.Table, e *routing.Entry, scheme routing.Scheme) {
	t.Helper()
	r := firstRequest(e, scheme)
	if answer, _ := table.Answer(r); answer != e {
		t.Errorf("%s rule %d does not answer %s, headers %v", e.Source.Route.Describe(), e.Source.Rule, r, r.Headers)
	}
	wantOwnURL(t, e, r)
}

func wantOwnURL(t *testing.T, e *routing.Entry, r routing.Request) {
	t.Helper()
	want := string(r.Scheme) + "://" + r.Host + r.Path
	if r.Query != "" {
		want += "?" + r.Query
	}
	if got := e.Location(r); got != want {
		t.Errorf("%s rule %d redirects to %s, want %s", e.Source.Route.Describe(), e.Source.Rule, got, want)
	}
}

// wantLoops follows the redirects for random requests that the entry answers, and counts
// them.
func wantLoops(t *testing.T, d *randomizer, table *routing.Table, e *routing.Entry, scheme routing.Scheme) int {
	t.Helper()
	answered := 0
	for range 40 {
		r := firstRequest(e, scheme)
		if e.Match.Path.Kind == routing.PathPrefix && !replacesPath(e) {
			r.Path = cmp.Or(e.Match.Path.Value+pick(d, "", "/", "/a", "/a/b", "/api/", "/%2F"), "/")
		}
		d.extendRequest(&r, false)
		matching(&r, e.Match)
		r.Method = cmp.Or(e.Match.Method, pick(d, "", "GET", "HEAD", "POST", "PUT"))
		if answer, _ := table.Answer(r); answer != e {
			continue
		}
		answered++
		wantOwnURL(t, e, r)
		followed := r
		if keeps := e.Action.Redirect.Status >= 307; !keeps && r.Method != "HEAD" {
			followed.Method = "GET"
		}
		if answer, _ := table.Answer(followed); answer != e {
			t.Errorf("another rule answers after the redirect of %s, status %d, headers %v", r, e.Action.Redirect.Status, r.Headers)
		}
	}
	return answered
}
