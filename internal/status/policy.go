package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// MergePolicy merges the desired entry into the current entries in a BackendTLSPolicy's
// status, and reports whether the status changes. owners are the [gateway.Report.Owners].
//
// Entries by other controllers and for other Gateways remain. If the status is full, no
// entry is added: the Gateway's next reconcile finds that it cannot implement the policy.
func MergePolicy(current []gatewayv1.PolicyAncestorStatus, desired gateway.PolicyStatus,
	owners map[gateway.Owner]bool, controller gatewayv1.GatewayController, now metav1.Time,
) ([]gatewayv1.PolicyAncestorStatus, bool) {
	merged := make([]gatewayv1.PolicyAncestorStatus, 0, len(current)+1)
	isMerged := false
	for _, entry := range current {
		owner, _ := gateway.AncestorOfPolicy(entry.AncestorRef, desired.Namespace)
		switch {
		case entry.ControllerName != controller || !owners[owner]:
			merged = append(merged, entry)
		case desired.Ancestor == nil || isMerged:
			continue
		default:
			merged, isMerged = append(merged, mergeAncestor(entry, *desired.Ancestor, now)), true
		}
	}
	if desired.Ancestor != nil && !isMerged && len(merged) < gateway.MaxAncestors {
		merged = append(merged, mergeAncestor(gatewayv1.PolicyAncestorStatus{}, *desired.Ancestor, now))
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

func mergeAncestor(current, desired gatewayv1.PolicyAncestorStatus, now metav1.Time) gatewayv1.PolicyAncestorStatus {
	if hasNewerGeneration(current.Conditions, desired.Conditions) {
		return current
	}
	retained := withoutOptional(conditions.PolicyTypes, current.Conditions, desired.Conditions)
	desired.Conditions = mergeConditions(retained, desired.Conditions, now)
	return desired
}

func (w *Writer) policyWrite(policy gateway.PolicyStatus, owners map[gateway.Owner]bool) write {
	desired := policyReport{policy.Ancestor, owners}
	return newWrite(w, objectName{gateway.KindBackendTLSPolicy, policy.NamespacedName}, desired, func(p *gatewayv1.BackendTLSPolicy) (bool, []Change) {
		if policy.Ancestor != nil && isForNewerGeneration(p, policy.Ancestor.Conditions) {
			return false, nil
		}
		before := p.Status.Ancestors
		merged, changed := MergePolicy(before, policy, owners, w.ControllerName, w.now())
		p.Status.Ancestors = merged
		return changed, ancestorChanges(before, merged, w.ControllerName)
	})
}

// policyReport is a report's part about a policy.
type policyReport struct {
	Ancestor *gatewayv1.PolicyAncestorStatus
	Owners   map[gateway.Owner]bool
}

// ancestorChanges compares the controller's entries in a policy's status.
func ancestorChanges(before, after []gatewayv1.PolicyAncestorStatus, controller gatewayv1.GatewayController) []Change {
	var found []Change
	for _, entry := range after {
		if entry.ControllerName != controller {
			continue
		}
		var previous []metav1.Condition
		i := slices.IndexFunc(before, func(old gatewayv1.PolicyAncestorStatus) bool {
			return old.ControllerName == controller && equality.Semantic.DeepEqual(old.AncestorRef, entry.AncestorRef)
		})
		if i >= 0 {
			previous = before[i].Conditions
		}
		found = append(found, changes(previous, entry.Conditions, "Gateway "+string(entry.AncestorRef.Name)+": ")...)
	}
	return found
}
