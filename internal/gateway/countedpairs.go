package gateway

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Uncounted describes the rules above connector.envoy.metrics.maxPairs, whose requests
// Envoy counts together.
type Uncounted struct {
	// Pairs counts the pairs of route and backend.
	Pairs int
	// Namespaces are the namespaces of the routes, in alphabetical order.
	Namespaces []string
}

// Amount returns the number of pairs, or nil for nil.
func (u *Uncounted) Amount() *int {
	if u == nil {
		return nil
	}
	return &u.Pairs
}

// countedRule is a rule. Envoy counts either all of its requests separately or none.
type countedRule struct {
	route *routing.Route
	rule  int
}

// countedPair is a hostname and a backend of a rule. Envoy needs a series of each metric for
// it.
type countedPair struct {
	hostname string
	backend  routing.BackendName
}

// selectCounted marks the entries in the table whose requests the metrics by route count
// separately. It divides the pairs among the tenants like rules, but leaves out single
// rules instead of whole routes.
//
// It returns nil if the metrics do not count routes.
func (l *limiter) selectCounted(t *routing.Table) *Uncounted {
	if !t.Telemetry.CountsRoutes() {
		return nil
	}
	pairs := pairsOf(t)
	rules := slices.SortedFunc(maps.Keys(pairs), func(a, b countedRule) int {
		return cmp.Or(cmp.Compare(a.route.Rank, b.route.Rank), cmp.Compare(a.rule, b.rule))
	})
	demands := make([]limits.Demand, len(rules))
	for i, rule := range rules {
		demands[i] = limits.Demand{Tenant: l.tenants.of(rule.route.Namespace), Amount: len(pairs[rule])}
	}
	limit := limits.Limit{Total: int(ptr.Deref(t.Telemetry.Metrics.MaxPairs, v1alpha1.DefaultMaxPairs)), First: l.first}
	counted, above, namespaces := map[countedRule]bool{}, &Uncounted{}, map[string]bool{}
	for i, verdict := range limit.Allocate(nil, demands).Verdicts {
		if counted[rules[i]] = verdict == limits.Admitted; !counted[rules[i]] {
			above.Pairs += demands[i].Amount
			namespaces[rules[i].route.Namespace] = true
		}
	}
	for e := range t.Entries() {
		e.Counted = counted[countedRule{e.Source.Route, e.Source.Rule}]
	}
	above.Namespaces = slices.Sorted(maps.Keys(namespaces))
	return above
}

// pairsOf returns the pairs of each rule.
func pairsOf(t *routing.Table) map[countedRule]map[countedPair]bool {
	pairs := map[countedRule]map[countedPair]bool{}
	for e := range t.Entries() {
		rule := countedRule{e.Source.Route, e.Source.Rule}
		if pairs[rule] == nil {
			pairs[rule] = map[countedPair]bool{}
		}
		if !t.Telemetry.CountsBackends() {
			pairs[rule][countedPair{hostname: e.Hostname}] = true
			continue
		}
		for _, backend := range e.Action.BackendNames() {
			pairs[rule][countedPair{e.Hostname, backend}] = true
		}
	}
	return pairs
}

// describe returns a sentence for the owner of the Gateway, or "". It omits the
// number of pairs, which changes often.
func (u *Uncounted) describe() string {
	if u == nil || len(u.Namespaces) == 0 {
		return ""
	}
	return " " + describeItems(message.List{
		Before:  "The metrics count the requests to rules above connector.envoy.metrics.maxPairs together. Namespaces with such rules: ",
		After:   ".",
		MaxSize: message.MaxSize / 4,
	}, u.Namespaces)
}
