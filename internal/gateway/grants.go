package gateway

import (
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// grants are the ReferenceGrants by namespace.
type grants map[string][]*gatewayv1beta1.ReferenceGrant

func newGrants(objects []*gatewayv1beta1.ReferenceGrant) grants {
	g := make(grants, len(objects))
	for _, object := range objects {
		g[object.Namespace] = append(g[object.Namespace], object)
	}
	return g
}

// referrer identifies the objects that a grant permits: the Gateways, the
// ListenerSets or the routes of one kind in a namespace. A grant for one kind
// does not apply to another kind.
type referrer struct {
	kind, namespace string
}

// target is the object of the core API group that a reference names.
type target struct {
	kind, namespace, name string
}

// permits reports whether the reference is permitted. A reference within a
// namespace always is. A reference to another namespace requires a grant in the
// namespace of the target: "A ReferenceGrant is required for a cross-namespace
// reference [...] all cross-namespace references must be explicitly permitted."
func (g grants) permits(from referrer, to target) bool {
	if from.namespace == to.namespace {
		return true
	}
	return slices.ContainsFunc(g[to.namespace], func(grant *gatewayv1beta1.ReferenceGrant) bool {
		return matchesFrom(grant, from) && matchesTo(grant, to)
	})
}

func matchesFrom(grant *gatewayv1beta1.ReferenceGrant, from referrer) bool {
	return slices.ContainsFunc(grant.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
		return f.Group == gatewayv1.GroupName && string(f.Kind) == from.kind && string(f.Namespace) == from.namespace
	})
}

// matchesTo reports whether the grant covers the target: "Name is the name of
// the referent. When unspecified, this policy refers to all resources of the
// specified Group and Kind in the local namespace." (ReferenceGrantTo.Name)
func matchesTo(grant *gatewayv1beta1.ReferenceGrant, to target) bool {
	return slices.ContainsFunc(grant.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
		name := string(ptr.Deref(t.Name, ""))
		return t.Group == "" && string(t.Kind) == to.kind && (name == "" || name == to.name)
	})
}
