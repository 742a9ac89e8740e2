package ingress

import "github.com/tunnel-gateway/tunnel-gateway/internal/routing"

// UnreachableRules returns the route rules for which [Rules] omits every ingress rule, in
// entry order.
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
