package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Change is a status change that is reported as an event.
type Change struct {
	// Warning reports whether the condition now reports a problem.
	Warning bool
	// Reason is the condition's reason, or [conditions.EventResolved].
	Reason  string
	Message string
	// Orphaned reports whether a route has lost its last parent. No condition, and
	// therefore no Reason, describes this.
	Orphaned bool
}

// changes compares the conditions before and after an update. Each message begins with
// the prefix, which names a part of the object. Programmed causes no change, because it
// follows from the other conditions or from an update to the tunnel. The controller
// reports events for tunnel updates.
func changes(before, after []metav1.Condition, prefix string) []Change {
	var found []Change
	for _, t := range conditions.Types {
		if !t.CausesEvent() {
			continue
		}
		change, ok := conditionChange(t, t.Find(before), t.Find(after))
		if !ok || change.Reason == conditions.ReasonListenersNotValid.String() {
			continue // the listeners have their own events
		}
		change.Message = prefix + change.Message
		// A conflict affects several conditions, but needs only one event.
		if !slices.Contains(found, change) {
			found = append(found, change)
		}
	}
	return found
}

// conditionChange compares a condition before and after an update. Each can be nil. It
// returns false when the change needs no event.
func conditionChange(t conditions.Type, before, after *metav1.Condition) (Change, bool) {
	wasUnhealthy, unhealthy := isUnhealthy(t, before), isUnhealthy(t, after)
	switch {
	case unhealthy && (!wasUnhealthy || before.Reason != after.Reason):
		return Change{Warning: true, Reason: after.Reason, Message: after.Message}, true
	case !wasUnhealthy || unhealthy:
		return Change{}, false
	case after == nil:
		return Change{Reason: conditions.EventResolved.String(), Message: "No longer: " + before.Message}, true
	default:
		return Change{Reason: after.Reason, Message: after.Message}, true
	}
}

// isUnhealthy reports whether the condition exists and reports a problem.
func isUnhealthy(t conditions.Type, c *metav1.Condition) bool {
	return c != nil && c.Status != t.Expected() && c.Status != metav1.ConditionUnknown
}

// listenerChanges compares a Gateway's or ListenerSet's listeners.
func listenerChanges[S gatewayv1.ListenerStatus | gatewayv1.ListenerEntryStatus](before, after []S) []Change {
	var found []Change
	previous := gateway.ConditionsByListener(before)
	for i := range after {
		l := gatewayv1.ListenerStatus(after[i])
		found = append(found, changes(previous[l.Name], l.Conditions, fmt.Sprintf("Listener %q: ", l.Name))...)
	}
	return found
}

// parentChanges compares the controller's entries in a route's status.
func parentChanges(before, after []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController, namespace string) []Change {
	var found []Change
	for _, entry := range after {
		if entry.ControllerName != controller {
			continue
		}
		var previous []metav1.Condition
		for _, old := range before {
			if old.ControllerName == controller && equalRefs(old.ParentRef, entry.ParentRef, namespace) {
				previous = old.Conditions
			}
		}
		found = append(found, changes(previous, entry.Conditions, fmt.Sprintf("Parent %s: ", entry.ParentRef.Name))...)
	}
	return found
}

// orphanChanges returns the change for a route that loses its last entry from the
// controller, although its Gateway exists.
func orphanChanges(before, after []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController, orphan *gateway.Orphan) []Change {
	if orphan == nil || !losesLastEntry(before, after, controller) {
		return nil
	}
	return []Change{{Warning: true, Message: orphan.Message, Orphaned: true}}
}

// losesLastEntry reports whether only before contains an entry by the controller.
func losesLastEntry(before, after []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController) bool {
	isOwn := func(entry gatewayv1.RouteParentStatus) bool { return entry.ControllerName == controller }
	return slices.ContainsFunc(before, isOwn) && !slices.ContainsFunc(after, isOwn)
}
