package ingress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A rule is unreachable when all its ingress rules are omitted.
func TestUnreachableRules(t *testing.T) {
	older, younger := &routing.Route{Kind: routing.KindHTTPRoute, Rank: 0}, &routing.Route{Kind: routing.KindHTTPRoute, Rank: 1}
	older.Name, younger.Name = "older", "younger"
	entry := func(route *routing.Route, rule, match int, hostname, path string) routing.Entry {
		return routing.Entry{
			Hostname: hostname, Match: &routing.Match{Path: routing.Path{Value: path}}, Action: &routing.Action{Status: 500},
			Source: routing.Source{Route: route, Rule: rule, Match: match},
		}
	}
	unreachable := func(rule int, before ...routing.Source) routing.UnreachableRule {
		return routing.UnreachableRule{Rule: routing.Source{Route: younger, Rule: rule}, Before: before}
	}
	first := routing.Source{Route: older}
	for name, test := range map[string]struct {
		entries []*routing.Entry
		want    []routing.UnreachableRule
	}{
		"the same path":                   {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "/a")), new(entry(younger, 3, 0, "a.example.com", "/a"))}, []routing.UnreachableRule{unreachable(3, first)}},
		"every path":                      {[]*routing.Entry{new(entry(older, 0, 0, "*.example.com", "")), new(entry(younger, 0, 0, "a.example.com", "/a"))}, []routing.UnreachableRule{unreachable(0, first)}},
		"another path":                    {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 0, "a.example.com", "/b"))}, nil},
		"another match of the rule":       {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 1, "a.example.com", "/b"))}, nil},
		"another hostname of the rule":    {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 0, "b.example.com", "/a"))}, nil},
		"the same match twice":            {[]*routing.Entry{new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 1, "a.example.com", "/a"))}, nil},
		"a later rule of the same route":  {[]*routing.Entry{new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 1, 0, "a.example.com", "/a"))}, []routing.UnreachableRule{unreachable(1, routing.Source{Route: younger})}},
		"several matches behind one rule": {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "")), new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 1, "a.example.com", "/b"))}, []routing.UnreachableRule{unreachable(0, first)}},
		"several rules before it":         {[]*routing.Entry{new(entry(older, 0, 0, "a.example.com", "/a")), new(entry(older, 1, 0, "a.example.com", "/b")), new(entry(younger, 0, 0, "a.example.com", "/a")), new(entry(younger, 0, 1, "a.example.com", "/b"))}, []routing.UnreachableRule{unreachable(0, first, routing.Source{Route: older, Rule: 1})}},
	} {
		t.Run(name, func(t *testing.T) {
			table := &routing.Table{Groups: []routing.Group{{Hostname: "*.example.com", Entries: test.entries}}, ClusterDomain: "cluster.local"}
			got := ingress.UnreachableRules(table)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unreachable rules (-want +got):\n%s", diff)
			}
		})
	}
	if got := ingress.UnreachableRules(nil); got != nil {
		t.Errorf("without a table: %v, want none", got)
	}
}
