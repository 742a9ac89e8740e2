package dns

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// quotaInterval is how often the zone's quota is read at most, and how long no record is
// created after Cloudflare has refused one because of the quota.
const quotaInterval = 10 * time.Minute

// free returns how many records can be created in the zone. The last tenth of its quota
// remains free for others.
func (s *situation) free() int {
	usage := s.Memory.usage
	switch {
	case usage.full.IsSet() && s.Uptime < usage.full.at+quotaInterval:
		return 0
	case usage.quota == 0:
		return math.MaxInt
	}
	return usage.quota - (usage.quota+9)/10 - s.view.total
}

func (s *situation) quotaMessage() string {
	return "the zone's record quota is used up, apart from the tenth that the controller leaves free. Delete records, or raise the quota of zone " + s.Zone + "."
}

// withinLimits returns the changes, without any that would give a namespace more than
// maxRecordsPerNamespace records in the zone. The youngest hostnames exceed the limit.
func (a *agenda) withinLimits(changes []change) []change {
	records := a.recordsByNamespace()
	a.records, a.counted = records, map[string]bool{}
	limit := a.class.Settings.MaxRecordsPerNamespace
	additions, within := []change{}, []change{}
	for _, c := range changes {
		if c.Operation == Create || c.Operation == Move && c.namespace != a.Memory.traces[c.Name].namespace {
			additions = append(additions, c)
		} else {
			within = append(within, c)
		}
	}
	slices.SortFunc(additions, func(x, y change) int {
		return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.Name, y.Name))
	})
	for _, c := range additions {
		if records[c.namespace] >= limit {
			a.wait(c, conditions.ReasonQuotaExceeded, fmt.Sprintf("the listeners of namespace %s have %d records in zone %s, and dns.maxRecordsPerNamespace is %d. "+
				"Remove other hostnames, or ask the platform team to raise the limit.", c.namespace, records[c.namespace], a.Zone, limit))
			continue
		}
		records[c.namespace]++
		a.counted[c.Name] = true
		within = append(within, c)
	}
	return within
}

// mayProtect reports whether the record may be created before the change, and counts it.
// Protection from another namespace's change ignores the limit. Otherwise, a namespace
// could exceed it by giving up a wildcard.
func (a *agenda) mayProtect(before, create change) bool {
	if a.counted[create.Name] {
		return true
	}
	if create.namespace == before.namespace && a.records[create.namespace] >= a.class.Settings.MaxRecordsPerNamespace {
		return false
	}
	a.records[create.namespace]++
	a.counted[create.Name] = true
	return true
}

// recordsByNamespace counts the records with a valid mark by the namespace that claims
// their hostname, or did last. Records that no listener has claimed since the process
// started count for none.
func (s *situation) recordsByNamespace() map[string]int {
	records := map[string]int{}
	for name, t := range s.Memory.traces {
		if set := s.view.set(name); set != nil && set.marked {
			records[t.namespace]++
		}
	}
	return records
}

// rank is the order of changes in a batch's fields and among batches. Records that no
// namespace has claimed since the start are deleted first.
func (c change) rank() int {
	switch c.Operation {
	case Create:
		return 0
	case Adopt:
		return 1
	case Move:
		return 2
	case Repair:
		return 3
	case Release:
		return 4
	default: // Delete
		if c.namespace == "" {
			return 5
		}
		return 6
	}
}

// inTurns returns the changes in an order in which the namespaces take turns. The
// namespace whose last turn is the longest ago begins.
func (s *situation) inTurns(changes []change) []change {
	order := make(map[string]int, len(s.Memory.turns))
	for i, namespace := range s.Memory.turns {
		order[namespace] = i + 1
	}
	sorted := slices.Clone(changes)
	slices.SortFunc(sorted, func(x, y change) int {
		return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.Name, y.Name))
	})
	type turn struct {
		rank      int
		namespace string
	}
	rounds, taken := make(map[string]int, len(sorted)), map[turn]int{}
	for _, c := range sorted {
		t := turn{c.rank(), c.namespace}
		rounds[c.Name] = taken[t]
		taken[t]++
	}
	slices.SortStableFunc(sorted, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(rounds[x.Name], rounds[y.Name]),
			cmp.Compare(order[x.namespace], order[y.namespace]), cmp.Compare(x.namespace, y.namespace))
	})
	return sorted
}

// afterTurns returns the namespaces in the order of their last turn, after the changes
// were made.
func afterTurns(turns []string, changes []change) []string {
	took := map[string]bool{}
	var latest []string
	for _, c := range changes {
		if !took[c.namespace] {
			took[c.namespace] = true
			latest = append(latest, c.namespace)
		}
	}
	earlier := slices.DeleteFunc(slices.Clone(turns), func(namespace string) bool { return took[namespace] })
	return append(earlier, latest...)
}
