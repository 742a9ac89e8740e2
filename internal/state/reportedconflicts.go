package state

import (
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// conflictReasons are the reasons for which a listener loses against another owner's.
var conflictReasons = []conditions.Reason{
	conditions.ReasonHostnameConflict, conditions.ReasonProtocolConflict, conditions.ReasonPortUnavailable,
}

// ReportedConflicts returns the conflicts in the statuses of the cluster's ListenerSets, as
// far as the statuses are current and the manifests do not change the listener. It returns
// nil if all ListenerSets were read, so that a decision finds the conflicts itself.
func (s *Source) ReportedConflicts() map[gateway.Owner]map[gatewayv1.SectionName]*gateway.Problem {
	if !s.Incomplete(kinds.ListenerSet) {
		return nil
	}
	present := map[gateway.Owner]*gatewayv1.ListenerSet{}
	for _, object := range s.Objects {
		if set, ok := object.(*gatewayv1.ListenerSet); ok {
			present[ownerOfSet(set)] = set
		}
	}
	all := map[gateway.Owner]map[gatewayv1.SectionName]*gateway.Problem{}
	for _, object := range s.unchanged {
		set, ok := object.(*gatewayv1.ListenerSet)
		if !ok || present[ownerOfSet(set)] == nil {
			continue
		}
		if problems := reportedConflicts(set, present[ownerOfSet(set)]); len(problems) > 0 {
			all[ownerOfSet(set)] = problems
		}
	}
	return all
}

func ownerOfSet(set *gatewayv1.ListenerSet) gateway.Owner {
	return gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}
}

// reportedConflicts returns the conflicts in the cluster's ListenerSet for the listeners
// that the changed ListenerSet has too.
func reportedConflicts(set, changed *gatewayv1.ListenerSet) map[gatewayv1.SectionName]*gateway.Problem {
	problems := map[gatewayv1.SectionName]*gateway.Problem{}
	for _, entry := range set.Status.Listeners {
		accepted := conditions.TypeAccepted.Find(entry.Conditions)
		if accepted == nil || accepted.ObservedGeneration != set.Generation {
			continue
		}
		i := slices.IndexFunc(conflictReasons, func(r conditions.Reason) bool { return r.Is(accepted) })
		if i >= 0 && hasEqualListener(set, changed, entry.Name) {
			problems[entry.Name] = &gateway.Problem{Reason: conflictReasons[i], Message: accepted.Message}
		}
	}
	return problems
}

// hasEqualListener reports whether both ListenerSets have the listener with the same
// hostname, port and protocol.
func hasEqualListener(a, b *gatewayv1.ListenerSet, name gatewayv1.SectionName) bool {
	find := func(set *gatewayv1.ListenerSet) *gatewayv1.ListenerEntry {
		i := slices.IndexFunc(set.Spec.Listeners, func(l gatewayv1.ListenerEntry) bool { return l.Name == name })
		if i < 0 {
			return nil
		}
		return &set.Spec.Listeners[i]
	}
	one, other := find(a), find(b)
	return one != nil && other != nil && one.Port == other.Port && one.Protocol == other.Protocol &&
		ptr.Equal(one.Hostname, other.Hostname)
}
