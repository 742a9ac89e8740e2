package access

import (
	"cmp"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// inTurns returns the changes in an order in which the namespaces take turns, for demands of the
// GatewayClass those whose listeners claim the hostnames. The namespace whose last turn is the
// longest ago begins.
func (s *situation) inTurns(changes []*change) []*change {
	order := make(map[limits.Tenant]int, len(s.Memory.turns))
	for i, tenant := range s.Memory.turns {
		order[tenant] = i + 1
	}
	sorted := slices.Clone(changes)
	slices.SortFunc(sorted, func(x, y *change) int {
		return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.key, y.key))
	})
	type turn struct {
		rank   int
		tenant limits.Tenant
	}
	rounds, taken := make(map[string]int, len(sorted)), map[turn]int{}
	for _, c := range sorted {
		t := turn{c.rank, c.turn}
		rounds[c.key] = taken[t]
		taken[t]++
	}
	slices.SortStableFunc(sorted, func(x, y *change) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(rounds[x.key], rounds[y.key]),
			cmp.Compare(order[x.turn], order[y.turn]), x.turn.Compare(y.turn))
	})
	return sorted
}

// afterTurns returns the namespaces in the order of their last turn, after the changes were
// made.
func afterTurns(turns []limits.Tenant, changes []*change) []limits.Tenant {
	took := map[limits.Tenant]bool{}
	var latest []limits.Tenant
	for _, c := range changes {
		if !took[c.turn] {
			took[c.turn] = true
			latest = append(latest, c.turn)
		}
	}
	earlier := slices.DeleteFunc(slices.Clone(turns), func(tenant limits.Tenant) bool { return took[tenant] })
	return append(earlier, latest...)
}
