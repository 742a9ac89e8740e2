package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	gatewayAPI = "gateway.networking.k8s.io/v1"
	ownAPI     = "tunnelgateway.dev/v1alpha1"
	rbacAPI    = "rbac.authorization.k8s.io/v1"
)

// operation is a request to the API server as the user of a client.
type attempt = func(context.Context, client.Client) error

// deniedToTeams lists operations that the team "orders" of the multi-tenancy
// guide must not be able to perform.
func notForTeams() []TableEntry {
	gateway, class := thing(gatewayAPI, "Gateway", "gateways", "shared"), thing(gatewayAPI, "GatewayClass", "", "any")
	settings, secret := thing(ownAPI, "TunnelConfiguration", "gateways", "teams"), thing("v1", "Secret", "gateways", "shared-tunnel-token")
	otherSet, otherRoute := thing(gatewayAPI, "ListenerSet", "journal", "journal"), thing(gatewayAPI, "HTTPRoute", "journal", "pages")
	set, route := thing(gatewayAPI, "ListenerSet", "orders", "orders"), thing(gatewayAPI, "HTTPRoute", "orders", "orders")
	return []TableEntry{
		Entry("to create a Gateway", creating(thing(gatewayAPI, "Gateway", "orders", "mine"))),
		Entry("to change the Gateway", changing(gateway)),
		Entry("to delete the Gateway", deleting(gateway)),
		Entry("to list Gateways", listing(gateway)), // other than the shared Gateway
		Entry("to create a GatewayClass", creating(class)),
		Entry("to change a GatewayClass", changing(class)),
		Entry("to create a TunnelConfiguration", creating(thing(ownAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to read a TunnelConfiguration", reading(settings)),
		Entry("to change a TunnelConfiguration", changing(settings)),
		Entry("to read the tunnel's token", reading(secret)),
		Entry("to list Secrets in the Gateway's namespace", listing(secret)),
		Entry("to create Secrets in the Gateway's namespace", creating(thing("v1", "Secret", "gateways", "mine"))),
		Entry("to create a ReferenceGrant", creating(thing("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "orders", "mine"))),
		Entry("to create a Service", creating(thing("v1", "Service", "orders", "mine"))),
		Entry("to create EndpointSlices", creating(thing("discovery.k8s.io/v1", "EndpointSlice", "orders", "mine"))),
		Entry("to read another team's ListenerSet", reading(otherSet)),
		Entry("to create a ListenerSet in another team's namespace", creating(thing(gatewayAPI, "ListenerSet", "journal", "mine"))),
		Entry("to change another team's ListenerSet", changing(otherSet)),
		Entry("to delete another team's ListenerSet", deleting(otherSet)),
		Entry("to read another team's route", reading(otherRoute)),
		Entry("to change another team's route", changing(otherRoute)),
		Entry("to delete another team's route", deleting(otherRoute)),
		Entry("to create a route in the Gateway's namespace", creating(thing(gatewayAPI, "HTTPRoute", "gateways", "mine"))),
		Entry("to write the status of its ListenerSet", writingStatus(set)),
		Entry("to write the status of its route", writingStatus(route)),
		Entry("to write the Gateway's status", writingStatus(gateway)),
		Entry("to change the domain of its namespace", changing(thing("v1", "Namespace", "", "orders"))),
		Entry("to grant itself permissions", creating(thing("rbac.authorization.k8s.io/v1", "RoleBinding", "orders", "mine"))),
		Entry("to delete the admission policy", deleting(thing("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "any"))),
	}
}

// allowedToPlatformTeam lists operations that the platform team of the guide can perform.
func forThePlatformTeam() []TableEntry {
	gateway, set := thing(gatewayAPI, "Gateway", "gateways", "shared"), thing(gatewayAPI, "ListenerSet", "orders", "orders")
	settings, route := thing(ownAPI, "TunnelConfiguration", "gateways", "teams"), thing(gatewayAPI, "HTTPRoute", "journal", "pages")
	class := thing(gatewayAPI, "GatewayClass", "", "permissions")
	class.Object["spec"] = map[string]any{"controllerName": "example.com/permissions"}
	more := thing(ownAPI, "TunnelConfiguration", "gateways", "more")
	more.Object["spec"] = map[string]any{}
	return []TableEntry{
		Entry("to change the Gateway", changing(gateway)),
		Entry("to delete the Gateway", deleting(gateway)),
		Entry("to create a GatewayClass", creating(class)),
		Entry("to create a TunnelConfiguration", creating(more)),
		Entry("to change a TunnelConfiguration", changing(settings)),
		Entry("to create the Secret with the API token", creating(thing("v1", "Secret", "gateways", "token"))),
		Entry("to create a ReferenceGrant in the Gateway's namespace", creating(referenceGrant("gateways"))),
		Entry("to list a team's ListenerSets", listing(set)),
		Entry("to list a team's routes", listing(route)),
		Entry("to delete a team's ListenerSet", deleting(set)),
		Entry("to delete a team's route", deleting(route)),
	}
}

// deniedToPlatformTeam lists operations that the platform team must not be able to perform.
func notForThePlatformTeam() []TableEntry {
	privileged := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	return []TableEntry{
		Entry("to create a Gateway outside its namespace", creating(thing(gatewayAPI, "Gateway", "kube-system", "mine"))),
		Entry("to create a TunnelConfiguration outside its namespace", creating(thing(ownAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to create a ReferenceGrant in a team's namespace", creating(referenceGrant("orders"))),
		Entry("to change a team's ListenerSet", changing(thing(gatewayAPI, "ListenerSet", "orders", "orders"))),
		Entry("to change a team's route", changing(thing(gatewayAPI, "HTTPRoute", "orders", "orders"))),
		Entry("to read a team's Secrets", reading(thing("v1", "Secret", "orders", "any"))),
		Entry("to create a namespace", creating(thing("v1", "Namespace", "", "mine"))),
		Entry("to change the domain of a namespace", changing(thing("v1", "Namespace", "", "orders"))),
		Entry("to weaken the Pod Security level of a namespace", patching(thing("v1", "Namespace", "", "kube-system"), privileged)),
		Entry("to grant permissions", creating(thing("rbac.authorization.k8s.io/v1", "RoleBinding", "gateways", "mine"))),
		Entry("to delete the admission policy", deleting(thing("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "listenersets-keep-to-their-domain"))),
		Entry("to write the status of the Gateway", writingStatus(thing(gatewayAPI, "Gateway", "gateways", "shared"))),
	}
}

// referenceGrant returns a ReferenceGrant for the Secrets of the namespace.
func referenceGrant(namespace string) *unstructured.Unstructured {
	u := thing("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", namespace, "mine")
	u.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "namespace": "journal"}},
		"to":   []any{map[string]any{"group": "", "kind": "Secret"}},
	}
	return u
}

// newObject returns an object without content.
func thing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func creating(u *unstructured.Unstructured) attempt {
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, u.DeepCopy()) }
}

func reading(u *unstructured.Unstructured) attempt {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
	}
}

func deleting(u *unstructured.Unstructured) attempt {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, u.DeepCopy()) }
}

// listOperation lists the objects with the kind and namespace of the object.
func listing(u *unstructured.Unstructured) attempt {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(u.GetAPIVersion())
	list.SetKind(u.GetKind() + "List")
	return func(ctx context.Context, c client.Client) error {
		return c.List(ctx, list, client.InNamespace(u.GetNamespace()))
	}
}

func changing(u *unstructured.Unstructured) attempt {
	return patching(u, []byte(`{"metadata":{"labels":{"example.com/domain":"www.example.com"}}}`))
}

func patching(u *unstructured.Unstructured, patch []byte) attempt {
	raw := client.RawPatch(types.MergePatchType, patch)
	return func(ctx context.Context, c client.Client) error { return c.Patch(ctx, u.DeepCopy(), raw) }
}

func writingStatus(u *unstructured.Unstructured) attempt {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))
	return func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, u.DeepCopy(), patch) }
}
