package state

import (
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The fields by which objects are looked up.
const (
	// IndexParentGateway finds ListenerSets by the "namespace/name" of the
	// Gateway that they point to.
	IndexParentGateway = "parentGateway"
	// IndexParent finds routes by each Gateway or ListenerSet that their spec,
	// or an entry of ours in their status, names: what left a parent is found
	// there still.
	IndexParent = "parent"
	// IndexEntry finds routes by each Gateway or ListenerSet that an entry of
	// ours in their status names.
	IndexEntry = "entry"
	// IndexBackend finds routes by the "namespace/name" of each Service that
	// their backendRefs name.
	IndexBackend = "backend"
	// IndexCertificate finds Gateways and ListenerSets by the "namespace/name" of
	// each Secret that their certificateRefs name.
	IndexCertificate = "certificate"
	// IndexGatewayNamespace finds Tunnels by the namespace of their Gateway.
	IndexGatewayNamespace = "gatewayNamespace"
	// IndexClass finds Gateways by the name of their class.
	IndexClass = "class"
	// IndexParameters finds GatewayClasses and Gateways by the "namespace/name" of
	// the TunnelConfiguration that their own parametersRef names. The Gateways of a
	// class that it finds are found by [IndexClass].
	IndexParameters = "parameters"
)

// Index is a field by which objects of a kind are looked up.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes returns what a Loader and the controller's watches look up.
func Indexes(controller gatewayv1.GatewayController) []Index {
	all := []Index{
		{&gatewayv1.Gateway{}, IndexClass, func(o client.Object) []string {
			return []string{string(o.(*gatewayv1.Gateway).Spec.GatewayClassName)}
		}},
		{&v1alpha1.Tunnel{}, IndexGatewayNamespace, func(o client.Object) []string {
			return []string{o.(*v1alpha1.Tunnel).Spec.Gateway.Namespace}
		}},
		{&gatewayv1.ListenerSet{}, IndexParentGateway, func(o client.Object) []string {
			if key, ok := ParentGateway(o.(*gatewayv1.ListenerSet)); ok {
				return []string{key.NamespacedName.String()}
			}
			return nil
		}},
		{&gatewayv1.Gateway{}, IndexCertificate, func(o client.Object) []string {
			return distinct(gateway.SecretsOfGateway(o.(*gatewayv1.Gateway)))
		}},
		{&gatewayv1.ListenerSet{}, IndexCertificate, func(o client.Object) []string {
			return distinct(gateway.SecretsOfListenerSet(o.(*gatewayv1.ListenerSet)))
		}},
	}
	all = append(all, parametersIndexes()...)
	for _, route := range []client.Object{&gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}} {
		all = append(all,
			Index{route, IndexParent, func(o client.Object) []string { return distinct(RouteParents(o, controller)) }},
			Index{route, IndexEntry, func(o client.Object) []string { return distinct(RouteStatusParents(o, controller)) }},
			Index{route, IndexBackend, func(o client.Object) []string { return distinct(backendServices(o)) }},
		)
	}
	return all
}

// ParentGateway returns the Gateway that a ListenerSet points to, and false
// when its parentRef is of another kind.
func ParentGateway(set *gatewayv1.ListenerSet) (Key, bool) {
	ref := set.Spec.ParentRef
	return GatewayKey(string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(set.Namespace))), string(ref.Name)),
		ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName &&
			ptr.Deref(ref.Kind, gateway.KindGateway) == gateway.KindGateway
}

// RouteParents returns the objects that the spec of a route or an entry of ours
// in its status names as parents.
func RouteParents(route client.Object, controller gatewayv1.GatewayController) []gateway.Owner {
	spec, _, ok := gateway.CommonRoute(route)
	if !ok {
		return nil
	}
	return append(owners(spec.ParentRefs, route.GetNamespace()), RouteStatusParents(route, controller)...)
}

// RouteStatusParents returns those that an entry of ours in the status of a route
// names.
func RouteStatusParents(route client.Object, controller gatewayv1.GatewayController) []gateway.Owner {
	_, status, ok := gateway.CommonRoute(route)
	if !ok {
		return nil
	}
	var refs []gatewayv1.ParentReference
	for _, entry := range status.Parents {
		if entry.ControllerName == controller {
			refs = append(refs, entry.ParentRef)
		}
	}
	return owners(refs, route.GetNamespace())
}

func owners(refs []gatewayv1.ParentReference, namespace string) []gateway.Owner {
	var found []gateway.Owner
	for _, ref := range refs {
		if owner, ok := gateway.OwnerOf(ref, namespace); ok {
			found = append(found, owner)
		}
	}
	return found
}

func distinct[T fmt.Stringer](names []T) []string {
	seen := map[string]bool{}
	var all []string
	for _, name := range names {
		if text := name.String(); !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}
