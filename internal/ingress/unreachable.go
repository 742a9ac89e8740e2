package ingress

import "github.com/tunnel-gateway/tunnel-gateway/internal/routing"

// UnreachableRules returns the rules of routes in the table for which [Rules] omits every
// ingress rule, in the order of the entries.
func UnreachableRules(t *routing.Table) []routing.UnreachableRule {
	if t == nil {
		return nil
	}
	reach := routing.NewReach()
	for _, rule := range build(t, reach.Shadow) {
		if rule.Entry != nil {
			reach.Add(rule.Entry)
		}
	}
	return reach.UnreachableRules()
}
