package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// unsupportedKind is a kind of the Gateway API that can refer to a Gateway, a ListenerSet or a
// Service, and that the controller does not read.
type unsupportedKind struct {
	group, kind, resource string
	// versions are the versions in which clusters serve the kind, the newest first.
	versions []string
}

// unsupportedKinds are the kinds in Gateway API v1.5 and v1.6, and XListenerSet, which v1.5
// replaced with ListenerSet.
var unsupportedKinds = []unsupportedKind{
	{gatewayv1.GroupName, "TCPRoute", "tcproutes", []string{"v1", "v1alpha2"}},
	{gatewayv1.GroupName, "TLSRoute", "tlsroutes", []string{"v1", "v1alpha3", "v1alpha2"}},
	{gatewayv1.GroupName, "UDPRoute", "udproutes", []string{"v1", "v1alpha2"}},
	{manifest.ExperimentalGroup, "XBackendTrafficPolicy", "xbackendtrafficpolicies", []string{"v1alpha1"}},
	{manifest.ExperimentalGroup, "XListenerSet", "xlistenersets", []string{"v1alpha1"}},
}

// addUnsupportedKinds makes a client find the resources of the kinds.
func addUnsupportedKinds(mapper *meta.DefaultRESTMapper) {
	for _, k := range unsupportedKinds {
		for _, version := range k.versions {
			gv := schema.GroupVersion{Group: k.group, Version: version}
			resource := gv.WithResource(k.resource)
			mapper.AddSpecific(gv.WithKind(k.kind), resource, resource, meta.RESTScopeNamespace)
		}
	}
}

// listUnsupported lists the objects of Gateway API kinds that the controller does not read. They
// only serve to find mistakes, so it omits the kinds that the cluster does not serve and
// the kinds that the user cannot list. It returns other errors.
func (r *reading) listUnsupported(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if r.Progress != nil {
		defer r.Progress("reading other Gateway API objects from the cluster")()
	}
	found, errs := make([][]*unstructured.Unstructured, len(unsupportedKinds)), make([]error, len(unsupportedKinds))
	var lists sync.WaitGroup
	for i, k := range unsupportedKinds {
		lists.Go(func() { found[i], errs[i] = r.listUnsupportedKind(ctx, k) })
	}
	lists.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

// listUnsupportedKind lists the objects of one kind in the newest version that the cluster
// serves: in all namespaces, or in the namespaces that the user works in.
func (r *reading) listUnsupportedKind(ctx context.Context, k unsupportedKind) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	found, err := r.listNewest(ctx, k, metav1.NamespaceAll)
	if !apierrors.IsForbidden(err) {
		return found, err
	}
	for _, namespace := range r.namespaces {
		found, err := r.listNewest(ctx, k, namespace)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// listNewest lists the objects of a kind in a namespace, or in all, in the newest version
// that the cluster serves.
func (r *reading) listNewest(ctx context.Context, k unsupportedKind, namespace string) ([]*unstructured.Unstructured, error) {
	for _, version := range k.versions {
		objects, err := r.listPages(ctx, namespace, func() client.ObjectList {
			page := &unstructured.UnstructuredList{}
			page.SetAPIVersion(schema.GroupVersion{Group: k.group, Version: version}.String())
			page.SetKind(k.kind + "List")
			return page
		})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s from the cluster: %w", k.resource, err)
		}
		all := make([]*unstructured.Unstructured, len(objects))
		for i, object := range objects {
			all[i] = object.(*unstructured.Unstructured)
		}
		return all, nil
	}
	return nil, nil
}

// Unsupported is an object of a Gateway API kind that the controller does not read.
type Unsupported struct {
	schema.GroupKind
	Namespace, Name string
	// Parents are its parentRefs, and Targets its targetRefs.
	Parents, Targets []gatewayv1.ParentReference
}

// newUnsupported returns the objects with their references. Objects in manifests replace
// those in the cluster.
func newUnsupported(cluster, manifests []*unstructured.Unstructured) []Unsupported {
	type id struct {
		schema.GroupKind
		namespace, name string
	}
	objects, order := map[id]*unstructured.Unstructured{}, []id(nil)
	for _, object := range slices.Concat(cluster, manifests) {
		key := id{object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName()}
		if objects[key] == nil {
			order = append(order, key)
		}
		objects[key] = object
	}
	all := make([]Unsupported, len(order))
	for i, key := range order {
		spec, _, _ := unstructured.NestedMap(objects[key].Object, "spec")
		all[i] = Unsupported{
			GroupKind: key.GroupKind, Namespace: key.namespace, Name: key.name,
			Parents: references(spec, "parentRef", "parentRefs", gatewayv1.GroupName), Targets: references(spec, "targetRef", "targetRefs", ""),
		}
	}
	return all
}

// references returns the references in a spec's fields, of which one contains a single
// reference and the other a list. group is the default group.
func references(spec map[string]any, single, list, group string) []gatewayv1.ParentReference {
	values, _ := spec[list].([]any)
	values = append(slices.Clone(values), spec[single])
	var all []gatewayv1.ParentReference
	for _, value := range values {
		fields, ok := value.(map[string]any)
		if !ok {
			continue
		}
		text := func(name, fallback string) string {
			if value, ok := fields[name].(string); ok {
				return value
			}
			return fallback
		}
		ref := gatewayv1.ParentReference{
			Group: new(gatewayv1.Group(text("group", group))), Kind: new(gatewayv1.Kind(text("kind", "Gateway"))), Name: gatewayv1.ObjectName(text("name", "")),
		}
		if namespace := text("namespace", metav1.NamespaceNone); namespace != "" {
			ref.Namespace = new(gatewayv1.Namespace(namespace))
		}
		all = append(all, ref)
	}
	return all
}
