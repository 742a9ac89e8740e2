package gateway

import (
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// grants are the references that ReferenceGrants permit.
type grants struct {
	byScope map[grantScope][]*gatewayv1beta1.ReferenceGrant
	// targets are the permitted targets in a scope. They are collected for the first
	// reference, because most scopes in most grants have no reference.
	targets map[grantScope]map[target]bool
}

// grantScope identifies the references from one referrer to one namespace.
type grantScope struct {
	from        referrer
	toNamespace string
}

func newGrants(objects []*gatewayv1beta1.ReferenceGrant) grants {
	g := grants{byScope: map[grantScope][]*gatewayv1beta1.ReferenceGrant{}, targets: map[grantScope]map[target]bool{}}
	for _, object := range objects {
		for _, from := range object.Spec.From {
			if from.Group == gatewayv1.GroupName {
				scope := grantScope{referrer{string(from.Kind), string(from.Namespace)}, object.Namespace}
				g.byScope[scope] = append(g.byScope[scope], object)
			}
		}
	}
	return g
}

// referrer identifies the objects that a grant permits: the Gateways, the ListenerSets or
// the routes of one kind in a namespace. A grant for one kind does not apply to another
// kind.
type referrer struct {
	kind, namespace string
}

// target is the object that a reference names.
type target struct {
	group, kind, namespace, name string
}

// permits reports whether the reference is permitted. A reference within a namespace
// always is. A reference to another namespace requires a grant in the target's namespace:
// "A ReferenceGrant is required for a cross-namespace reference [...] all cross-namespace
// references must be explicitly permitted."
func (g grants) permits(from referrer, to target) bool {
	if from.namespace == to.namespace {
		return true
	}
	scope := grantScope{from, to.namespace}
	targets, ok := g.targets[scope]
	if !ok {
		targets = permittedTargets(g.byScope[scope])
		g.targets[scope] = targets
	}
	return targets[to] || targets[target{group: to.group, kind: to.kind, namespace: to.namespace}]
}

// permittedTargets returns the targets in the grants. A target without a name stands for
// all objects with its kind: "Name is the name of the referent. When unspecified, this
// policy refers to all resources of the specified Group and Kind in the local namespace."
// (ReferenceGrantTo.Name)
func permittedTargets(objects []*gatewayv1beta1.ReferenceGrant) map[target]bool {
	targets := map[target]bool{}
	for _, object := range objects {
		for _, to := range object.Spec.To {
			targets[target{string(to.Group), string(to.Kind), object.Namespace, string(ptr.Deref(to.Name, ""))}] = true
		}
	}
	return targets
}
