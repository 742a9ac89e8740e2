package routing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// entry returns an entry for one hostname, whose source names it.
func entry(hostname string, match routing.Match) routing.Entry {
	return routing.Entry{
		Hostname: hostname, RouteHostname: hostname, Match: &match,
		Action: &routing.Action{Status: 200}, Source: routing.Source{Route: &routing.Route{Kind: routing.KindHTTPRoute}},
	}
}

func prefix(path string) routing.Match { return routing.Match{Path: routing.Path{Value: path}} }

func TestMatchAppliesToARequest(t *testing.T) {
	request := routing.Request{
		Path: "/shop/cart", Method: "POST",
		Headers: map[string][]string{"X-Version": {"v1", "v2"}}, Query: "user=a&user=b",
	}
	for name, test := range map[string]struct {
		match routing.Match
		want  bool
	}{
		"every request":                        {routing.Match{}, true},
		"a prefix of the path":                 {prefix("/shop"), true},
		"the whole path as a prefix":           {prefix("/shop/cart"), true},
		"a prefix within an element":           {prefix("/sh"), false},
		"an exact path":                        {routing.Match{Path: routing.Path{Kind: routing.PathExact, Value: "/shop/cart"}}, true},
		"another exact path":                   {routing.Match{Path: routing.Path{Kind: routing.PathExact, Value: "/shop"}}, false},
		"an expression":                        {routing.Match{Path: routing.Path{Kind: routing.PathExpression, Value: "(?:/shop/.*)"}}, true},
		"an expression for a part of the path": {routing.Match{Path: routing.Path{Kind: routing.PathExpression, Value: "(?:/shop)"}}, false},
		"the method":                           {routing.Match{Method: "POST"}, true},
		"another method":                       {routing.Match{Method: "GET"}, false},
		"a line of a repeated header":          {routing.Match{Headers: []routing.ValueMatch{{Name: "x-version", Value: "v2"}}}, true},
		"another value of a header":            {routing.Match{Headers: []routing.ValueMatch{{Name: "x-version", Value: "v3"}}}, false},
		"a header that the request lacks":      {routing.Match{Headers: []routing.ValueMatch{{Name: "x-other", Value: ""}}}, false},
		"an expression for a header":           {routing.Match{Headers: []routing.ValueMatch{{Name: "x-version", Value: "v[0-9]", Expression: true}}}, true},
		"the first value of a parameter":       {routing.Match{Query: []routing.ValueMatch{{Name: "user", Value: "a"}}}, true},
		"a later value of a parameter":         {routing.Match{Query: []routing.ValueMatch{{Name: "user", Value: "b"}}}, false},
		"one condition of two":                 {routing.Match{Method: "POST", Query: []routing.ValueMatch{{Name: "user", Value: "b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.match.Matches(request); got != test.want {
				t.Errorf("Matches: %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnswerStaysInTheMostSpecificGroup(t *testing.T) {
	table := routing.Table{Groups: []routing.Group{
		{Hostname: "a.example.com", Entries: []*routing.Entry{new(entry("a.example.com", prefix("/x")))}},
		{Hostname: "*.example.com", Entries: []*routing.Entry{new(entry("*.example.com", routing.Match{}))}},
	}}
	answer, shadowed := table.Answer(routing.Request{Host: "a.example.com", Path: "/y"})
	if answer != nil {
		t.Errorf("the entry for %s answers", answer.Hostname)
	}
	if len(shadowed) != 1 || shadowed[0].Group != "*.example.com" {
		t.Fatalf("shadowed: %v", shadowed)
	}
	const want = `the request belongs to the listener for "a.example.com" and never falls through to the listener for "*.example.com"`
	if got := shadowed[0].Reason; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

// A closed hostname answers nothing, and a wider one does not answer for it.
func TestClosedHostnameAnswersNothing(t *testing.T) {
	table := routing.Table{
		Groups: []routing.Group{
			{Hostname: "a.example.com", Redirects: []*routing.Entry{new(entry("a.example.com", routing.Match{}))}, Entries: []*routing.Entry{new(entry("a.example.com", routing.Match{}))}},
			{Hostname: "*.example.com", Entries: []*routing.Entry{new(entry("*.example.com", routing.Match{}))}},
		},
		Access: routing.Access{"a.example.com": {Closed: true}, "*.b.example.com": {Closed: true}},
	}
	for host, entries := range map[string]int{"a.example.com": 3, "x.b.example.com": 1} {
		answer, shadowed := table.Answer(routing.Request{Host: host, Path: "/"})
		if answer != nil || len(shadowed) != entries {
			t.Errorf("%s: %v answers, and %d entries are shadowed, want %d", host, answer, len(shadowed), entries)
		}
	}
	if answer, _ := table.Answer(routing.Request{Host: "b.example.com", Path: "/"}); answer == nil {
		t.Error("nothing answers for a hostname that is not closed")
	}
}

func TestAnswerExplainsWhatIsShadowed(t *testing.T) {
	first, second := entry("a.example.com", prefix("/x/y")), entry("a.example.com", prefix("/x"))
	table := routing.Table{Groups: []routing.Group{{Hostname: "a.example.com", Entries: []*routing.Entry{new(first), new(second)}}}}
	answer, shadowed := table.Answer(routing.Request{Host: "a.example.com", Path: "/x/y/z"})
	if answer == nil || answer.Match != first.Match {
		t.Errorf("answer %v", answer)
	}
	if len(shadowed) != 1 || shadowed[0].Reason != "its path prefix is shorter" {
		t.Errorf("shadowed: %v", shadowed)
	}
}

// A data plane that uses Hosts must serve every request as the table does.
func TestHostsAnswerLikeTheTable(t *testing.T) {
	labels := []string{"a", "b", "c"}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test must be reproducible
	name := func(depth int) string {
		host := "example.com"
		for range depth {
			host = labels[random.IntN(len(labels))] + "." + host
		}
		return host
	}
	hostname := func() string {
		switch random.IntN(8) {
		case 0:
			return ""
		case 1, 2, 3:
			return "*." + name(random.IntN(3))
		default:
			return name(1 + random.IntN(3))
		}
	}
	for range 2000 {
		table := randomTable(random, hostname)
		hosts := table.Hosts()
		for range 20 {
			request := routing.Request{Host: name(1 + random.IntN(4)), Path: []string{"/", "/x", "/x/y"}[random.IntN(3)]}
			want, _ := table.Answer(request)
			if got := answerOfHosts(hosts, request); got != want {
				t.Fatalf("%s: the hosts answer with %v, the table with %v\n%s", request, got, want, describe(table))
			}
		}
	}
}

func randomTable(random *rand.Rand, hostname func() string) routing.Table {
	groups := map[string]bool{}
	for range 1 + random.IntN(4) {
		groups[hostname()] = true
	}
	var table routing.Table
	for listener := range groups {
		g := routing.Group{Hostname: listener}
		for rank := range random.IntN(4) {
			route := hostname()
			served, ok := routing.Intersect(listener, route)
			if !ok {
				continue
			}
			e := entry(served, prefix([]string{"", "/x", "/x/y"}[random.IntN(3)]))
			e.RouteHostname, e.Source.Route = route, &routing.Route{Kind: routing.KindHTTPRoute, Rank: rank}
			g.Entries = append(g.Entries, &e)
		}
		routing.Sort(g.Entries)
		table.Groups = append(table.Groups, g)
	}
	slices.SortFunc(table.Groups, func(a, b routing.Group) int { return routing.CompareGroups(a.Hostname, b.Hostname) })
	return table
}

// answerOfHosts does what a data plane with virtual hosts does: it chooses the most
// specific hostname, and then the first entry that matches.
func answerOfHosts(hosts []*routing.Host, request routing.Request) *routing.Entry {
	for _, host := range hosts {
		if !routing.Covers(host.Hostname, request.Host) {
			continue
		}
		for _, e := range host.Entries {
			if e.Match.Matches(request) {
				return e
			}
		}
		return nil
	}
	return nil
}

func describe(table routing.Table) string {
	var text string
	for _, g := range table.Groups {
		text += fmt.Sprintf("%q:", g.Hostname)
		for _, e := range g.Entries {
			text += fmt.Sprintf(" %q%s", e.Hostname, e.Match.Path.Value)
		}
		text += "\n"
	}
	return text
}

func TestPathChange(t *testing.T) {
	for _, test := range []struct {
		match, value, path string
		prefix             bool
		want               string
	}{
		{"/foo", "/xyz", "/foo/bar", true, "/xyz/bar"},
		{"/foo", "/xyz/", "/foo/bar", true, "/xyz/bar"},
		{"/foo", "/xyz", "/foo", true, "/xyz"},
		{"/foo", "", "/foo/bar", true, "/bar"},
		{"/foo", "/", "/foo/bar", true, "/bar"},
		{"/foo", "/", "/foo", true, "/"},
		{"", "/x", "/foo", true, "/x/foo"},
		{"", "/x", "/", true, "/x/"},
		{"/foo", "/new", "/foo/bar", false, "/new"},
		{"/foo", "", "/foo/bar", false, "/"},
	} {
		change := routing.PathChange{Prefix: test.prefix, Value: test.value}
		if got := change.Apply(test.path, routing.Path{Value: test.match}); got != test.want {
			t.Errorf("%+v of %q after a match of %q: %q, want %q", change, test.path, test.match, got, test.want)
		}
	}
}

func TestLocation(t *testing.T) {
	request := routing.Request{Host: "a.example.com", Path: "/old/page", Query: "q=1"}
	for name, test := range map[string]struct {
		redirect routing.Redirect
		want     string
	}{
		"nothing changes": {routing.Redirect{}, "https://a.example.com/old/page?q=1"},
		"an escaped path": {routing.Redirect{Path: &routing.PathChange{Value: "/new%20page"}}, "https://a.example.com/new%20page?q=1"},
		"the hostname":    {routing.Redirect{Hostname: "b.example.com"}, "https://b.example.com/old/page?q=1"},
		"the scheme":      {routing.Redirect{Scheme: "http"}, "http://a.example.com/old/page?q=1"},
		"a port":          {routing.Redirect{Port: 8443}, "https://a.example.com:8443/old/page?q=1"},
		"a default port":  {routing.Redirect{Port: 443}, "https://a.example.com/old/page?q=1"},
		"the path":        {routing.Redirect{Path: &routing.PathChange{Value: "/new"}}, "https://a.example.com/new?q=1"},
		"a prefix":        {routing.Redirect{Path: &routing.PathChange{Prefix: true, Value: "/new"}}, "https://a.example.com/new/page?q=1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry("a.example.com", prefix("/old"))
			e.Action = &routing.Action{Redirect: &test.redirect}
			if diff := cmp.Diff(test.want, e.Location(request)); diff != "" {
				t.Errorf("location (-want +got):\n%s", diff)
			}
		})
	}
}

// The request path is decoded, or contains escapes.
func TestLocationHasTheEscapesOfThePath(t *testing.T) {
	e := entry("a.example.com", prefix(""))
	e.Action = &routing.Action{Redirect: &routing.Redirect{Scheme: "http"}}
	for path, want := range map[string]string{
		"/a b": "/a%20b", "/a%20b": "/a%20b", "/a%2Fb": "/a%2Fb", "/100%": "/100%25", "/100%25": "/100%25", "/ä": "/%C3%A4",
	} {
		if got := e.Location(routing.Request{Host: "a.example.com", Path: path}); got != "http://a.example.com"+want {
			t.Errorf("Location with the path %q = %q, want the path %q", path, got, want)
		}
	}
}

// Each row has two entries that match the request. The first entry takes precedence
// by one criterion, and comes second by all less important criteria.
func TestEachCriterionPrecedesTheLessImportantOnes(t *testing.T) {
	request := routing.Request{
		Host: "a.example.com", Path: "/shop.Cart/Get", Method: "POST",
		Headers: map[string][]string{"Version": {"1"}, "Tenant": {"1"}}, Query: "debug=1&page=1",
	}
	exact := routing.Path{Kind: routing.PathExact, Value: "/shop.Cart/Get"}
	expression := routing.Path{Kind: routing.PathExpression, Value: "(?:/shop.*)"}
	debug, page := routing.ValueMatch{Name: "debug", Value: "1"}, routing.ValueMatch{Name: "page", Value: "1"}
	version, tenant := routing.ValueMatch{Name: "version", Value: "1"}, routing.ValueMatch{Name: "tenant", Value: "1"}
	// later is a match that takes precedence by all criteria but the path.
	later := func(path routing.Path) routing.Match {
		return routing.Match{Path: path, Method: "POST", Headers: []routing.ValueMatch{version, tenant}, Query: []routing.ValueMatch{debug, page}}
	}
	call := func(path routing.Path, service, method string) routing.Match {
		return routing.Match{Path: path, Call: &routing.Call{Service: service, Method: method}}
	}
	withHeaders := func(m routing.Match, headers ...routing.ValueMatch) routing.Match {
		m.Headers = headers
		return m
	}
	older, younger := routing.Source{Route: &routing.Route{Rank: 0, Created: 1}}, routing.Source{Route: &routing.Route{Rank: 1, Created: 2}, Rule: 1, Match: 1}
	younger0 := routing.Source{Route: younger.Route}
	sameAge := routing.Source{Route: &routing.Route{Rank: 1, Created: 1}}
	for name, row := range map[string]struct {
		first, second             routing.Match
		firstSource, secondSource routing.Source
		firstHostname             string
		reason                    string
	}{
		"the hostname in the route": {
			routing.Match{}, later(exact), younger, older, "a.example.com",
			`the hostname of its route, "*.example.com", is less specific than "a.example.com"`,
		},
		"the hostname in the route of a call": {
			call(routing.Path{}, "", ""), withHeaders(call(exact, "shop.Cart", "Get"), version), younger, older, "a.example.com",
			`the hostname of its route, "*.example.com", is less specific than "a.example.com"`,
		},
		"the characters of a service": {
			call(routing.Path{Value: "/shop.Cart"}, "shop.Cart", ""), later(exact), younger, older, "", "its gRPC method match is less specific",
		},
		"the characters of a method": {
			call(exact, "shop.Cart", "Get"), withHeaders(call(routing.Path{Value: "/shop.Cart"}, "shop.Cart", ""), version, tenant), younger, older, "", "its gRPC method match is less specific",
		},
		"a service before the characters of a method": {
			call(routing.Path{Value: "/shop.Cart"}, "Cart", ""), withHeaders(call(expression, "", "GetItem"), version), younger, older, "", "its gRPC method match is less specific",
		},
		"an exact path": {
			routing.Match{Path: exact}, later(routing.Path{Value: "/shop.Cart"}), younger, older, "", "PathPrefix path matches come after Exact path matches",
		},
		"an exact path before an expression": {
			routing.Match{Path: exact}, later(expression), younger, older, "", "RegularExpression path matches come after Exact path matches",
		},
		"an expression": {
			routing.Match{Path: expression}, later(routing.Path{Value: "/shop.Cart"}), younger, older, "", "PathPrefix path matches come after RegularExpression path matches",
		},
		"the characters of a prefix": {
			routing.Match{Path: routing.Path{Value: "/shop.Cart"}}, later(routing.Path{}), younger, older, "", "its path prefix is shorter",
		},
		"a method": {
			routing.Match{Method: "POST"}, routing.Match{Headers: []routing.ValueMatch{version, tenant}, Query: []routing.ValueMatch{debug, page}},
			younger, older, "", "it has no method match",
		},
		"the number of headers": {
			routing.Match{Headers: []routing.ValueMatch{version, tenant}}, routing.Match{Headers: []routing.ValueMatch{version}, Query: []routing.ValueMatch{debug, page}},
			younger, older, "", "it has fewer header matches",
		},
		"the number of query parameters": {
			routing.Match{Query: []routing.ValueMatch{debug, page}}, routing.Match{Query: []routing.ValueMatch{debug}}, younger, older, "", "it has fewer query parameter matches",
		},
		"the age of the route": {
			routing.Match{}, routing.Match{}, routing.Source{Route: older.Route, Rule: 1, Match: 1}, younger0, "", "its route is younger",
		},
		"the name of the route": {
			routing.Match{}, routing.Match{}, routing.Source{Route: older.Route, Rule: 1, Match: 1}, sameAge, "", "its route has the same age and comes later in alphabetical order",
		},
		"the position of the rule": {
			routing.Match{}, routing.Match{}, routing.Source{Route: older.Route, Match: 1}, routing.Source{Route: older.Route, Rule: 1}, "", "it is a later rule of the same route",
		},
		"the position of the match": {
			routing.Match{}, routing.Match{}, older, routing.Source{Route: older.Route, Match: 1}, "", "it is a later match of the same rule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := entry("*.example.com", row.first), entry("*.example.com", row.second)
			first.Source, second.Source = row.firstSource, row.secondSource
			if row.firstHostname != "" {
				first.RouteHostname = row.firstHostname
			}
			entries := []*routing.Entry{new(second), new(first)}
			routing.Sort(entries)
			table := routing.Table{Groups: []routing.Group{{Hostname: "*.example.com", Entries: entries}}}
			answer, shadowed := table.Answer(request)
			if answer == nil || answer.Match != first.Match {
				t.Fatalf("the entry with the match %s answers, want %s", second.Match, first.Match)
			}
			if len(shadowed) != 1 || shadowed[0].Reason != row.reason {
				t.Errorf("shadowed: %+v, want the reason %q", shadowed, row.reason)
			}
		})
	}
}

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]routing.Request{
		"shop.example.com":                            {Host: "shop.example.com", Path: "/"},
		"Shop.Example.com./cart":                      {Host: "Shop.Example.com.", Path: "/cart"},
		"shop.example.com:8443/cart?item=1#top":       {Host: "shop.example.com", Path: "/cart", Query: "item=1"},
		"https://shop.example.com/a%20b":              {Host: "shop.example.com", Path: "/a b"},
		"shop.example.com/hello.Greeter/SayHi":        {Host: "shop.example.com", Path: "/hello.Greeter/SayHi"},
		"HTTPS://shop.example.com/cart":               {Host: "shop.example.com", Path: "/cart"},
		"shop.example.com/to?url=https://a.test":      {Host: "shop.example.com", Path: "/to", Query: "url=https://a.test"},
		"shop.example.com?debug=1&debug=2&name=a%20b": {Host: "shop.example.com", Path: "/", Query: "debug=1&debug=2&name=a%20b"},
		"shop.example.com/cart?debug":                 {Host: "shop.example.com", Path: "/cart", Query: "debug"},
		"shop.example.com/cart?":                      {Host: "shop.example.com", Path: "/cart"},
	} {
		got, err := routing.ParseRequest(text)
		if got.EscapedPath == "" {
			t.Errorf("ParseRequest(%q) returns no escaped path", text)
		}
		got.EscapedPath = ""
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("ParseRequest(%q) returns the error %v and differs (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{
		"", "/cart", "?debug=1", "ftp://shop.example.com", "wss://shop.example.com", "https://me:secret@shop.example.com", "me:secret@shop",
		"*.example.com", "shop_1.example.com", "https://", "shop.example.com/%zz",
	} {
		if got, err := routing.ParseRequest(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseRequest(%q) = %v, %v, want an error without the password", text, got, err)
		}
	}
}
