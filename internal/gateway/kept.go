package gateway

import (
	"reflect"
	"slices"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// kept has what a Result has returned, for later reports and decisions. A Result without a
// [Memory] has none.
type kept struct {
	// routes are the statuses by rank. outdated are the ranks of routes that have changed
	// since.
	routes   []*RouteStatus
	outdated []int
	// hasTimestamps reports whether every owner of listeners has a creation time.
	hasTimestamps bool
	sets          map[*Set]keptSet
	// reportedSets are the last reported statuses of ListenerSets.
	reportedSets map[Owner]ListenerSetStatus
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

// newKept returns what the decision keeps, with what the decision before has reported.
func (d *decision) newKept(before *earlier) *kept {
	k := &kept{sets: map[*Set]keptSet{}, reportedSets: make(map[Owner]ListenerSetStatus, len(d.Sets)), hasTimestamps: d.haveTimestamps()}
	if before != nil {
		for _, set := range d.Sets {
			if status, ok := before.sets[set.Owner]; ok {
				k.reportedSets[set.Owner] = status
			}
		}
	}
	return k
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
			var buffer []gatewayv1.RouteParentStatus
			for _, rank := range k.outdated {
				k.routes[rank] = r.routeStatus(r.Routes[rank], &buffer)
			}
			k.outdated = nil
		}
		return k.routes
	}
	statuses := slices.Grow([]*RouteStatus(nil), len(r.Routes))
	var buffer []gatewayv1.RouteParentStatus
	for _, route := range r.Routes {
		statuses = append(statuses, r.routeStatus(route, &buffer))
		route.reported = nil
	}
	if k != nil {
		k.routes, k.outdated = statuses, nil
	}
	return statuses
}

// listenerSetStatus returns the status of the set. With a [Memory], an unchanged status is the same
// as in the last report.
func (r *Result) listenerSetStatus(set *Set, push Push, reports hostnameReports) ListenerSetStatus {
	inputs := setInputs{push, reports.dns.keep, reports.access.accessTable != nil, r.Demanded.Unknown}
	keeps := r.kept != nil && len(reports.dns.byOwner[set.Owner])+len(reports.access.byOwner[set.Owner]) == 0
	if keeps {
		if known, ok := r.kept.sets[set]; ok && known.inputs == inputs {
			return known.status
		}
	}
	status := ListenerSetStatus{set.Owner.NamespacedName, r.setStatus(set, push, reports)}
	if r.kept != nil {
		status = r.kept.orReported(set, status)
	}
	if keeps {
		r.kept.sets[set] = keptSet{inputs, status}
	}
	return status
}

// orReported returns the set's status in the last report if it is the same.
func (k *kept) orReported(set *Set, status ListenerSetStatus) ListenerSetStatus {
	if before, ok := k.reportedSets[set.Owner]; ok && haveSameListeners(before.Status, status.Status) {
		return before
	}
	k.reportedSets[set.Owner] = status
	return status
}

func haveSameListeners(a, b gatewayv1.ListenerSetStatus) bool {
	return slices.Equal(a.Conditions, b.Conditions) && slices.EqualFunc(a.Listeners, b.Listeners, func(x, y gatewayv1.ListenerEntryStatus) bool {
		return x.Name == y.Name && x.AttachedRoutes == y.AttachedRoutes && slices.Equal(x.Conditions, y.Conditions) &&
			reflect.DeepEqual(x.SupportedKinds, y.SupportedKinds)
	})
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
