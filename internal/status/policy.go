package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
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
	var entries []gatewayv1.PolicyAncestorStatus
	if desired.Ancestor != nil {
		entries = append(entries, *desired.Ancestor)
	}
	m := ancestorMerge{desired.Namespace, owners, controller, conditions.PolicyTypes, now}
	return m.merge(current, entries)
}

// MergeAccessPolicy is like [MergePolicy] for an AccessPolicy, which can have several
// entries: a target without a managed Gateway is its own ancestor.
func MergeAccessPolicy(current []gatewayv1.PolicyAncestorStatus, desired gateway.AccessPolicyStatus,
	owners map[gateway.Owner]bool, controller gatewayv1.GatewayController, now metav1.Time,
) ([]gatewayv1.PolicyAncestorStatus, bool) {
	m := ancestorMerge{desired.Namespace, owners, controller, conditions.AccessPolicyTypes, now}
	return m.merge(current, desired.Ancestors)
}

// ancestorMerge merges the entries in a policy's status.
type ancestorMerge struct {
	namespace  string // of the policy
	owners     map[gateway.Owner]bool
	controller gatewayv1.GatewayController
	types      []conditions.Type
	now        metav1.Time
}

func (m ancestorMerge) merge(current, desired []gatewayv1.PolicyAncestorStatus) ([]gatewayv1.PolicyAncestorStatus, bool) {
	merged := make([]gatewayv1.PolicyAncestorStatus, 0, len(current)+len(desired))
	isMerged := map[gateway.Owner]bool{}
	for _, entry := range current {
		owner, _ := gateway.OwnerOf(entry.AncestorRef, m.namespace)
		if entry.ControllerName != m.controller || !m.owners[owner] {
			merged = append(merged, entry)
			continue
		}
		wanted := slices.IndexFunc(desired, func(d gatewayv1.PolicyAncestorStatus) bool { return m.owner(d) == owner })
		if wanted >= 0 && !isMerged[owner] {
			merged, isMerged[owner] = append(merged, m.mergeEntry(entry, desired[wanted])), true
		}
	}
	for _, entry := range desired {
		if owner := m.owner(entry); !isMerged[owner] && len(merged) < gateway.MaxAncestors {
			merged, isMerged[owner] = append(merged, m.mergeEntry(gatewayv1.PolicyAncestorStatus{}, entry)), true
		}
	}
	return merged, !equality.Semantic.DeepEqual(current, merged)
}

// owner returns the Gateway or ListenerSet that the entry is about.
func (m ancestorMerge) owner(entry gatewayv1.PolicyAncestorStatus) gateway.Owner {
	owner, _ := gateway.OwnerOf(entry.AncestorRef, m.namespace)
	return owner
}

func (m ancestorMerge) mergeEntry(current, desired gatewayv1.PolicyAncestorStatus) gatewayv1.PolicyAncestorStatus {
	if hasNewerGeneration(current.Conditions, desired.Conditions) {
		return current
	}
	desired.ControllerName = m.controller
	retained := withoutUndesired(m.types, current.Conditions, desired.Conditions)
	desired.Conditions = mergeConditions(retained, desired.Conditions, m.now)
	return desired
}

// withoutUndesired removes current conditions that have one of the types and are not
// desired. Only this controller writes its entries.
func withoutUndesired(types []conditions.Type, current, desired []metav1.Condition) []metav1.Condition {
	for _, t := range types {
		if t.Find(desired) == nil && t.Find(current) != nil {
			current = slices.DeleteFunc(slices.Clone(current), func(c metav1.Condition) bool { return c.Type == t.String() })
		}
	}
	return current
}

func (w *Writer) policyWrite(policy gateway.PolicyStatus, owners map[gateway.Owner]bool) write {
	desired := policyReport{policy, owners}
	return newWrite(w, nameOfPolicy(policy), desired, func(p *gatewayv1.BackendTLSPolicy) (bool, []Change) {
		if policy.Ancestor != nil && isForNewerGeneration(p, policy.Ancestor.Conditions) {
			return false, nil
		}
		before := p.Status.Ancestors
		merged, changed := MergePolicy(before, policy, owners, w.ControllerName, w.now())
		p.Status.Ancestors = merged
		return changed, ancestorChanges(before, merged, w.ControllerName)
	})
}

func (w *Writer) accessPolicyWrite(policy gateway.AccessPolicyStatus, owners map[gateway.Owner]bool) write {
	desired := policyReport{policy, owners}
	return newWrite(w, nameOfAccessPolicy(policy), desired, func(p *v1alpha1.AccessPolicy) (bool, []Change) {
		for _, entry := range policy.Ancestors {
			if isForNewerGeneration(p, entry.Conditions) {
				return false, nil
			}
		}
		before := p.Status.Ancestors
		merged, changed := MergeAccessPolicy(before, policy, owners, w.ControllerName, w.now())
		p.Status.Ancestors = merged
		return changed, ancestorChanges(before, merged, w.ControllerName)
	})
}

// policyReport is a report's part about a policy: a [gateway.PolicyStatus] or a
// [gateway.AccessPolicyStatus].
type policyReport struct {
	Policy any
	Owners map[gateway.Owner]bool
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
		owner, _ := gateway.OwnerOf(entry.AncestorRef, "")
		found = append(found, changes(previous, entry.Conditions, owner.Kind+" "+owner.Name+": ")...)
	}
	return found
}
