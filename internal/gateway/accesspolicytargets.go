package gateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// KindAccessPolicy is the kind of AccessPolicies.
const KindAccessPolicy = "AccessPolicy"

// AccessPolicyStatus has the entries for a report's Gateways and ListenerSets in the status
// of one AccessPolicy.
type AccessPolicyStatus struct {
	types.NamespacedName
	// Ancestors is empty if the policy does not target the Gateway or its ListenerSets.
	Ancestors []gatewayv1.PolicyAncestorStatus
}

// TargetsOfAccessPolicy returns the Gateways and ListenerSets in the policy's targetRefs,
// each once. They are in the policy's namespace.
func TargetsOfAccessPolicy(policy *v1alpha1.AccessPolicy) []Owner {
	var targets []Owner
	for _, ref := range policy.Spec.TargetRefs {
		target := Owner{Kind: string(ref.Kind), NamespacedName: types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)}}
		isKnown := ref.Group == gatewayv1.GroupName && (target.Kind == KindGateway || target.Kind == KindListenerSet)
		if isKnown && !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	return targets
}
