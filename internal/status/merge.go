// Package status carries a gateway.Report to the objects: it merges what is to
// be said into what is there, and writes what changed. What is to be said is
// decided in package gateway.
package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// mergeConditions returns the current conditions with the wanted ones in
// place. Types that are not ours stay; an answer to an older generation than
// the one that is there is dropped. The transition time moves with the status
// value only.
func mergeConditions(current, wanted []metav1.Condition, now metav1.Time) []metav1.Condition {
	merged := slices.Clone(current)
	for _, condition := range wanted {
		existing := meta.FindStatusCondition(merged, condition.Type)
		if existing != nil && existing.ObservedGeneration > condition.ObservedGeneration {
			continue
		}
		condition.LastTransitionTime = now
		meta.SetStatusCondition(&merged, condition)
	}
	return merged
}

// withoutCondition drops a condition of ours that is no longer said.
func withoutCondition(current, wanted []metav1.Condition, kind string) []metav1.Condition {
	if meta.FindStatusCondition(wanted, kind) != nil {
		return current
	}
	return slices.DeleteFunc(slices.Clone(current), func(c metav1.Condition) bool { return c.Type == kind })
}

// hasNewerGeneration reports whether a condition that is wanted is there for a newer
// generation: then what is wanted is an answer that comes late.
func hasNewerGeneration(current, wanted []metav1.Condition) bool {
	return slices.ContainsFunc(wanted, func(w metav1.Condition) bool {
		existing := meta.FindStatusCondition(current, w.Type)
		return existing != nil && existing.ObservedGeneration > w.ObservedGeneration
	})
}

// MergeGateway returns the status of a Gateway with the wanted one in place,
// and whether that changes anything.
func MergeGateway(current, wanted gatewayv1.GatewayStatus, now metav1.Time) (gatewayv1.GatewayStatus, bool) {
	if hasNewerGeneration(current.Conditions, wanted.Conditions) {
		return current, false
	}
	merged := wanted
	ours := withoutCondition(current.Conditions, wanted.Conditions, gateway.TypeHostnameShared)
	ours = withoutCondition(ours, wanted.Conditions, gateway.TypeConnectorsReady)
	merged.Conditions = mergeConditions(ours, wanted.Conditions, now)
	merged.Listeners = slices.Clone(wanted.Listeners)
	for i := range merged.Listeners {
		l := &merged.Listeners[i]
		l.Conditions = mergeConditions(listenerConditions(current.Listeners, l.Name), l.Conditions, now)
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

func listenerConditions(listeners []gatewayv1.ListenerStatus, name gatewayv1.SectionName) []metav1.Condition {
	for _, l := range listeners {
		if l.Name == name {
			return l.Conditions
		}
	}
	return nil
}

// MergeListenerSet returns the status of a ListenerSet with the wanted one in
// place, and whether that changes anything.
func MergeListenerSet(current, wanted gatewayv1.ListenerSetStatus, now metav1.Time) (gatewayv1.ListenerSetStatus, bool) {
	if hasNewerGeneration(current.Conditions, wanted.Conditions) {
		return current, false
	}
	merged := wanted
	merged.Conditions = mergeConditions(current.Conditions, wanted.Conditions, now)
	merged.Listeners = slices.Clone(wanted.Listeners)
	for i := range merged.Listeners {
		l := &merged.Listeners[i]
		l.Conditions = mergeConditions(entryConditions(current.Listeners, l.Name), l.Conditions, now)
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

func entryConditions(entries []gatewayv1.ListenerEntryStatus, name gatewayv1.SectionName) []metav1.Condition {
	for _, e := range entries {
		if e.Name == name {
			return e.Conditions
		}
	}
	return nil
}

// MergeClass returns the status of a GatewayClass with the wanted one in
// place, and whether that changes anything.
func MergeClass(current, wanted gatewayv1.GatewayClassStatus, now metav1.Time) (gatewayv1.GatewayClassStatus, bool) {
	merged := wanted
	merged.Conditions = mergeConditions(current.Conditions, wanted.Conditions, now)
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

// MergeRoute returns the entries of a route's status with the wanted ones in
// place, and whether that changes anything. spec are the parentRefs of the
// object whose status is current.
//
// Entries of other controllers stay, and so do ours for the parents of other
// Gateways. Ours go when the spec has no such parentRef any more, or when the
// report speaks for their parent and has no entry for it.
func MergeRoute(current []gatewayv1.RouteParentStatus, spec []gatewayv1.ParentReference, wanted gateway.RouteStatus,
	owners map[gateway.Owner]bool, controller gatewayv1.GatewayController, now metav1.Time,
) ([]gatewayv1.RouteParentStatus, bool) {
	merged := make([]gatewayv1.RouteParentStatus, 0, len(current)+len(wanted.Parents))
	for _, entry := range current {
		mine := entry.ControllerName == controller
		owner, _ := gateway.OwnerOf(entry.ParentRef, wanted.Namespace)
		i := indexOfParent(wanted.Parents, entry.ParentRef, wanted.Namespace)
		switch {
		case !mine:
			merged = append(merged, entry)
		case !refersTo(spec, entry.ParentRef, wanted.Namespace), i < 0 && owners[owner]:
			continue
		case i < 0:
			merged = append(merged, entry)
		default:
			merged = append(merged, mergeEntry(entry, wanted.Parents[i], now))
		}
	}
	for _, entry := range wanted.Parents {
		known := slices.ContainsFunc(merged, func(m gatewayv1.RouteParentStatus) bool {
			return m.ControllerName == controller && equalRefs(m.ParentRef, entry.ParentRef, wanted.Namespace)
		})
		if !known && refersTo(spec, entry.ParentRef, wanted.Namespace) {
			merged = append(merged, mergeEntry(gatewayv1.RouteParentStatus{}, entry, now))
		}
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

func mergeEntry(current, wanted gatewayv1.RouteParentStatus, now metav1.Time) gatewayv1.RouteParentStatus {
	if hasNewerGeneration(current.Conditions, wanted.Conditions) {
		return current
	}
	kept := withoutCondition(current.Conditions, wanted.Conditions, string(gatewayv1.RouteConditionPartiallyInvalid))
	wanted.Conditions = mergeConditions(kept, wanted.Conditions, now)
	return wanted
}

func refersTo(spec []gatewayv1.ParentReference, ref gatewayv1.ParentReference, namespace string) bool {
	return slices.ContainsFunc(spec, func(s gatewayv1.ParentReference) bool { return equalRefs(s, ref, namespace) })
}

func indexOfParent(entries []gatewayv1.RouteParentStatus, ref gatewayv1.ParentReference, namespace string) int {
	return slices.IndexFunc(entries, func(e gatewayv1.RouteParentStatus) bool { return equalRefs(e.ParentRef, ref, namespace) })
}

// equalRefs compares what two parentRefs of an object in the namespace mean,
// defaults filled in.
func equalRefs(a, b gatewayv1.ParentReference, namespace string) bool {
	here := gatewayv1.Namespace(namespace)
	return a.Name == b.Name &&
		ptr.Deref(a.Group, gatewayv1.GroupName) == ptr.Deref(b.Group, gatewayv1.GroupName) &&
		ptr.Deref(a.Kind, gateway.KindGateway) == ptr.Deref(b.Kind, gateway.KindGateway) &&
		ptr.Deref(a.Namespace, here) == ptr.Deref(b.Namespace, here) &&
		ptr.Equal(a.SectionName, b.SectionName) &&
		ptr.Equal(a.Port, b.Port)
}
