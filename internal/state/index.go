package state

import (
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// Names of indexed fields.
const (
	// IndexParentGateway indexes ListenerSets by the Gateway in their parentRef, as
	// "namespace/name".
	IndexParentGateway = "parentGateway"
	// IndexParent indexes routes by the Gateways and ListenerSets in their parentRefs
	// and in this controller's status entries. A route that was detached from a parent
	// has that parent until its status entry is removed.
	IndexParent = "parent"
	// IndexStatusParent indexes routes by the Gateways and ListenerSets in this
	// controller's status entries.
	IndexStatusParent = "statusParent"
	// IndexBackend indexes routes by the Services in their backendRefs, as
	// "namespace/name".
	IndexBackend = "backend"
	// IndexImportBackend indexes routes by the ServiceImports in their backendRefs, as
	// "namespace/name".
	IndexImportBackend = "importBackend"
	// IndexTarget indexes BackendTLSPolicies by the Services in their targetRefs, and
	// IndexCABundle by the ConfigMaps in their caCertificateRefs, as "namespace/name".
	// IndexTarget also indexes AccessPolicies by the Gateways and ListenerSets in their
	// targetRefs.
	IndexTarget   = "target"
	IndexCABundle = "caBundle"
	// IndexStatusAncestor indexes BackendTLSPolicies by the Gateways, and AccessPolicies by
	// the Gateways and ListenerSets, in this controller's status entries.
	IndexStatusAncestor = "statusAncestor"
	// IndexCertificate indexes Gateways and ListenerSets by the Secrets in their
	// certificateRefs and clientCertificateRef, as "namespace/name".
	IndexCertificate = "certificate"
	// IndexGatewayNamespace indexes Tunnels by their Gateway's namespace.
	IndexGatewayNamespace = "gatewayNamespace"
	// IndexClass indexes Gateways by the name of their GatewayClass.
	IndexClass = "class"
	// IndexParameters indexes GatewayClasses and Gateways by the TunnelConfiguration in
	// their parametersRef, as "namespace/name". A reference on a GatewayClass is not an
	// index value for its Gateways; use [IndexClass] to find them.
	IndexParameters = "parameters"
	// IndexService indexes EndpointSlices by their Service, as "namespace/name".
	IndexService = "service"
	// IndexServiceImport indexes EndpointSlices by their ServiceImport, as "namespace/name".
	IndexServiceImport = "serviceImport"
)

// Index defines an indexed field for a kind.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes returns the indexes that a Loader and the controller's watches require.
func Indexes(controller gatewayv1.GatewayController) []Index {
	all := []Index{
		{&gatewayv1.Gateway{}, IndexClass, func(o client.Object) []string {
			return []string{string(o.(*gatewayv1.Gateway).Spec.GatewayClassName)}
		}},
		{&v1alpha1.Tunnel{}, IndexGatewayNamespace, func(o client.Object) []string {
			return []string{o.(*v1alpha1.Tunnel).Spec.Gateway.Namespace}
		}},
		{&discoveryv1.EndpointSlice{}, IndexService, func(o client.Object) []string {
			return []string{o.GetNamespace() + "/" + o.GetLabels()[discoveryv1.LabelServiceName]}
		}},
		{&discoveryv1.EndpointSlice{}, IndexServiceImport, func(o client.Object) []string {
			if name := o.GetLabels()[multicluster.LabelServiceName]; name != "" {
				return []string{o.GetNamespace() + "/" + name}
			}
			return nil
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
	all = slices.Concat(all, parametersIndexes(), policyIndexes(controller), accessPolicyIndexes(controller))
	for _, route := range []client.Object{&gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}} {
		all = append(all,
			Index{route, IndexParent, func(o client.Object) []string { return distinct(RouteParents(o, controller)) }},
			Index{route, IndexStatusParent, func(o client.Object) []string { return distinct(RouteStatusParents(o, controller)) }},
			Index{route, IndexBackend, func(o client.Object) []string { return distinct(BackendServices(o)) }},
			Index{route, IndexImportBackend, func(o client.Object) []string { return distinct(BackendImports(o)) }},
		)
	}
	return all
}

// ParentGateway returns the key for the Gateway in a ListenerSet's parentRef, and false
// if the parentRef names another kind.
func ParentGateway(set *gatewayv1.ListenerSet) (Key, bool) {
	ref := set.Spec.ParentRef
	return GatewayKey(string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(set.Namespace))), string(ref.Name)),
		ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName &&
			ptr.Deref(ref.Kind, gateway.KindGateway) == gateway.KindGateway
}

// RouteParents returns the parents in the route spec and in this controller's status
// entries.
func RouteParents(route client.Object, controller gatewayv1.GatewayController) []gateway.Owner {
	spec, _, ok := gateway.CommonRoute(route)
	if !ok {
		return nil
	}
	return append(owners(spec.ParentRefs, route.GetNamespace()), RouteStatusParents(route, controller)...)
}

// RouteStatusParents returns the parents in this controller's status entries.
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

// owners returns the Gateways and ListenerSets that the parentRefs name.
func owners(refs []gatewayv1.ParentReference, namespace string) []gateway.Owner {
	var found []gateway.Owner
	for _, ref := range refs {
		if owner, ok := gateway.OwnerOf(ref, namespace); ok {
			found = append(found, owner)
		}
	}
	return found
}

// distinct returns each different name once, as text.
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
