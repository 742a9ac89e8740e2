package state

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// overlay returns what the cluster would hold after the changes, objects from
// manifests, which it completes in place. An object takes the place of the one
// of its kind, namespace and name, and what the API server or the controller
// wrote there; a new one is younger than all others and has no status.
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
	taken := tunnelsOf(cluster)
	all := cluster
	for _, change := range changes {
		if i, exists := place[identity{reflect.TypeOf(change), client.ObjectKeyFromObject(change)}]; exists {
			succeed(change, all[i])
			all[i] = change
			continue
		}
		begin(change)
		dropCopiedRecord(change, taken)
		all = append(all, change)
	}
	return all
}

// succeed gives an object from a manifest what a user's write leaves as it is.
func succeed(change, current client.Object) {
	change.SetUID(current.GetUID())
	change.SetCreationTimestamp(current.GetCreationTimestamp())
	change.SetDeletionTimestamp(current.GetDeletionTimestamp())
	change.SetGeneration(current.GetGeneration())
	if !equality.Semantic.DeepEqual(part(change, "Spec"), part(current, "Spec")) {
		change.SetGeneration(current.GetGeneration() + 1)
	}
	setStatus(change, part(current, "Status"))
	if _, ok := change.(*gatewayv1.Gateway); ok {
		keepRecord(change, current)
	}
}

// keepRecord leaves the controller's annotation as it is: what a manifest says
// there was copied from some cluster once.
func keepRecord(change, current client.Object) {
	annotations := maps.Clone(change.GetAnnotations())
	delete(annotations, RecordAnnotation)
	if record, ok := current.GetAnnotations()[RecordAnnotation]; ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[RecordAnnotation] = record
	}
	change.SetAnnotations(annotations)
}

// begin makes an object from a manifest a new one. Without a timestamp it is
// the youngest.
func begin(change client.Object) {
	change.SetUID("")
	change.SetCreationTimestamp(metav1.Time{})
	change.SetDeletionTimestamp(nil)
	change.SetGeneration(1)
	setStatus(change, nil)
}

// tunnelsOf returns the tunnels that the records of Gateways name.
func tunnelsOf(objects []client.Object) map[provider.TunnelID]bool {
	tunnels := map[provider.TunnelID]bool{}
	for _, object := range objects {
		if g, ok := object.(*gatewayv1.Gateway); ok {
			record, _ := ReadRecord(g) // one that does not parse is no record
			tunnels[record.Tunnel] = true
		}
	}
	delete(tunnels, "")
	return tunnels
}

// dropCopiedRecord takes the record from a new Gateway that names another's
// tunnel, as the controller does: it was copied with the original.
func dropCopiedRecord(change client.Object, taken map[provider.TunnelID]bool) {
	g, ok := change.(*gatewayv1.Gateway)
	if !ok {
		return
	}
	if record, _ := ReadRecord(g); taken[record.Tunnel] {
		delete(g.Annotations, RecordAnnotation)
	}
}

// part returns the spec or the status of an object, or nil where its kind has
// none.
func part(object client.Object, name string) any {
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
