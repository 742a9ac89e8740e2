package main

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// ownedKinds are the kinds of objects that a Tunnel or a Deployment owns.
func ownedKinds() []schema.GroupVersionKind {
	owned := []schema.GroupVersionKind{podKind, corev1.SchemeGroupVersion.WithKind("Secret")}
	for _, kind := range connector.Kinds() {
		owned = append(owned, kind.GVK())
	}
	return owned
}

// ownerKinds are the kinds of their owners.
var ownerKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Tunnel"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
}

// collectGarbage deletes the objects whose owner is gone. It reads the owners last: the
// owner of an object that it has read existed before the object.
func (w *workloads) collectGarbage(ctx context.Context) error {
	var owned []metav1.PartialObjectMetadata
	for _, kind := range ownedKinds() {
		found, err := listMetadata(ctx, w.kube, kind, w.namespace)
		if err != nil {
			return err
		}
		owned = append(owned, found...)
	}
	owners := map[types.UID]bool{}
	for _, kind := range ownerKinds {
		found, err := listMetadata(ctx, w.kube, kind, w.namespace)
		if err != nil {
			return err
		}
		for i := range found {
			owners[found[i].UID] = true
		}
	}
	for i := range owned {
		if owned[i].DeletionTimestamp != nil || !isOrphan(&owned[i], owners) {
			continue
		}
		err := w.kube.Delete(ctx, &owned[i], client.Preconditions{UID: &owned[i].UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s %s, whose owner is gone: %w", owned[i].Kind, owned[i].Name, err)
		}
	}
	return nil
}

// isOrphan reports whether the object's owner has one of the kinds in [ownerKinds], and is
// not among the owners.
func isOrphan(object metav1.Object, owners map[types.UID]bool) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && !owners[owner.UID] && slices.ContainsFunc(ownerKinds, func(kind schema.GroupVersionKind) bool {
		return owner.Kind == kind.Kind && owner.APIVersion == kind.GroupVersion().String()
	})
}

// listMetadata lists the objects of a kind in a namespace.
func listMetadata(ctx context.Context, kube client.Client, kind schema.GroupVersionKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the objects of kind %s: %w", kind.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}
