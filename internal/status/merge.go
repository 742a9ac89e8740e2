// Package status writes a gateway.Report to the API server. It merges the report into the
// objects' current statuses, and updates the statuses that change. Package gateway
// decides what the report contains.
package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// mergeConditions merges the desired conditions into the current conditions. Conditions
// with other types remain. A desired condition for an older generation than the current
// condition is ignored. The transition time changes only when the status value changes.
func mergeConditions(current, desired []metav1.Condition, now metav1.Time) []metav1.Condition {
	if !slices.ContainsFunc(desired, func(c metav1.Condition) bool { return changesCondition(current, c) }) {
		return current // most statuses are up to date, and thousands are compared
	}
	merged := slices.Clone(current)
	for _, condition := range desired {
		existing := meta.FindStatusCondition(merged, condition.Type)
		if existing != nil && existing.ObservedGeneration > condition.ObservedGeneration {
			continue
		}
		condition.LastTransitionTime = now
		meta.SetStatusCondition(&merged, condition)
	}
	return merged
}

// changesCondition reports whether the desired condition differs from the current
// condition with its type.
func changesCondition(current []metav1.Condition, desired metav1.Condition) bool {
	existing := meta.FindStatusCondition(current, desired.Type)
	if existing == nil {
		return true
	}
	desired.LastTransitionTime = existing.LastTransitionTime
	return *existing != desired
}

// withoutOptional removes current conditions with an optional type that are not desired.
func withoutOptional(types []conditions.Type, current, desired []metav1.Condition) []metav1.Condition {
	for _, t := range types {
		if t.IsOptional() && t.Find(desired) == nil && t.Find(current) != nil {
			current = slices.DeleteFunc(slices.Clone(current), func(c metav1.Condition) bool { return c.Type == t.String() })
		}
	}
	return current
}

// hasNewerGeneration reports whether a current condition is for a newer generation than
// the desired conditions, and a desired condition has its type. The desired conditions
// are then outdated. A desired condition that was kept from an older generation is not
// considered.
func hasNewerGeneration(current, desired []metav1.Condition) bool {
	generation := int64(0)
	for _, w := range desired {
		generation = max(generation, w.ObservedGeneration)
	}
	return slices.ContainsFunc(desired, func(w metav1.Condition) bool {
		existing := meta.FindStatusCondition(current, w.Type)
		return existing != nil && existing.ObservedGeneration > generation
	})
}

// MergeGateway merges the desired status into a Gateway's current status, and reports
// whether the status changes.
func MergeGateway(current, desired gatewayv1.GatewayStatus, now metav1.Time) (gatewayv1.GatewayStatus, bool) {
	if hasNewerGeneration(current.Conditions, desired.Conditions) {
		return current, false
	}
	merged := desired
	retained := withoutOptional(conditions.GatewayTypes, current.Conditions, desired.Conditions)
	merged.Conditions = mergeConditions(retained, desired.Conditions, now)
	merged.Listeners = slices.Clone(desired.Listeners)
	existing := gateway.ConditionsByListener(current.Listeners)
	for i := range merged.Listeners {
		l := &merged.Listeners[i]
		l.Conditions = mergeConditions(existing[l.Name], l.Conditions, now)
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

// MergeListenerSet merges the desired status into a ListenerSet's current status, and
// reports whether the status changes. A set that is not allowed has no desired entries:
// its entries are removed, except for conditions with other types.
func MergeListenerSet(current, desired gatewayv1.ListenerSetStatus, now metav1.Time) (gatewayv1.ListenerSetStatus, bool) {
	if hasNewerGeneration(current.Conditions, desired.Conditions) {
		return current, false
	}
	merged := desired
	retained := withoutOptional(conditions.ListenerSetTypes, current.Conditions, desired.Conditions)
	merged.Conditions = mergeConditions(retained, desired.Conditions, now)
	if len(desired.Listeners) == 0 {
		merged.Listeners = entriesOfOthers(current.Listeners)
		return merged, !equality.Semantic.DeepEqual(current, merged)
	}
	merged.Listeners = slices.Clone(desired.Listeners)
	existing := gateway.ConditionsByListener(current.Listeners)
	for i := range merged.Listeners {
		l := &merged.Listeners[i]
		l.Conditions = mergeConditions(existing[l.Name], l.Conditions, now)
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

// entriesOfOthers returns the entries that contain other controllers' conditions, without
// what this controller has written.
func entriesOfOthers(current []gatewayv1.ListenerEntryStatus) []gatewayv1.ListenerEntryStatus {
	var entries []gatewayv1.ListenerEntryStatus
	for _, entry := range current {
		others := slices.DeleteFunc(slices.Clone(entry.Conditions), isEntryCondition)
		if len(others) > 0 {
			entries = append(entries, gatewayv1.ListenerEntryStatus{
				Name: entry.Name, SupportedKinds: []gatewayv1.RouteGroupKind{}, Conditions: others,
			})
		}
	}
	return entries
}

// isEntryCondition reports whether the controller writes conditions with the type to
// ListenerSet entries.
func isEntryCondition(c metav1.Condition) bool {
	return slices.ContainsFunc(conditions.ListenerSetEntryTypes, func(t conditions.Type) bool { return t.String() == c.Type })
}

// MergeClass merges the desired status into a GatewayClass's current status, and reports
// whether the status changes.
func MergeClass(current, desired gatewayv1.GatewayClassStatus, now metav1.Time) (gatewayv1.GatewayClassStatus, bool) {
	merged := desired
	merged.Conditions = mergeConditions(current.Conditions, desired.Conditions, now)
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

// MergeRoute merges the desired entries into the current entries in a route's status, and
// reports whether the status changes. spec has the route's parentRefs, and owners are the
// [gateway.Report.Owners].
//
// Entries by other controllers remain. An entry by this controller also remains if the
// report does not cover its parent. Other entries by this controller are removed when the
// spec no longer contains the parentRef or the report has no entry for it.
func MergeRoute(current []gatewayv1.RouteParentStatus, spec []gatewayv1.ParentReference, desired *gateway.RouteStatus,
	owners map[gateway.Owner]bool, controller gatewayv1.GatewayController, now metav1.Time,
) ([]gatewayv1.RouteParentStatus, bool) {
	merged := make([]gatewayv1.RouteParentStatus, 0, len(current)+len(desired.Parents))
	for _, entry := range current {
		owner, _ := gateway.OwnerOf(entry.ParentRef, desired.Namespace)
		i := indexOfParent(desired.Parents, entry.ParentRef, desired.Namespace)
		switch {
		case entry.ControllerName != controller:
			merged = append(merged, entry)
		case !refersTo(spec, entry.ParentRef, desired.Namespace), i < 0 && owners[owner]:
			continue
		case i < 0:
			merged = append(merged, entry)
		default:
			merged = append(merged, mergeEntry(entry, desired.Parents[i], now))
		}
	}
	for _, entry := range desired.Parents {
		exists := slices.ContainsFunc(merged, func(m gatewayv1.RouteParentStatus) bool {
			return m.ControllerName == controller && equalRefs(m.ParentRef, entry.ParentRef, desired.Namespace)
		})
		if !exists && refersTo(spec, entry.ParentRef, desired.Namespace) {
			merged = append(merged, mergeEntry(gatewayv1.RouteParentStatus{}, entry, now))
		}
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

func mergeEntry(current, desired gatewayv1.RouteParentStatus, now metav1.Time) gatewayv1.RouteParentStatus {
	if hasNewerGeneration(current.Conditions, desired.Conditions) {
		return current
	}
	retained := withoutOptional(conditions.RouteTypes, current.Conditions, desired.Conditions)
	desired.Conditions = mergeConditions(retained, desired.Conditions, now)
	return desired
}

func refersTo(spec []gatewayv1.ParentReference, ref gatewayv1.ParentReference, namespace string) bool {
	return slices.ContainsFunc(spec, func(s gatewayv1.ParentReference) bool { return equalRefs(s, ref, namespace) })
}

func indexOfParent(entries []gatewayv1.RouteParentStatus, ref gatewayv1.ParentReference, namespace string) int {
	return slices.IndexFunc(entries, func(e gatewayv1.RouteParentStatus) bool { return equalRefs(e.ParentRef, ref, namespace) })
}

// equalRefs reports whether two parentRefs in the object's spec are equal after
// defaulting. namespace is the object's namespace.
func equalRefs(a, b gatewayv1.ParentReference, namespace string) bool {
	defaultNamespace := gatewayv1.Namespace(namespace)
	return a.Name == b.Name &&
		ptr.Deref(a.Group, gatewayv1.GroupName) == ptr.Deref(b.Group, gatewayv1.GroupName) &&
		ptr.Deref(a.Kind, gateway.KindGateway) == ptr.Deref(b.Kind, gateway.KindGateway) &&
		ptr.Deref(a.Namespace, defaultNamespace) == ptr.Deref(b.Namespace, defaultNamespace) &&
		ptr.Equal(a.SectionName, b.SectionName) &&
		ptr.Equal(a.Port, b.Port)
}
