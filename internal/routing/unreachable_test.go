package routing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A rule is unreachable when all its entries are shadowed for their own hostnames.
func TestUnreachableRules(t *testing.T) {
	older, younger := &routing.Route{Kind: routing.KindHTTPRoute, Rank: 0}, &routing.Route{Kind: routing.KindHTTPRoute, Rank: 1}
	older.Name, younger.Name = "older", "younger"
	entry := func(route *routing.Route, rule int, hostname string, match routing.Match) routing.Entry {
		return routing.Entry{Hostname: hostname, Match: &match, Action: &routing.Action{Status: 500}, Source: routing.Source{Route: route, Rule: rule}}
	}
	every, a := routing.Match{}, routing.Match{Path: routing.Path{Value: "/a"}}
	header := func(names ...string) routing.Match {
		m := routing.Match{Path: a.Path}
		for _, name := range names {
			m.Headers = append(m.Headers, routing.ValueMatch{Name: name, Value: "1"})
		}
		return m
	}
	expression := header("x")
	expression.Headers[0].Expression = true
	behindOlder := []routing.UnreachableRule{{Rule: routing.Source{Route: younger}, Before: []routing.Source{{Route: older}}}}
	for name, test := range map[string]struct {
		entries []*routing.Entry
		want    []routing.UnreachableRule
	}{
		"the same match":                 {[]*routing.Entry{new(entry(older, 0, "a.example.com", a)), new(entry(younger, 0, "a.example.com", a))}, behindOlder},
		"the same headers":               {[]*routing.Entry{new(entry(older, 0, "a.example.com", header("x", "Y"))), new(entry(younger, 0, "a.example.com", header("y", "X")))}, behindOlder},
		"fewer headers":                  {[]*routing.Entry{new(entry(older, 0, "a.example.com", header("x", "y"))), new(entry(younger, 0, "a.example.com", header("x")))}, nil},
		"an expression":                  {[]*routing.Entry{new(entry(older, 0, "a.example.com", header("x"))), new(entry(younger, 0, "a.example.com", expression))}, nil},
		"a method":                       {[]*routing.Entry{new(entry(older, 0, "a.example.com", routing.Match{Path: a.Path, Method: "GET"})), new(entry(younger, 0, "a.example.com", a))}, nil},
		"every request":                  {[]*routing.Entry{new(entry(older, 0, "a.example.com", every)), new(entry(younger, 0, "a.example.com", header("x")))}, behindOlder},
		"every path with a header":       {[]*routing.Entry{new(entry(older, 0, "a.example.com", routing.Match{Headers: header("x").Headers})), new(entry(younger, 0, "a.example.com", a))}, nil},
		"a narrower hostname":            {[]*routing.Entry{new(entry(older, 0, "a.example.com", every)), new(entry(younger, 0, "*.example.com", a))}, nil},
		"a narrower and an own hostname": {[]*routing.Entry{new(entry(older, 1, "a.example.com", a)), new(entry(older, 0, "*.example.com", every)), new(entry(younger, 0, "*.example.com", a))}, behindOlder},
		"another hostname of the rule":   {[]*routing.Entry{new(entry(older, 0, "a.example.com", a)), new(entry(younger, 0, "a.example.com", a)), new(entry(younger, 0, "b.example.com", a))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table := &routing.Table{Groups: []routing.Group{{Hostname: "*.example.com", Entries: test.entries}}}
			got := table.UnreachableRules()
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unreachable rules (-want +got):\n%s", diff)
			}
		})
	}
	if got := (*routing.Table)(nil).UnreachableRules(); got != nil {
		t.Errorf("without a table: %v, want none", got)
	}
}
