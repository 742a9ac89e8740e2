package gateway

import (
	"iter"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// countCosts sets the cost of each match and counts the backends. cost is
// [routing.Capabilities.Cost].
func (r *Route) countCosts(cost func(*routing.Match, *routing.Action) int) {
	for i := range r.matches {
		m := &r.matches[i]
		m.cost = 1
		if cost != nil {
			m.cost = cost(&m.Match, &r.actions[m.rule])
		}
	}
	if cost != nil {
		r.backends = r.countBackends()
	}
}

// cost returns how many rules the route's matches count as for one hostname.
func (r *Route) cost() int {
	cost := 0
	for i := range r.matches {
		cost += r.matches[i].cost
	}
	return cost
}

// cost returns how many rules a route's matches count as for one hostname in the group. A
// redirect to https that answers no request in the group does not count. Another one
// counts with every entry that [group.answerHTTPS] can insert for it.
func (g *group) cost(route *Route) int {
	cost := 0
	for i := range route.matches {
		switch m := &route.matches[i]; {
		case !g.answers(route, m):
		case g.schemes.secure != nil && m.toHTTPS:
			cost += (2 + maxBorrowed) * m.repetitionCost()
		default:
			cost += m.cost
		}
	}
	return cost
}

// repetitionCost returns how many rules one repetition of the route counts as.
func (g *group) repetitionCost(route *Route) int {
	cost := 0
	for i := range route.matches {
		switch m := &route.matches[i]; {
		case !g.answers(route, m):
		case g.schemes.secure != nil && m.toHTTPS:
			cost += 2 * m.repetitionCost() // only wildcards are repeated
		default:
			cost += m.repetitionCost()
		}
	}
	return cost
}

// countBackends counts the different backends and mirrors in the rules with a match. It
// returns 0 if each match can have its own.
func (r *Route) countBackends() int {
	count := 0
	for range r.backendsAndMirrors() {
		count++
	}
	if count <= len(r.matches) {
		return 0 // most routes
	}
	different := map[routing.Backend]struct{}{}
	for b := range r.backendsAndMirrors() {
		different[b] = struct{}{}
	}
	return len(different)
}

// backendsAndMirrors returns the backends and mirrors from each rule with a match.
func (r *Route) backendsAndMirrors() iter.Seq[routing.Backend] {
	return func(yield func(routing.Backend) bool) {
		for i := range r.matches {
			rule := r.matches[i].rule
			if i > 0 && r.matches[i-1].rule == rule {
				continue
			}
			if f := r.actions[rule].Forward; f != nil && !yieldBackends(f, yield) {
				return
			}
		}
	}
}

// yieldBackends reports whether to continue.
func yieldBackends(f *routing.Forward, yield func(routing.Backend) bool) bool {
	if !yieldMirrors(f.Filters, yield) {
		return false
	}
	for i := range f.Backends {
		b := &f.Backends[i]
		if b.Status == 0 && !yield(b.Backend) || !yieldMirrors(b.Filters, yield) {
			return false
		}
	}
	return true
}

// yieldMirrors reports whether to continue.
func yieldMirrors(f *routing.Filters, yield func(routing.Backend) bool) bool {
	return f == nil || !slices.ContainsFunc(f.Mirrors, func(m routing.Mirror) bool { return !yield(m.Backend) })
}
