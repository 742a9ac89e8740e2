package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Change is a step in an object's state that a person should see.
type Change struct {
	// Warning is whether it became worse.
	Warning bool
	Reason  string
	Message string
}

// eventConditions are the types of conditions whose steps are told. Programmed is not
// among them: it follows from these, or from the push, which is told where it
// happens.
var eventConditions = []string{
	string(gatewayv1.ListenerConditionConflicted),
	string(gatewayv1.GatewayConditionAccepted),
	string(gatewayv1.ListenerConditionResolvedRefs),
	string(gatewayv1.RouteConditionPartiallyInvalid),
	gateway.TypeHostnameShared,
}

// changes compares the conditions before and after a write. Each message
// begins with the subject, the part of the object that it is about.
func changes(before, after []metav1.Condition, subject string) []Change {
	var found []Change
	for _, kind := range eventConditions {
		change, ok := conditionChange(meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind))
		if !ok || change.Reason == string(gatewayv1.GatewayReasonListenersNotValid) {
			continue // the listeners tell it themselves
		}
		change.Message = subject + change.Message
		// A conflict shows in several conditions, and is told once.
		if !slices.Contains(found, change) {
			found = append(found, change)
		}
	}
	return found
}

// conditionChange returns what to tell of one condition, and false when nothing.
func conditionChange(was, is *metav1.Condition) (Change, bool) {
	wasBad, bad := isUnhealthy(was), isUnhealthy(is)
	switch {
	case bad && (!wasBad || was.Reason != is.Reason):
		return Change{Warning: true, Reason: is.Reason, Message: is.Message}, true
	case !wasBad || bad:
		return Change{}, false
	case is == nil:
		return Change{Reason: "Resolved", Message: "No longer: " + was.Message}, true
	default:
		return Change{Reason: is.Reason, Message: is.Message}, true
	}
}

// isUnhealthy reports whether a condition is said and is not in its good state.
func isUnhealthy(c *metav1.Condition) bool {
	return c != nil && c.Status != gateway.ExpectedStatus(c.Type) && c.Status != metav1.ConditionUnknown
}

// listenerChanges compares the listeners of a Gateway.
func listenerChanges(before, after []gatewayv1.ListenerStatus) []Change {
	var found []Change
	for _, l := range after {
		found = append(found, changes(listenerConditions(before, l.Name), l.Conditions, fmt.Sprintf("Listener %q: ", l.Name))...)
	}
	return found
}

// entryChanges compares the listeners of a ListenerSet.
func entryChanges(before, after []gatewayv1.ListenerEntryStatus) []Change {
	var found []Change
	for _, l := range after {
		found = append(found, changes(entryConditions(before, l.Name), l.Conditions, fmt.Sprintf("Listener %q: ", l.Name))...)
	}
	return found
}

// parentChanges compares our entries in a route's status.
func parentChanges(before, after []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController, namespace string) []Change {
	var found []Change
	for _, entry := range after {
		if entry.ControllerName != controller {
			continue
		}
		var was []metav1.Condition
		for _, old := range before {
			if old.ControllerName == controller && equalRefs(old.ParentRef, entry.ParentRef, namespace) {
				was = old.Conditions
			}
		}
		found = append(found, changes(was, entry.Conditions, fmt.Sprintf("Parent %s: ", entry.ParentRef.Name))...)
	}
	return found
}
