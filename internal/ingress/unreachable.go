package ingress

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// UnreachableRule is a rule of a route that no request can reach.
type UnreachableRule struct {
	// Rule is the rule. The index of its match is 0.
	Rule routing.Source
	// Before are the rules that come before it and answer its requests. The indexes of
	// their matches are 0.
	Before []routing.Source
}

// UnreachableRules returns the rules of routes in the table for which [Rules] omits every
// ingress rule, in the order of the entries.
func UnreachableRules(t *routing.Table) []UnreachableRule {
	if t == nil {
		return nil
	}
	var found []UnreachableRule
	index := map[routing.Source]int{}
	rules := build(t, func(omitted, before *routing.Entry) {
		rule, earlier := ruleOf(omitted), ruleOf(before)
		i, ok := index[rule]
		if !ok {
			i, found = len(found), append(found, UnreachableRule{Rule: rule})
			index[rule] = i
		}
		if !slices.Contains(found[i].Before, earlier) {
			found[i].Before = append(found[i].Before, earlier)
		}
	})
	reachable := map[routing.Source]bool{}
	for i := range rules {
		if e := rules[i].Entry; e != nil {
			reachable[ruleOf(e)] = true
		}
	}
	return slices.DeleteFunc(found, func(u UnreachableRule) bool { return reachable[u.Rule] })
}

// ruleOf returns the source of the entry without the match.
func ruleOf(e *routing.Entry) routing.Source {
	return routing.Source{Route: e.Source.Route, Rule: e.Source.Rule}
}
