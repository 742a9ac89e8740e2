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
	projectAPI = "tunnelgateway.dev/v1alpha1"
	rbacAPI    = "rbac.authorization.k8s.io/v1"
)

// operation is a request to the API server as the client's user.
type operation = func(context.Context, client.Client) error

// deniedToTeams lists operations that the team "orders" in the multi-tenancy guide must
// not be able to perform.
func deniedToTeams() []TableEntry {
	gateway, class := newObject(gatewayAPI, "Gateway", "gateways", "shared"), newObject(gatewayAPI, "GatewayClass", "", "any")
	settings, secret := newObject(projectAPI, "TunnelConfiguration", "gateways", "teams"), newObject("v1", "Secret", "gateways", "shared-tunnel-token")
	otherSet, otherRoute := newObject(gatewayAPI, "ListenerSet", "journal", "journal"), newObject(gatewayAPI, "HTTPRoute", "journal", "pages")
	set, route := newObject(gatewayAPI, "ListenerSet", "orders", "orders"), newObject(gatewayAPI, "HTTPRoute", "orders", "orders")
	return []TableEntry{
		Entry("to create a Gateway", createOperation(newObject(gatewayAPI, "Gateway", "orders", "mine"))),
		Entry("to change the Gateway", updateOperation(gateway)),
		Entry("to delete the Gateway", deleteOperation(gateway)),
		Entry("to list Gateways", listOperation(gateway)), // other than the shared Gateway
		Entry("to create a GatewayClass", createOperation(class)),
		Entry("to change a GatewayClass", updateOperation(class)),
		Entry("to create a TunnelConfiguration", createOperation(newObject(projectAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to read a TunnelConfiguration", getOperation(settings)),
		Entry("to change a TunnelConfiguration", updateOperation(settings)),
		Entry("to read the tunnel's token", getOperation(secret)),
		Entry("to list Secrets in the Gateway's namespace", listOperation(secret)),
		Entry("to create Secrets in the Gateway's namespace", createOperation(newObject("v1", "Secret", "gateways", "mine"))),
		Entry("to create a ReferenceGrant", createOperation(newObject("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "orders", "mine"))),
		Entry("to create a Service", createOperation(newObject("v1", "Service", "orders", "mine"))),
		Entry("to create EndpointSlices", createOperation(newObject("discovery.k8s.io/v1", "EndpointSlice", "orders", "mine"))),
		Entry("to read another team's ListenerSet", getOperation(otherSet)),
		Entry("to create a ListenerSet in another team's namespace", createOperation(newObject(gatewayAPI, "ListenerSet", "journal", "mine"))),
		Entry("to change another team's ListenerSet", updateOperation(otherSet)),
		Entry("to delete another team's ListenerSet", deleteOperation(otherSet)),
		Entry("to read another team's route", getOperation(otherRoute)),
		Entry("to change another team's route", updateOperation(otherRoute)),
		Entry("to delete another team's route", deleteOperation(otherRoute)),
		Entry("to create a route in the Gateway's namespace", createOperation(newObject(gatewayAPI, "HTTPRoute", "gateways", "mine"))),
		Entry("to write the status of its ListenerSet", updateStatusOperation(set)),
		Entry("to write the status of its route", updateStatusOperation(route)),
		Entry("to write the Gateway's status", updateStatusOperation(gateway)),
		Entry("to change the domain of its namespace", updateOperation(newObject("v1", "Namespace", "", "orders"))),
		Entry("to grant itself permissions", createOperation(newObject("rbac.authorization.k8s.io/v1", "RoleBinding", "orders", "mine"))),
		Entry("to delete the admission policy", deleteOperation(newObject("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "any"))),
	}
}

// allowedToPlatformTeam lists operations that the guide's platform team can perform.
func allowedToPlatformTeam() []TableEntry {
	gateway, set := newObject(gatewayAPI, "Gateway", "gateways", "shared"), newObject(gatewayAPI, "ListenerSet", "orders", "orders")
	settings, route := newObject(projectAPI, "TunnelConfiguration", "gateways", "teams"), newObject(gatewayAPI, "HTTPRoute", "journal", "pages")
	class := newObject(gatewayAPI, "GatewayClass", "", "permissions")
	class.Object["spec"] = map[string]any{"controllerName": "example.com/permissions"}
	additional := newObject(projectAPI, "TunnelConfiguration", "gateways", "more")
	additional.Object["spec"] = map[string]any{}
	return []TableEntry{
		Entry("to change the Gateway", updateOperation(gateway)),
		Entry("to delete the Gateway", deleteOperation(gateway)),
		Entry("to create a GatewayClass", createOperation(class)),
		Entry("to create a TunnelConfiguration", createOperation(additional)),
		Entry("to change a TunnelConfiguration", updateOperation(settings)),
		Entry("to create the Secret with the API token", createOperation(newObject("v1", "Secret", "gateways", "token"))),
		Entry("to create a ReferenceGrant in the Gateway's namespace", createOperation(referenceGrant("gateways"))),
		Entry("to list a team's ListenerSets", listOperation(set)),
		Entry("to list a team's routes", listOperation(route)),
		Entry("to delete a team's ListenerSet", deleteOperation(set)),
		Entry("to delete a team's route", deleteOperation(route)),
	}
}

// deniedToPlatformTeam lists operations that the platform team must not be able
// to perform.
func deniedToPlatformTeam() []TableEntry {
	privileged := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	return []TableEntry{
		Entry("to create a Gateway outside its namespace", createOperation(newObject(gatewayAPI, "Gateway", "kube-system", "mine"))),
		Entry("to create a TunnelConfiguration outside its namespace", createOperation(newObject(projectAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to create a ReferenceGrant in a team's namespace", createOperation(referenceGrant("orders"))),
		Entry("to change a team's ListenerSet", updateOperation(newObject(gatewayAPI, "ListenerSet", "orders", "orders"))),
		Entry("to change a team's route", updateOperation(newObject(gatewayAPI, "HTTPRoute", "orders", "orders"))),
		Entry("to read a team's Secrets", getOperation(newObject("v1", "Secret", "orders", "any"))),
		Entry("to create a namespace", createOperation(newObject("v1", "Namespace", "", "mine"))),
		Entry("to change the domain of a namespace", updateOperation(newObject("v1", "Namespace", "", "orders"))),
		Entry("to weaken the Pod Security level of a namespace", patchOperation(newObject("v1", "Namespace", "", "kube-system"), privileged)),
		Entry("to grant permissions", createOperation(newObject("rbac.authorization.k8s.io/v1", "RoleBinding", "gateways", "mine"))),
		Entry("to delete the admission policy", deleteOperation(newObject("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "listenersets-keep-to-their-domain"))),
		Entry("to write the status of the Gateway", updateStatusOperation(newObject(gatewayAPI, "Gateway", "gateways", "shared"))),
	}
}

// referenceGrant returns a ReferenceGrant for the Secrets in the namespace.
func referenceGrant(namespace string) *unstructured.Unstructured {
	u := newObject("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", namespace, "mine")
	u.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "namespace": "journal"}},
		"to":   []any{map[string]any{"group": "", "kind": "Secret"}},
	}
	return u
}

// newObject returns an object without content.
func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func createOperation(u *unstructured.Unstructured) operation {
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, u.DeepCopy()) }
}

func getOperation(u *unstructured.Unstructured) operation {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
	}
}

func deleteOperation(u *unstructured.Unstructured) operation {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, u.DeepCopy()) }
}

// listOperation lists the objects with the same kind and namespace as the object.
func listOperation(u *unstructured.Unstructured) operation {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(u.GetAPIVersion())
	list.SetKind(u.GetKind() + "List")
	return func(ctx context.Context, c client.Client) error {
		return c.List(ctx, list, client.InNamespace(u.GetNamespace()))
	}
}

func updateOperation(u *unstructured.Unstructured) operation {
	return patchOperation(u, []byte(`{"metadata":{"labels":{"example.com/team":"other"},"annotations":{"tunnelgateway.dev/hostnames":"*"}}}`))
}

func patchOperation(u *unstructured.Unstructured, patch []byte) operation {
	raw := client.RawPatch(types.MergePatchType, patch)
	return func(ctx context.Context, c client.Client) error { return c.Patch(ctx, u.DeepCopy(), raw) }
}

func updateStatusOperation(u *unstructured.Unstructured) operation {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))
	return func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, u.DeepCopy(), patch) }
}
