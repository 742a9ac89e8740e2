package state

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// withoutTunnels returns the manifests without Tunnels, which it counts as skipped.
// Only the controller writes Tunnels: a manifest must not determine which tunnel
// belongs to a Gateway in the cluster.
func withoutTunnels(set *manifest.Set) *manifest.Set {
	filtered := *set
	filtered.Objects = slices.DeleteFunc(slices.Clone(set.Objects), func(o client.Object) bool {
		_, ok := o.(*v1alpha1.Tunnel)
		return ok
	})
	if n := len(set.Objects) - len(filtered.Objects); n > 0 {
		kind := schema.GroupKind{Group: v1alpha1.GroupName, Kind: "Tunnel"}
		filtered.Skipped = append(slices.Clone(set.Skipped), manifest.Skipped{GroupKind: kind, Count: n})
	}
	return &filtered
}

// overlay returns the cluster's objects after the changes have been applied. Changes
// are objects from manifests; overlay modifies them. A change replaces the object with
// the same kind, namespace and name, except for the fields that the API server or the
// controller writes. A new object is the youngest and has no status.
//
// overlay does not merge objects: a label that only the object in the cluster has is
// removed.
func overlay(cluster, changes []client.Object) []client.Object {
	type objectKey struct {
		kind reflect.Type
		types.NamespacedName
	}
	index := make(map[objectKey]int, len(cluster))
	for i, object := range cluster {
		index[objectKey{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}] = i
	}
	all := cluster
	for _, change := range changes {
		if i, exists := index[objectKey{reflect.TypeOf(change), client.ObjectKeyFromObject(change)}]; exists {
			keepServerFields(change, all[i])
			all[i] = change
			continue
		}
		initializeNew(change)
		all = append(all, change)
	}
	return all
}

// keepServerFields copies the fields that a user cannot write from the current object
// to the change, and updates the generation.
func keepServerFields(change, current client.Object) {
	if service, ok := change.(*corev1.Service); ok {
		keepAllocated(service, current.(*corev1.Service))
	}
	change.SetUID(current.GetUID())
	change.SetCreationTimestamp(current.GetCreationTimestamp())
	change.SetDeletionTimestamp(current.GetDeletionTimestamp())
	change.SetGeneration(current.GetGeneration())
	if !equality.Semantic.DeepEqual(fieldValue(change, "Spec"), fieldValue(current, "Spec")) {
		change.SetGeneration(current.GetGeneration() + 1)
	}
	setStatus(change, fieldValue(current, "Status"))
}

// keepAllocated copies the addresses that the API server allocated. It keeps them when a
// manifest has none.
func keepAllocated(change, current *corev1.Service) {
	if change.Spec.Type == corev1.ServiceTypeExternalName || change.Spec.ClusterIP != "" {
		return
	}
	change.Spec.ClusterIP, change.Spec.ClusterIPs = current.Spec.ClusterIP, current.Spec.ClusterIPs
	if len(change.Spec.IPFamilies) == 0 {
		change.Spec.IPFamilies = current.Spec.IPFamilies
	}
}

// initializeNew sets a new object's metadata and removes its status. An object without
// a creation timestamp is the youngest.
func initializeNew(change client.Object) {
	change.SetUID("")
	change.SetCreationTimestamp(metav1.Time{})
	change.SetDeletionTimestamp(nil)
	change.SetGeneration(1)
	setStatus(change, nil)
}

// fieldValue returns an object's spec or status, or nil if its kind has no such field.
func fieldValue(object client.Object, name string) any {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// setStatus sets an object's status if its kind has one. Nil clears the status.
func setStatus(object client.Object, status any) {
	field := reflect.ValueOf(object).Elem().FieldByName("Status")
	switch {
	case !field.IsValid():
	case status == nil:
		field.SetZero()
	default:
		field.Set(reflect.ValueOf(status))
	}
}
