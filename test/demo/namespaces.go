package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaces replaces the Kubernetes controller that empties and removes deleted
// namespaces.
type namespaces struct {
	kube      client.Client
	discovery discovery.DiscoveryInterface
}

// removeDeleted deletes the objects in each deleted namespace, and the namespace when it
// is empty.
func (n *namespaces) removeDeleted(ctx context.Context) error {
	var all corev1.NamespaceList
	if err := n.kube.List(ctx, &all); err != nil {
		return fmt.Errorf("list the namespaces: %w", err)
	}
	var errs []error
	for i := range all.Items {
		if namespace := &all.Items[i]; namespace.DeletionTimestamp != nil {
			errs = append(errs, n.remove(ctx, namespace))
		}
	}
	return errors.Join(errs...)
}

func (n *namespaces) remove(ctx context.Context, namespace *corev1.Namespace) error {
	contents, err := n.kinds()
	if err != nil {
		return err
	}
	remaining := 0
	for _, kind := range contents {
		var object metav1.PartialObjectMetadata
		object.SetGroupVersionKind(kind)
		if err := n.kube.DeleteAllOf(ctx, &object, client.InNamespace(namespace.Name)); err != nil {
			return fmt.Errorf("delete the objects of kind %s in namespace %s: %w", kind.Kind, namespace.Name, err)
		}
		found, err := listMetadata(ctx, n.kube, kind, namespace.Name)
		if err != nil {
			return err
		}
		remaining += len(found)
	}
	if remaining > 0 {
		return nil // objects that end later
	}
	namespace.Spec.Finalizers = nil
	if err := n.kube.SubResource("finalize").Update(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// kinds returns the kinds of objects that a namespace can contain.
func (n *namespaces) kinds() ([]schema.GroupVersionKind, error) {
	lists, err := n.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("find the kinds of objects: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			version := schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind)
			if slices.Contains(resource.Verbs, "deletecollection") && slices.Contains(resource.Verbs, "list") {
				kinds = append(kinds, version)
			}
		}
	}
	return kinds, nil
}
