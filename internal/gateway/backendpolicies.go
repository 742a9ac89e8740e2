package gateway

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
)

// KindBackendTLSPolicy is the kind of the policies for TLS to backends.
const KindBackendTLSPolicy = "BackendTLSPolicy"

// backendPolicies are the BackendTLSPolicies by what they target.
type backendPolicies struct {
	// all are in order of precedence: the oldest first, then by name.
	all      []*backendPolicy
	byTarget map[policyTarget]*backendPolicy
}

// policyTarget is a Service, or one of its ports by name.
type policyTarget struct {
	service types.NamespacedName
	port    string
}

// backendPolicy is one policy with the decision about it.
type backendPolicy struct {
	object *gatewayv1.BackendTLSPolicy
	name   types.NamespacedName
	// decided is set by [backendTLS.decide].
	decided policyDecision
}

// newBackendPolicies determines which policy takes precedence for each target: "The older
// policy by creation timestamp takes precedence." (BackendTLSPolicySpec.TargetRefs)
func newBackendPolicies(objects []*gatewayv1.BackendTLSPolicy) *backendPolicies {
	b := &backendPolicies{byTarget: map[policyTarget]*backendPolicy{}}
	for _, object := range objects {
		b.all = append(b.all, &backendPolicy{object: object, name: types.NamespacedName{Namespace: object.Namespace, Name: object.Name}})
	}
	slices.SortFunc(b.all, func(x, y *backendPolicy) int {
		return cmp.Or(cmp.Compare(ageOf(x.object.CreationTimestamp), ageOf(y.object.CreationTimestamp)), compareNames(x.name, y.name))
	})
	for _, p := range b.all {
		for _, target := range p.targets() {
			if b.byTarget[target] == nil {
				b.byTarget[target] = p
			}
		}
	}
	return b
}

// of returns the effective policy for a Service port, or nil. A policy for the port takes
// precedence over a policy for the Service.
func (b *backendPolicies) of(service types.NamespacedName, port string) *backendPolicy {
	if port != "" {
		if p := b.byTarget[policyTarget{service, port}]; p != nil {
			return p
		}
	}
	return b.byTarget[policyTarget{service: service}]
}

// targets returns what the policy targets.
func (p *backendPolicy) targets() []policyTarget {
	var targets []policyTarget
	for _, ref := range p.object.Spec.TargetRefs {
		if isService(ref.LocalPolicyTargetReference) {
			targets = append(targets, policyTarget{types.NamespacedName{Namespace: p.name.Namespace, Name: string(ref.Name)}, string(ptr.Deref(ref.SectionName, ""))})
		}
	}
	return targets
}

func isService(ref gatewayv1.LocalPolicyTargetReference) bool {
	return ref.Group == "" && ref.Kind == "Service"
}

// ServicesOfPolicy returns the Services that the policy targets.
func ServicesOfPolicy(policy *gatewayv1.BackendTLSPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range policy.Spec.TargetRefs {
		if isService(ref.LocalPolicyTargetReference) {
			names = append(names, types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)})
		}
	}
	return names
}

// exists reports whether the target exists.
func (t policyTarget) exists(services byname.Map[*corev1.Service]) bool {
	service := services.Value(t.service)
	return service != nil && (t.port == "" || slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Name == t.port && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "")
	}))
}

// AncestorOfPolicy returns the Gateway that an entry in a policy's status names, and false
// if it names another kind.
func AncestorOfPolicy(ref gatewayv1.ParentReference, namespace string) (Owner, bool) {
	owner, ok := OwnerOf(ref, namespace)
	return owner, ok && owner.Kind == KindGateway
}
