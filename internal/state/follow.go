package state

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// reference names an object that another object refers to.
type reference struct {
	kind kinds.Kind
	types.NamespacedName
}

// follow reads the objects that the others refer to by their names, if the user may not
// list their kind. Many users may get the Gateway that their routes attach to.
func (r *reading) follow(ctx context.Context, manifests []client.Object) error {
	for _, object := range r.objects {
		r.visited[keyOf(object)] = true
	}
	for _, object := range manifests { // their status and age are in the cluster
		if kind, ok := kindOf(object); ok {
			if err := r.get(ctx, reference{kind, client.ObjectKeyFromObject(object)}); err != nil {
				return err
			}
		}
	}
	// The loop also reaches the objects that it appends.
	for i := 0; i < len(r.objects)+len(manifests); i++ {
		object := r.at(i, manifests)
		for _, ref := range r.references(object) {
			if err := r.get(ctx, ref); err != nil {
				return err
			}
		}
		if err := r.listTargets(ctx, object); err != nil {
			return err
		}
	}
	r.objects = append(r.objects, r.assumedTargets(manifests)...)
	return nil
}

// at returns the manifests' objects before the objects that were read.
func (r *reading) at(i int, manifests []client.Object) client.Object {
	if i < len(manifests) {
		return manifests[i]
	}
	return r.objects[i-len(manifests)]
}

func keyOf(object client.Object) objectKey {
	return objectKey{KindOf(object), client.ObjectKeyFromObject(object)}
}

// kindOf returns the listed kind of an object.
func kindOf(object client.Object) (kinds.Kind, bool) {
	name := KindOf(object)
	all := kinds.Select(func(k kinds.Kind) bool { return k.Plan == kinds.Listed && !k.HasVersions() && k.GVK().Kind == name })
	if len(all) == 0 {
		return kinds.Kind{}, false
	}
	return all[0], true
}

// references returns the objects on which a decision about the object depends.
func (r *reading) references(object client.Object) []reference {
	var refs []reference
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute:
		refs = r.referencesOfRoute(object)
	case *gatewayv1.ListenerSet:
		if parent, ok := ParentGateway(o); ok {
			refs = append(refs, reference{kinds.Gateway, parent.NamespacedName})
		}
	case *gatewayv1.Gateway:
		return r.referencesOfGateway(o) // only the namespaces of attached objects matter
	case *gatewayv1.GatewayClass:
		if name, ok := settings.ClassParameters(o); ok && o.Spec.ControllerName == r.ControllerName {
			refs = append(refs, reference{kinds.TunnelConfiguration, name})
		}
		return refs
	case *v1alpha1.AccessPolicy:
		for _, target := range gateway.TargetsOfAccessPolicy(o) {
			refs = append(refs, reference{parentKind(target), target.NamespacedName})
		}
		return refs
	default:
		return nil
	}
	return append(refs, reference{kinds.Namespace, types.NamespacedName{Name: object.GetNamespace()}})
}

// parentKind returns the kind of a Gateway or a ListenerSet.
func parentKind(owner gateway.Owner) kinds.Kind {
	if owner.Kind == gateway.KindListenerSet {
		return kinds.ListenerSet
	}
	return kinds.Gateway
}

// referencesOfRoute returns a route's parents and backends.
func (r *reading) referencesOfRoute(route client.Object) []reference {
	var refs []reference
	for _, parent := range RouteParents(route, r.ControllerName) {
		refs = append(refs, reference{parentKind(parent), parent.NamespacedName})
	}
	for _, name := range BackendServices(route) {
		refs = append(refs, reference{kinds.Service, name})
	}
	return refs
}

// referencesOfGateway returns the references of a Gateway, unless its class is known to
// belong to another controller.
func (r *reading) referencesOfGateway(g *gatewayv1.Gateway) []reference {
	name := client.ObjectKeyFromObject(g)
	refs := []reference{{kinds.GatewayClass, types.NamespacedName{Name: string(g.Spec.GatewayClassName)}}}
	otherController := slices.ContainsFunc(r.objects, func(o client.Object) bool {
		class, ok := o.(*gatewayv1.GatewayClass)
		return ok && class.Name == string(g.Spec.GatewayClassName) && class.Spec.ControllerName != r.ControllerName
	})
	if otherController {
		return refs
	}
	if parameters, ok := settings.GatewayParameters(g); ok {
		refs = append(refs, reference{kinds.TunnelConfiguration, parameters})
	}
	return append(refs, reference{kinds.Tunnel, types.NamespacedName{Namespace: r.ControllerNamespace, Name: tunnel.ObjectName(name)}})
}

// targetNamespaces returns the other namespaces to which an object refers.
func targetNamespaces(object client.Object) []string {
	var targets []types.NamespacedName
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute:
		targets = append(BackendServices(object), BackendImports(object)...)
	case *gatewayv1.ListenerSet:
		targets = gateway.SecretsOfListenerSet(o)
	case *gatewayv1.Gateway:
		targets = gateway.SecretsOfGateway(o)
	}
	var namespaces []string
	for _, target := range targets {
		if target.Namespace != object.GetNamespace() {
			namespaces = append(namespaces, target.Namespace)
		}
	}
	return namespaces
}

// isRead reports whether all objects of the kind in the namespace were listed.
func (r *reading) isRead(kind kinds.Kind, namespace string) bool {
	name := kind.GVK().Kind
	return !r.denied[name] || r.complete[name][namespace]
}

// get reads an object by its name, once. After the API server has refused an object, the
// user probably may not get the others of its kind in the namespace either.
func (r *reading) get(ctx context.Context, ref reference) error {
	key := objectKey{ref.kind.GVK().Kind, ref.NamespacedName}
	if r.isRead(ref.kind, ref.Namespace) || r.visited[key] {
		return nil
	}
	r.visited[key] = true
	gap := newGap("get", ref.kind, ref.NamespacedName)
	refused := objectKey{key.kind, types.NamespacedName{Namespace: ref.Namespace}}
	if err := r.refused[refused]; err != nil && ref.Namespace != "" {
		r.deny(gap, err)
		return nil
	}
	object := ref.kind.New().(client.Object)
	err := r.Live.Get(ctx, ref.NamespacedName, object)
	switch {
	case err == nil:
		r.objects = append(r.objects, object)
	case apierrors.IsForbidden(err):
		r.refused[refused] = err
		r.deny(gap, err)
	case !apierrors.IsNotFound(err):
		return listError(ref.kind, err)
	}
	return nil
}

// listTargets lists the kinds that permit and change the object's references to other
// namespaces, and the AccessPolicies that can target the object.
func (r *reading) listTargets(ctx context.Context, object client.Object) error {
	switch object.(type) {
	case *gatewayv1.Gateway, *gatewayv1.ListenerSet:
		if err := r.listAccessPolicies(ctx, object.GetNamespace()); err != nil {
			return err
		}
	}
	for _, namespace := range targetNamespaces(object) {
		for _, kind := range []kinds.Kind{kinds.ReferenceGrant, kinds.BackendTLSPolicy} {
			if err := r.listTarget(ctx, kind, namespace); err != nil {
				return err
			}
		}
	}
	for _, name := range BackendImports(object) {
		if err := r.listTarget(ctx, kinds.ServiceImport, name.Namespace); err != nil {
			return err
		}
	}
	return nil
}

// listTarget lists a kind in a namespace, once.
func (r *reading) listTarget(ctx context.Context, kind kinds.Kind, namespace string) error {
	key := objectKey{kind.GVK().Kind, types.NamespacedName{Namespace: namespace}}
	if r.isRead(kind, namespace) || r.visited[key] || slices.Contains(r.namespaces, namespace) {
		return nil
	}
	r.visited[key] = true
	return r.tryNamespace(ctx, kind, namespace)
}

// assumedTargets returns Services and ReferenceGrants for references to namespaces that
// the user may not read. Without them, a decision would say that the references are wrong.
func (r *reading) assumedTargets(manifests []client.Object) []client.Object {
	exists := map[objectKey]bool{}
	for _, object := range slices.Concat(r.objects, manifests) {
		exists[keyOf(object)] = true
	}
	var assumed []client.Object
	services := map[objectKey]*corev1.Service{}
	for _, object := range slices.Concat(r.objects, manifests) {
		for _, ref := range backendRefs(object) {
			key, ok := serviceKey(ref, object.GetNamespace())
			if !ok || exists[key] || r.isRead(kinds.Service, key.Namespace) || !r.isGap(key) {
				continue
			}
			if services[key] == nil {
				services[key] = newAssumedService(key.NamespacedName)
				assumed = append(assumed, services[key])
			}
			addAssumedPort(services[key], ref.Port, object)
		}
	}
	return slices.Concat(assumed, r.assumedImports(manifests), r.assumedGrants(manifests))
}

// isGap reports whether the user may not get the object.
func (r *reading) isGap(key objectKey) bool {
	return slices.ContainsFunc(r.gaps, func(g Gap) bool {
		return g.Verb == "get" && g.Kind == key.kind && g.Namespace == key.Namespace && g.Name == key.Name
	})
}
