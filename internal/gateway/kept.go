package gateway

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// kept has what a Result has returned and what stays the same until the next decision that
// is made from scratch. A Result without a [Memory] has none.
type kept struct {
	// routes are the statuses by rank. outdated are the ranks of routes that have changed
	// since.
	routes   []*RouteStatus
	outdated []int
	// hasTimestamps reports whether every owner of listeners has a creation time.
	hasTimestamps bool
	sets          map[*Set]keptSet
	// The others are nil until they are needed.
	hostnames       []string
	dnsHostnames    []DNSHostname
	recordHostnames []dns.Hostname // of an accepted Gateway with its configuration in effect
	accessHostnames []access.Hostname
}

// keptSet is the status of a ListenerSet without hostnames that have conditions, and
// everything that affects it and can differ from report to report.
type keptSet struct {
	inputs setInputs
	status ListenerSetStatus
}

type setInputs struct {
	push                   Push
	keepsDNS, knowsDemands bool
	demandsUnknown         bool
}

// keep returns the known value, or a new one, which it keeps unless k is nil. Callers do not
// change it.
func keep[T any](k *kept, field func(*kept) *[]T, list func() []T) []T {
	if k == nil {
		return list()
	}
	known := field(k)
	if *known == nil {
		*known = slices.Clip(list())
	}
	return *known
}

// routeStatuses returns the statuses of all routes. With a [Memory], unchanged statuses are
// the same as in the last report.
func (r *Result) routeStatuses() []*RouteStatus {
	k := r.kept
	if k != nil && len(k.routes) == len(r.Routes) {
		if len(k.outdated) > 0 {
			k.routes = slices.Clone(k.routes)
			for _, rank := range k.outdated {
				k.routes[rank] = r.routeStatus(r.Routes[rank])
			}
			k.outdated = nil
		}
		return k.routes
	}
	statuses := slices.Grow([]*RouteStatus(nil), len(r.Routes))
	for _, route := range r.Routes {
		statuses = append(statuses, route.orReported(r.routeStatus(route)))
		route.reported = nil
	}
	if k != nil {
		k.routes, k.outdated = statuses, nil
	}
	return statuses
}

// listenerSetStatus returns the status of the set. With a [Memory], it is the same as in the
// last report if nothing has changed, unless conditions describe hostnames of the set.
func (r *Result) listenerSetStatus(set *Set, push Push, reports hostnameReports) ListenerSetStatus {
	inputs := setInputs{push, reports.dns.keep, reports.access.accessTable != nil, r.Demanded.Unknown}
	keeps := r.kept != nil && len(reports.dns.byOwner[set.Owner])+len(reports.access.byOwner[set.Owner]) == 0
	if keeps {
		if known, ok := r.kept.sets[set]; ok && known.inputs == inputs {
			return known.status
		}
	}
	status := ListenerSetStatus{set.Owner.NamespacedName, r.setStatus(set, push, reports)}
	if keeps {
		r.kept.sets[set] = keptSet{inputs, status}
	}
	return status
}

// forgetTimes forgets the lists with creation times if the decision is made at another time:
// an object without a timestamp is created now.
func (k *kept) forgetTimes(before, after time.Time) {
	if !before.Equal(after) && !k.hasTimestamps {
		k.dnsHostnames, k.recordHostnames, k.accessHostnames = nil, nil, nil
	}
}

// haveTimestamps reports whether the Gateway and the ListenerSets have a creation time.
func (r *Result) haveTimestamps() bool {
	return !r.gateway.CreationTimestamp.IsZero() && !slices.ContainsFunc(r.Sets, func(s *Set) bool { return s.object.CreationTimestamp.IsZero() })
}
