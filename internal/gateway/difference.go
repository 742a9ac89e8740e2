package gateway

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
)

// difference is what differs between two Snapshots in which everything else is the same.
type difference struct {
	// httpRoutes, grpcRoutes and sets are the new objects. Their names are in both Snapshots.
	httpRoutes []*gatewayv1.HTTPRoute
	grpcRoutes []*gatewayv1.GRPCRoute
	sets       []*gatewayv1.ListenerSet
	// backends are the Services and ServiceImports that were created, changed or deleted, or
	// whose EndpointSlices were.
	backends map[types.NamespacedName]bool
}

// differ returns the difference between two Snapshots. It returns false if they differ in
// anything else, except for Now, Access and the status of objects.
func differ(before, after *Snapshot) (difference, bool) {
	for _, same := range sameParts {
		if !same(before, after) {
			return difference{}, false
		}
	}
	d := difference{}
	var http, grpc, sets bool
	d.httpRoutes, http = changedObjects(before.HTTPRoutes, after.HTTPRoutes)
	d.grpcRoutes, grpc = changedObjects(before.GRPCRoutes, after.GRPCRoutes)
	d.sets, sets = changedObjects(before.ListenerSets, after.ListenerSets)
	if !http || !grpc || !sets {
		return difference{}, false
	}
	d.backends = changedBackends(before, after)
	return d, true
}

// changedBackends returns the backends that differ.
func changedBackends(before, after *Snapshot) map[types.NamespacedName]bool {
	changed := map[types.NamespacedName]bool{}
	for _, add := range backendParts {
		add(changed, before, after)
	}
	return changed
}

// backendParts add the backends that differ.
var backendParts = []func(changed map[types.NamespacedName]bool, a, b *Snapshot){
	func(changed map[types.NamespacedName]bool, a, b *Snapshot) {
		for name := range byname.Differing(a.Services, b.Services, isSame) {
			changed[name] = true
		}
	},
	func(changed map[types.NamespacedName]bool, a, b *Snapshot) {
		addChanged(changed, a.ServiceImports, b.ServiceImports, isSame)
	},
	func(changed map[types.NamespacedName]bool, a, b *Snapshot) {
		for name := range byname.Differing(a.EndpointSlices, b.EndpointSlices, areSame) {
			changed[name] = true
		}
	},
	func(changed map[types.NamespacedName]bool, a, b *Snapshot) {
		addChanged(changed, a.ImportedSlices, b.ImportedSlices, areSame)
	},
}

// sameParts compare everything that affects more than single routes. Each field of a
// Snapshot is here, in backendParts or in [differ].
var sameParts = []func(a, b *Snapshot) bool{
	func(a, b *Snapshot) bool { return isSameGateway(a.Gateway, b.Gateway) },
	func(a, b *Snapshot) bool {
		return isSame(a.Class, b.Class) && isSame(a.ClassConfiguration, b.ClassConfiguration) && isSame(a.GatewayConfiguration, b.GatewayConfiguration)
	},
	haveSameGrants,
	func(a, b *Snapshot) bool { return haveSameCertificates(a, b) && maps.Equal(a.CABundles, b.CABundles) },
	func(a, b *Snapshot) bool {
		return isSameMap(a.Namespaces, b.Namespaces) || maps.EqualFunc(a.Namespaces, b.Namespaces, haveSameLabels)
	},
	permitSameAddresses,
	haveNoTLSPolicies,
	func(a, b *Snapshot) bool {
		return areSame(a.AccessPolicies, b.AccessPolicies) && a.AccessPoliciesUnknown == b.AccessPoliciesUnknown
	},
	func(a, b *Snapshot) bool { return a.DataPlane == b.DataPlane && a.Tunnel == b.Tunnel },
	func(a, b *Snapshot) bool {
		return a.OlderGateways == b.OlderGateways && a.OrphanedTunnels == b.OrphanedTunnels && maps.Equal(a.Orphans, b.Orphans)
	},
	func(a, b *Snapshot) bool { return a.Conflicts == nil && b.Conflicts == nil },
}

func haveSameGrants(a, b *Snapshot) bool { return areSame(a.Grants, b.Grants) }

func permitSameAddresses(a, b *Snapshot) bool {
	return a.NoServiceImports == b.NoServiceImports && maps.Equal(a.Reserved, b.Reserved)
}

// haveNoTLSPolicies reports whether there are no BackendTLSPolicies, whose statuses depend on backends.
func haveNoTLSPolicies(a, b *Snapshot) bool {
	return len(a.BackendTLSPolicies)+len(b.BackendTLSPolicies) == 0
}

// isSameMap reports whether both are the same map in memory. Nothing changes the map of a Snapshot.
func isSameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// isSame reports whether both are the same version of an object, or nil.
func isSame[T interface {
	comparable
	metav1.Object
}](a, b T) bool {
	var none T
	if a == b || a == none || b == none {
		return a == b
	}
	return a.GetUID() != "" && a.GetUID() == b.GetUID() && a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}

// areSame reports whether both have the same versions of the same objects, in any order.
func areSame[T interface {
	comparable
	metav1.Object
}](a, b []T) bool {
	changed, ok := changedObjects(a, b)
	return ok && len(changed) == 0
}

// isSameGateway ignores the status.
func isSameGateway(a, b *gatewayv1.Gateway) bool {
	return isSame(a, b) || haveSameLabels(a, b) && a.Generation == b.Generation && reflect.DeepEqual(a.Spec, b.Spec)
}

// isSameSet ignores the status.
func isSameSet(a, b *gatewayv1.ListenerSet) bool {
	return haveSameLabels(a, b) && a.Generation == b.Generation && reflect.DeepEqual(a.Spec, b.Spec)
}

// haveSameLabels reports whether the metadata is the same, as far as it affects decisions.
func haveSameLabels[T interface {
	comparable
	metav1.Object
}](a, b T) bool {
	var none T
	if a == b || a == none || b == none {
		return a == b
	}
	return a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName() && a.GetUID() == b.GetUID() &&
		a.GetCreationTimestamp() == b.GetCreationTimestamp() && (a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// haveSameCertificates also compares which certificates have expired.
func haveSameCertificates(a, b *Snapshot) bool {
	return maps.EqualFunc(a.Certificates, b.Certificates, func(x, y Certificate) bool {
		return x == y && a.Now.After(x.NotAfter) == b.Now.After(y.NotAfter)
	})
}

// changedObjects returns the objects after that are not the same as before. It returns
// false if one was created or deleted.
func changedObjects[T interface {
	comparable
	metav1.Object
}](before, after []T) ([]T, bool) {
	if len(before) != len(after) {
		return nil, false
	}
	type named struct{ old, next T }
	var candidates []named // whose positions differ, or that have changed
	for i := range after {
		if !isSame(before[i], after[i]) {
			candidates = append(candidates, named{before[i], after[i]})
		}
	}
	old := make(map[types.NamespacedName]T, len(candidates))
	for _, c := range candidates {
		old[nameOf(c.old)] = c.old
	}
	var changed []T
	for _, c := range candidates {
		was, existed := old[nameOf(c.next)]
		if !existed {
			return nil, false
		}
		if !isSame(was, c.next) {
			changed = append(changed, c.next)
		}
	}
	return changed, true
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// addChanged adds the keys whose values differ.
func addChanged[V any](changed map[types.NamespacedName]bool, before, after map[types.NamespacedName]V, same func(a, b V) bool) {
	if isSameMap(before, after) {
		return
	}
	kept := 0
	for name, value := range after {
		old, existed := before[name]
		if existed {
			kept++
		}
		if !existed || !same(old, value) {
			changed[name] = true
		}
	}
	if kept == len(before) {
		return // nothing was deleted
	}
	for name := range before {
		if _, exists := after[name]; !exists {
			changed[name] = true
		}
	}
}
