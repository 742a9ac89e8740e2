package routing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A mismatch names the part of the match that does not apply.
func TestMismatch(t *testing.T) {
	path := func(kind routing.PathKind, value string) routing.Match {
		return routing.Match{Path: routing.Path{Kind: kind, Value: value}}
	}
	header := func(value string, expression bool) routing.Match {
		return routing.Match{Headers: []routing.ValueMatch{{Name: "x-version", Value: value, Expression: expression}}}
	}
	query := func(name, value string) routing.Match {
		return routing.Match{Query: []routing.ValueMatch{{Name: name, Value: value}}}
	}
	request := routing.Request{Host: "a.example.com", Path: "/cart", Query: "q=1&q=2", Headers: map[string][]string{"X-Version": {"1", "2"}}}
	for name, test := range map[string]struct {
		match routing.Match
		want  string
	}{
		"every request":          {routing.Match{}, ""},
		"a prefix":               {path(routing.PathPrefix, "/a"), "the path prefix /a does not cover /cart"},
		"a prefix of the letter": {path(routing.PathPrefix, "/car"), "the path prefix /car does not cover /cart"},
		"an exact path":          {path(routing.PathExact, "/cart/"), "the path is /cart, not /cart/"},
		"an expression":          {path(routing.PathExpression, "(?:/c)"), "the expression /c does not match the whole path /cart"},
		"a method":               {routing.Match{Method: "POST"}, "the method is GET, not POST"},
		"one of two values":      {header("2", false), ""},
		"other values":           {header("3", false), `the header x-version is "1" and "2", not "3"`},
		"an expression of values": {
			header("(?:[3-9])", true), `the expression [3-9] does not match the whole value "1" and "2" of the header x-version`,
		},
		"a missing header":           {routing.Match{Headers: []routing.ValueMatch{{Name: "beta", Value: "1"}}}, "the header beta is missing"},
		"a second value of a query":  {query("q", "2"), `the query parameter q is "1", not "2"`},
		"a missing query parameter":  {query("r", "2"), "the query parameter r is missing"},
		"a path and a method":        {routing.Match{Path: routing.Path{Value: "/a"}, Method: "POST"}, "the path prefix /a does not cover /cart"},
		"a method and a header":      {routing.Match{Method: "POST", Headers: header("3", false).Headers}, `the method is GET, not POST, and the header x-version is "1" and "2", not "3"`},
		"the host of another server": {routing.Match{Headers: []routing.ValueMatch{{Name: "host", Value: "b"}}}, `the header host is "a.example.com", not "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.match.Mismatch(request)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if matches := test.match.Matches(request); matches != (got == "") {
				t.Errorf("the match applies: %t, but the mismatch is %q", matches, got)
			}
		})
	}
}

// Attempts are in the order of the table, and say why each entry does not answer.
func TestAttempts(t *testing.T) {
	route := &routing.Route{Kind: routing.KindHTTPRoute}
	entry := func(rule int, hostname string, m routing.Match) *routing.Entry {
		return &routing.Entry{Hostname: hostname, Match: &m, Action: &routing.Action{Status: 500}, Source: routing.Source{Route: route, Rule: rule}}
	}
	prefix := func(value string) routing.Match { return routing.Match{Path: routing.Path{Value: value}} }
	insecure := entry(1, "*.example.com", prefix("/x"))
	insecure.Scheme = routing.SchemeHTTP
	table := &routing.Table{Groups: []routing.Group{
		{Hostname: "other.example.com", Entries: []*routing.Entry{entry(9, "other.example.com", prefix("/x"))}},
		{Hostname: "*.example.com", Entries: []*routing.Entry{
			entry(0, "a.example.com", prefix("/a")), insecure, entry(2, "b.example.com", prefix("/x")),
			entry(3, "*.example.com", prefix("/x")), entry(4, "*.example.com", prefix("/b")), entry(5, "*.example.com", routing.Match{}),
		}},
		{Hostname: "", Entries: []*routing.Entry{entry(6, "", prefix("/x")), entry(7, "", prefix("/y"))}},
	}}
	type attempt struct {
		rule    int
		matches bool
		reason  string
	}
	isolated := `the request belongs to the listener for "*.example.com" and never falls through to the listener for every hostname`
	for path, want := range map[string][]attempt{
		"/x": {
			{0, false, "the path prefix /a does not cover /x"}, {1, true, "it only answers requests with http"}, {3, true, ""},
			{5, true, "its path prefix is shorter"}, {6, true, isolated},
		},
		"/y": {
			{0, false, "the path prefix /a does not cover /y"}, {1, false, "the path prefix /x does not cover /y"},
			{3, false, "the path prefix /x does not cover /y"}, {4, false, "the path prefix /b does not cover /y"},
			{5, true, ""}, {7, true, isolated},
		},
	} {
		var got []attempt
		for _, a := range table.Attempts(routing.Request{Host: "a.example.com", Path: path}) {
			got = append(got, attempt{a.Entry.Source.Rule, a.Matches, a.Reason})
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(attempt{})); diff != "" {
			t.Errorf("attempts for %s (-want +got):\n%s", path, diff)
		}
	}
}
