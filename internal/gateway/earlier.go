package gateway

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// earlier is what the next decision can take over from the one before. An update of that one does not
// change it.
type earlier struct {
	snapshot *Snapshot
	options  Options
	plane    v1alpha1.DataPlane
	// refusesExpressions and addresses are the settings that affect translations.
	refusesExpressions bool
	addresses          v1alpha1.BackendAddresses
	routes             []*Route       // in order of rank
	statuses           []*RouteStatus // by rank, or nil if none was reported
	sets               map[Owner]ListenerSetStatus
}

// newEarlier returns what can be taken over from d. It returns nil if d is nil.
func newEarlier(d *decision) *earlier {
	if d == nil {
		return nil
	}
	return &earlier{
		snapshot: d.snapshot, options: d.options, plane: d.DataPlane, routes: d.Routes, statuses: d.kept.routes, sets: d.kept.reportedSets,
		refusesExpressions: d.translator.expressions.refused, addresses: d.translator.backends.addresses,
	}
}

// translationParts compare everything that affects the translation of more than single routes.
// With BackendTLSPolicies, nothing is taken over: they change how backends are connected, and their
// statuses need the Services that translations use.
var translationParts = []func(before *earlier, d *decision) bool{
	func(before *earlier, d *decision) bool {
		return before.options.equal(d.options) && before.plane == d.DataPlane
	},
	func(before *earlier, d *decision) bool {
		return before.refusesExpressions == d.translator.expressions.refused
	},
	func(before *earlier, d *decision) bool { return before.addresses == d.translator.backends.addresses },
	func(before *earlier, d *decision) bool { return haveSameGrants(before.snapshot, d.snapshot) },
	func(before *earlier, d *decision) bool { return permitSameAddresses(before.snapshot, d.snapshot) },
	func(before *earlier, d *decision) bool { return haveNoTLSPolicies(before.snapshot, d.snapshot) },
}

// resolveRoutes resolves the decision's routes, which are in any order, like the function of this
// name. It takes over translations that are the same, and what was reported about each route.
func (before *earlier) resolveRoutes(d *decision, routes []*Route) {
	versions := before.versions(d.Routes)
	for rank, i := range versions {
		if i >= 0 {
			d.Routes[rank].reported = before.reported(i)
		}
	}
	if slices.ContainsFunc(translationParts, func(same func(*earlier, *decision) bool) bool { return !same(before, d) }) {
		resolveRoutes(routes, d.translator, d.parents)
		return
	}
	changed := changedBackends(before.snapshot, d.snapshot)
	for rank, route := range d.Routes {
		route.admitted = route.isAdmitted(d.parents)
		if i := versions[rank]; i >= 0 && route.isTranslatedLike(before.routes[i], changed) {
			route.takeTranslation(before.routes[i])
		} else {
			d.translator.resolve(route, nil, nil)
		}
	}
}

// versions returns the rank of each route in the earlier decision, or -1.
func (before *earlier) versions(routes []*Route) []int {
	versions := make([]int, len(routes))
	i := 0
	for rank, route := range routes {
		for i < len(before.routes) && compareRoutes(before.routes[i], route) < 0 {
			i++
		}
		versions[rank] = -1
		if i < len(before.routes) && compareRoutes(before.routes[i], route) == 0 {
			versions[rank] = i
		}
	}
	return versions
}

// reported returns the last report about the route with the rank, or nil.
func (before *earlier) reported(rank int) *RouteStatus {
	if before.statuses == nil {
		return before.routes[rank].reported
	}
	return before.statuses[rank]
}

// isTranslatedLike reports whether the translation is the same as that of another version of the
// route. changed are the backends that differ.
func (r *Route) isTranslatedLike(other *Route, changed map[types.NamespacedName]bool) bool {
	if r.admitted != other.admitted || r.skipsExpressions != other.skipsExpressions || r.messageSize != other.messageSize || !r.hasSameRules(other) {
		return false
	}
	if len(changed) > 0 {
		for name := range r.namedBackends() {
			if changed[name] {
				return false
			}
		}
	}
	return true
}

func (r *Route) hasSameRules(other *Route) bool {
	if r.grpc != nil {
		return r.grpc == other.grpc || reflect.DeepEqual(r.grpc.Spec.Rules, other.grpc.Spec.Rules)
	}
	return isSameList(r.Rules, other.Rules) || reflect.DeepEqual(r.Rules, other.Rules)
}

// takeTranslation takes over what [translator.resolve] decides.
func (r *Route) takeTranslation(other *Route) {
	r.actions, r.matches, r.backends, r.Unresolved, r.Dropped = other.actions, other.matches, other.backends, other.Unresolved, other.Dropped
}

// isSameList reports whether both are the same list in memory.
func isSameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// isReportedWith reports whether the last report has the same status.
func (r *Route) isReportedWith(parents []gatewayv1.RouteParentStatus) bool {
	return r.reported != nil && haveSameParents(r.reported.Parents, parents) && reflect.DeepEqual(r.reported.Orphan, r.orphan)
}

func haveSameParents(a, b []gatewayv1.RouteParentStatus) bool {
	return slices.EqualFunc(a, b, func(x, y gatewayv1.RouteParentStatus) bool {
		return x.ControllerName == y.ControllerName && slices.Equal(x.Conditions, y.Conditions) &&
			(x.ParentRef == y.ParentRef || reflect.DeepEqual(x.ParentRef, y.ParentRef))
	})
}
