package state

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// withoutTunnels returns the manifests without Tunnels, which it counts as
// skipped. Only the controller writes Tunnels: a manifest must not decide which
// tunnel belongs to a Gateway of the cluster.
func withoutTunnels(set *manifest.Set) *manifest.Set {
	kept := *set
	kept.Objects = slices.DeleteFunc(slices.Clone(set.Objects), func(o client.Object) bool {
		_, ok := o.(*v1alpha1.Tunnel)
		return ok
	})
	if n := len(set.Objects) - len(kept.Objects); n > 0 {
		kind := schema.GroupKind{Group: v1alpha1.GroupName, Kind: "Tunnel"}
		kept.Skipped = append(slices.Clone(set.Skipped), manifest.Skipped{GroupKind: kind, Count: n})
	}
	return &kept
}

// overlay returns the objects of the cluster after the changes, objects from
// manifests, have been applied. It completes the changes in place. A change
// replaces the object of its kind, namespace and name, but not the fields that
// the API server or the controller wrote; a new object is younger than all others
// and has no status.
//
// Nothing is merged: a label that only the cluster's object has is gone.
func overlay(cluster, changes []client.Object) []client.Object {
	type identity struct {
		kind reflect.Type
		types.NamespacedName
	}
	place := make(map[identity]int, len(cluster))
	for i, object := range cluster {
		place[identity{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}] = i
	}
	all := cluster
	for _, change := range changes {
		if i, exists := place[identity{reflect.TypeOf(change), client.ObjectKeyFromObject(change)}]; exists {
			keepServerFields(change, all[i])
			all[i] = change
			continue
		}
		initializeNew(change)
		all = append(all, change)
	}
	return all
}

// keepServerFields gives an object from a manifest what a user's write leaves as it is.
func keepServerFields(change, current client.Object) {
	change.SetUID(current.GetUID())
	change.SetCreationTimestamp(current.GetCreationTimestamp())
	change.SetDeletionTimestamp(current.GetDeletionTimestamp())
	change.SetGeneration(current.GetGeneration())
	if !equality.Semantic.DeepEqual(fieldValue(change, "Spec"), fieldValue(current, "Spec")) {
		change.SetGeneration(current.GetGeneration() + 1)
	}
	setStatus(change, fieldValue(current, "Status"))
}

// initializeNew makes an object from a manifest a new one. Without a timestamp it is
// the youngest.
func initializeNew(change client.Object) {
	change.SetUID("")
	change.SetCreationTimestamp(metav1.Time{})
	change.SetDeletionTimestamp(nil)
	change.SetGeneration(1)
	setStatus(change, nil)
}

// fieldValue returns the spec or the status of an object, or nil where its kind has
// none.
func fieldValue(object client.Object, name string) any {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// setStatus does nothing to an object whose kind has no status.
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
