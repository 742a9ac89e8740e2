package routing_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// loopHost is the hostname for most entries in the redirect loop tests.
const loopHost = "a.example.com"

// redirectEntry returns an entry for loopHost, and other forwards its requests.
func redirectEntry(m routing.Match, r routing.Redirect) routing.Entry {
	if r.Status == 0 {
		r.Status = 302
	}
	return routing.Entry{Hostname: loopHost, Match: &m, Action: &routing.Action{Redirect: &r}, Source: routing.Source{Route: &routing.Route{}}}
}

func otherEntry(m routing.Match) routing.Entry {
	return routing.Entry{Hostname: loopHost, Match: &m, Action: &routing.Action{Forward: &routing.Forward{}}, Source: routing.Source{Route: &routing.Route{}}}
}

func exact(path string) routing.Match {
	return routing.Match{Path: routing.Path{Kind: routing.PathExact, Value: path}}
}

// with returns the match with a method and headers.
func with(m routing.Match, method string, headers ...routing.ValueMatch) routing.Match {
	m.Method, m.Headers = method, headers
	return m
}

func fullPath(path string) routing.Redirect {
	return routing.Redirect{Path: &routing.PathChange{Value: path}}
}

func replacedPrefix(path string) routing.Redirect {
	return routing.Redirect{Path: &routing.PathChange{Prefix: true, Value: path}}
}

// A loop is certain if it follows from the redirect, its match and its hostname.
func TestAnEntryCertainlyRedirectsToItself(t *testing.T) {
	const none, http, https, both = "", "http", "https", "http https"
	header := routing.ValueMatch{Name: "x", Value: "1"}
	withScheme := func(e routing.Entry, scheme routing.Scheme) routing.Entry {
		e.Scheme = scheme
		return e
	}
	withHost := func(e routing.Entry, hostname string) routing.Entry {
		e.Hostname = hostname
		return e
	}
	withResponse := func(e routing.Entry) routing.Entry {
		e.Action.Response = &routing.HeaderChanges{Set: []routing.Header{{Name: "Set-Cookie", Value: "seen=1"}}}
		return e
	}
	for name, test := range map[string]struct {
		entry routing.Entry
		want  string
	}{
		"no field":                             {redirectEntry(prefix(""), routing.Redirect{}), both},
		"a full path by itself":                {redirectEntry(exact("/a"), fullPath("/a")), both},
		"the root by an empty path":            {redirectEntry(exact("/"), fullPath("")), both},
		"a full path by another":               {redirectEntry(exact("/a"), fullPath("/b")), none},
		"a full path by its slash":             {redirectEntry(exact("/a"), fullPath("/a/")), none},
		"every path below it":                  {redirectEntry(prefix("/a"), fullPath("/a")), both},
		"every path by one":                    {redirectEntry(prefix(""), fullPath("/maintenance")), both},
		"every path by one outside":            {redirectEntry(prefix("/a"), fullPath("/maintenance")), none},
		"every path by one that is normalized": {redirectEntry(prefix(""), fullPath("/a//b")), none},
		"a prefix by itself":                   {redirectEntry(prefix("/a"), replacedPrefix("/a")), both},
		"a prefix by itself with a slash":      {redirectEntry(prefix("/a"), replacedPrefix("/a/")), both},
		"the root prefix by itself":            {redirectEntry(prefix(""), replacedPrefix("/")), both},
		"a prefix by another":                  {redirectEntry(prefix("/a"), replacedPrefix("/b")), none},
		"a prefix by nothing":                  {redirectEntry(prefix("/a"), replacedPrefix("")), none},
		"a hostname by itself":                 {redirectEntry(prefix(""), routing.Redirect{Hostname: loopHost}), both},
		"a hostname by another":                {redirectEntry(prefix(""), routing.Redirect{Hostname: "b.example.com"}), none},
		"a hostname below a wildcard":          {withHost(redirectEntry(prefix(""), routing.Redirect{Hostname: loopHost}), "*.example.com"), none},
		"every hostname by itself":             {withHost(redirectEntry(prefix(""), routing.Redirect{}), ""), both},
		"a wildcard by itself":                 {withHost(redirectEntry(prefix(""), routing.Redirect{}), "*.example.com"), both},
		"https by itself":                      {redirectEntry(prefix(""), routing.Redirect{Scheme: "https", Hostname: loopHost}), https},
		"http by itself":                       {redirectEntry(prefix(""), routing.Redirect{Scheme: "http"}), http},
		"https of requests with http":          {withScheme(redirectEntry(prefix(""), routing.Redirect{Scheme: "https"}), routing.SchemeHTTP), none},
		"an entry for https":                   {withScheme(redirectEntry(prefix(""), routing.Redirect{}), routing.SchemeHTTPS), https},
		"the default port of https":            {redirectEntry(prefix(""), routing.Redirect{Port: 443}), https},
		"the default port of http":             {redirectEntry(prefix(""), routing.Redirect{Port: 80}), http},
		"the port of another scheme":           {redirectEntry(prefix(""), routing.Redirect{Scheme: "https", Port: 80}), none},
		"another port":                         {redirectEntry(prefix(""), routing.Redirect{Port: 8443}), none},
		"GET":                                  {redirectEntry(with(prefix(""), "GET", header), routing.Redirect{Status: 303}), both},
		"HEAD":                                 {redirectEntry(with(prefix(""), "HEAD"), routing.Redirect{Status: 303}), both},
		"POST, which becomes GET":              {redirectEntry(with(prefix(""), "POST"), routing.Redirect{Status: 301}), none},
		"POST, which stays":                    {redirectEntry(with(prefix(""), "POST", header), routing.Redirect{Status: 307}), both},
		"headers and any method":               {redirectEntry(with(prefix(""), "", header), routing.Redirect{Status: 308}), both},
		"headers that can go with a body":      {redirectEntry(with(prefix(""), "", header), routing.Redirect{Status: 302}), none},
		"a cookie in the response":             {withResponse(redirectEntry(prefix(""), routing.Redirect{})), none},
		"an expression":                        {redirectEntry(with(prefix(""), "GET", routing.ValueMatch{Name: "x", Value: "(?:1)", Expression: true}), routing.Redirect{}), none},
		"requests with http, matched by https": {redirectEntry(with(prefix(""), "GET", routing.ValueMatch{Name: "X-Forwarded-Proto", Value: "https"}), routing.Redirect{}), https},
		"no redirect":                          {otherEntry(prefix("")), none},
	} {
		t.Run(name, func(t *testing.T) { wantLoop(t, test.want, &test.entry) })
	}
}

// An entry loops only if it answers requests at prefix(""), and the next request too.
func TestEntriesBeforeARedirect(t *testing.T) {
	const none, both = "", "http https"
	loop := redirectEntry(prefix("/a"), routing.Redirect{})
	expression := routing.Match{Path: routing.Path{Kind: routing.PathExpression, Value: "(?:/a/.*)"}}
	cookie := routing.ValueMatch{Name: "Cookie", Value: "(?:.*)", Expression: true}
	https := otherEntry(prefix(""))
	https.Scheme = routing.SchemeHTTPS
	for name, test := range map[string]struct {
		before, loop routing.Entry
		want         string
	}{
		"another path":                {otherEntry(exact("/b")), loop, both},
		"one of the paths":            {otherEntry(exact("/a")), loop, both},
		"the same path":               {otherEntry(prefix("/a")), loop, none},
		"a shorter prefix":            {otherEntry(prefix("")), redirectEntry(exact("/a/b"), routing.Redirect{}), none},
		"a scheme":                    {https, loop, "http"},
		"a header":                    {otherEntry(with(prefix("/a"), "", routing.ValueMatch{Name: "x", Value: "1"})), loop, both},
		"an expression for a header":  {otherEntry(with(prefix("/a"), "", cookie)), loop, both},
		"an expression for the path":  {otherEntry(expression), loop, none},
		"an expression for its own":   {otherEntry(with(prefix("/a"), "", cookie)), redirectEntry(with(prefix("/a"), "GET", routing.ValueMatch{Name: "Cookie", Value: "a=1"}), routing.Redirect{}), none},
		"the method GET of a form":    {otherEntry(with(exact("/a"), "GET")), redirectEntry(prefix("/a"), routing.Redirect{Status: 303}), none},
		"the method GET is kept":      {otherEntry(with(exact("/a"), "GET")), redirectEntry(prefix("/a"), routing.Redirect{Status: 307}), both},
		"the method GET of both":      {otherEntry(with(exact("/a"), "GET")), redirectEntry(with(prefix("/a"), "GET"), routing.Redirect{}), both},
		"the method GET, other paths": {otherEntry(with(exact("/b"), "GET")), loop, both},
		"the method POST":             {otherEntry(with(prefix("/a"), "POST")), loop, both},
		"the replaced path":           {otherEntry(exact("/maintenance")), redirectEntry(prefix(""), fullPath("/maintenance")), none},
		"not the replaced path":       {otherEntry(prefix("/api")), redirectEntry(prefix(""), fullPath("/maintenance")), both},
	} {
		t.Run(name, func(t *testing.T) { wantLoop(t, test.want, &test.before, &test.loop) })
	}
}

// The comparisons grow with the entries, not with their square.
func TestFewRedirectsOfOneHostnameAreCompared(t *testing.T) {
	var entries []*routing.Entry
	for i := range 300 {
		entries = append(entries, new(redirectEntry(exact(fmt.Sprintf("/%d", i)), routing.Redirect{})))
	}
	entries[299].Hostname = "b.example.com"
	table := routing.Table{Groups: []routing.Group{{Entries: entries}}}
	loops := table.RedirectLoops()
	if len(loops) != 101 || loops[100].Entry != entries[299] {
		t.Errorf("%d loops are found, want 100 for one hostname and 1 for the other", len(loops))
	}
}

// wantLoop checks for which schemes the last entry loops.
func wantLoop(t *testing.T, want string, entries ...*routing.Entry) {
	t.Helper()
	table := routing.Table{Groups: []routing.Group{{Entries: entries}}}
	got := ""
	for _, loop := range table.RedirectLoops() {
		if loop.Entry != entries[len(entries)-1] {
			t.Errorf("another entry loops: %v", loop.Entry.Match)
		}
		for _, scheme := range []routing.Scheme{routing.SchemeHTTP, routing.SchemeHTTPS} {
			if loop.Schemes.Has(scheme) && got != "" {
				got += " "
			}
			if loop.Schemes.Has(scheme) {
				got += string(scheme)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the schemes differ (-want +got):\n%s", diff)
	}
}

// For one request, the answer says whether the redirect is a loop, although not every
// matching request loops.
func TestARequestThatIsRedirectedToItself(t *testing.T) {
	table := routing.Table{Groups: []routing.Group{{Entries: []*routing.Entry{
		new(otherEntry(with(exact("/form"), "GET"))),
		new(redirectEntry(exact("/form"), routing.Redirect{Status: 303})),
		new(redirectEntry(with(prefix("/post"), "POST"), routing.Redirect{Status: 308})),
		new(redirectEntry(prefix("/moved"), fullPath("/moved"))),
		new(redirectEntry(prefix("/b"), routing.Redirect{Hostname: "b.example.com"})),
	}}}}
	for name, test := range map[string]struct {
		request routing.Request
		want    bool
	}{
		"the path itself":           {routing.Request{Path: "/moved", Query: "a=1"}, true},
		"a path below":              {routing.Request{Path: "/moved/b"}, false},
		"a form that was sent":      {routing.Request{Path: "/form", Method: "POST"}, false},
		"a method that stays":       {routing.Request{Path: "/post", Method: "POST"}, true},
		"another hostname":          {routing.Request{Path: "/b"}, false},
		"a backend":                 {routing.Request{Path: "/form"}, false},
		"the path itself with http": {routing.Request{Path: "/moved", Scheme: routing.SchemeHTTP}, true},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Host = loopHost
			answer, _ := table.Answer(test.request)
			if answer == nil {
				t.Fatal("no answer")
			}
			if got := table.IsRedirectLoop(answer, test.request); got != test.want {
				t.Errorf("is a loop: %t, want %t", got, test.want)
			}
		})
	}
}
