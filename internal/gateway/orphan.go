package gateway

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Orphan describes a route that no longer has a parent that this controller manages.
type Orphan struct {
	Generation int64
	// Message describes what has happened and what to do.
	Message string
}

func newOrphan(route *Route) *Orphan {
	const limit = 5 // a route can have 32 parents
	var parents []string
	for _, ref := range route.parentRefs {
		if owner, ok := OwnerOf(ref, route.Namespace); ok && len(parents) < limit && !slices.Contains(parents, owner.String()) {
			parents = append(parents, owner.String())
		}
	}
	advice := "Check that these parents exist and use this controller: " + strings.Join(parents, ", ") + "."
	if len(parents) == 0 {
		advice = "Add a Gateway or ListenerSet to spec.parentRefs."
	}
	return &Orphan{route.generation, "The route has lost its last parent, so the controller no longer serves it. " + advice}
}

// gatewayDeleted reports whether the owner is a Gateway that does not exist, or that is
// being deleted.
func gatewayDeleted(owner Owner, s *Snapshot) bool {
	return owner.Kind == KindGateway && (s.Gateway == nil || !s.Gateway.DeletionTimestamp.IsZero())
}

// hasMovedSet reports whether the route names a ListenerSet whose spec has changed since its
// status was written. The Gateway that the ListenerSet named before can still exist.
func (r *Route) hasMovedSet(s *Snapshot) bool {
	return slices.ContainsFunc(s.ListenerSets, func(set *gatewayv1.ListenerSet) bool {
		accepted := conditions.TypeAccepted.Find(set.Status.Conditions)
		return accepted != nil && accepted.ObservedGeneration < set.Generation &&
			slices.ContainsFunc(r.parentRefs, func(ref gatewayv1.ParentReference) bool {
				owner, _ := OwnerOf(ref, r.Namespace)
				return owner == listenerSetOwner(set)
			})
	})
}
