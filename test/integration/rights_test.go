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

// attempt is something that somebody tries to do.
type attempt = func(context.Context, client.Client) error

// notForTeams is what the team "orders" of the guide to multi-tenancy tries.
func notForTeams() []TableEntry {
	gateway, class := thing(gatewayAPI, "Gateway", "gateways", "shared"), thing(gatewayAPI, "GatewayClass", "", "any")
	settings, secret := thing(ownAPI, "TunnelConfiguration", "gateways", "teams"), thing("v1", "Secret", "gateways", "shared-tunnel-token")
	foreignSet, foreignRoute := thing(gatewayAPI, "ListenerSet", "journal", "journal"), thing(gatewayAPI, "HTTPRoute", "journal", "pages")
	set, route := thing(gatewayAPI, "ListenerSet", "orders", "orders"), thing(gatewayAPI, "HTTPRoute", "orders", "orders")
	return []TableEntry{
		Entry("to make a Gateway of its own", creating(thing(gatewayAPI, "Gateway", "orders", "mine"))),
		Entry("to change the Gateway", changing(gateway)),
		Entry("to delete the Gateway", deleting(gateway)),
		Entry("to list Gateways", listing(gateway)), // more than the one
		Entry("to make a GatewayClass", creating(class)),
		Entry("to change a GatewayClass", changing(class)),
		Entry("to make a TunnelConfiguration", creating(thing(ownAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to read a TunnelConfiguration", reading(settings)),
		Entry("to change a TunnelConfiguration", changing(settings)),
		Entry("to read the tunnel's token", reading(secret)),
		Entry("to list Secrets beside the Gateway", listing(secret)),
		Entry("to make Secrets beside the Gateway", creating(thing("v1", "Secret", "gateways", "mine"))),
		Entry("to make a ReferenceGrant", creating(thing("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "orders", "mine"))),
		Entry("to make a Service", creating(thing("v1", "Service", "orders", "mine"))),
		Entry("to write EndpointSlices", creating(thing("discovery.k8s.io/v1", "EndpointSlice", "orders", "mine"))),
		Entry("to read another team's set", reading(foreignSet)),
		Entry("to make a set in another team's namespace", creating(thing(gatewayAPI, "ListenerSet", "journal", "mine"))),
		Entry("to change another team's set", changing(foreignSet)),
		Entry("to delete another team's set", deleting(foreignSet)),
		Entry("to read another team's route", reading(foreignRoute)),
		Entry("to change another team's route", changing(foreignRoute)),
		Entry("to delete another team's route", deleting(foreignRoute)),
		Entry("to make a route beside the Gateway", creating(thing(gatewayAPI, "HTTPRoute", "gateways", "mine"))),
		Entry("to write the status of its set", writingStatus(set)),
		Entry("to write the status of its route", writingStatus(route)),
		Entry("to write the Gateway's status", writingStatus(gateway)),
		Entry("to change its domain", changing(thing("v1", "Namespace", "", "orders"))),
		Entry("to give itself rights", creating(thing("rbac.authorization.k8s.io/v1", "RoleBinding", "orders", "mine"))),
		Entry("to delete the policy", deleting(thing("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "any"))),
	}
}

// forThePlatformTeam is what the platform team of the guide may do.
func forThePlatformTeam() []TableEntry {
	gateway, set := thing(gatewayAPI, "Gateway", "gateways", "shared"), thing(gatewayAPI, "ListenerSet", "orders", "orders")
	settings, route := thing(ownAPI, "TunnelConfiguration", "gateways", "teams"), thing(gatewayAPI, "HTTPRoute", "journal", "pages")
	class := thing(gatewayAPI, "GatewayClass", "", "rights")
	class.Object["spec"] = map[string]any{"controllerName": "example.com/rights"}
	more := thing(ownAPI, "TunnelConfiguration", "gateways", "more")
	more.Object["spec"] = map[string]any{}
	return []TableEntry{
		Entry("to change the Gateway", changing(gateway)),
		Entry("to delete the Gateway", deleting(gateway)),
		Entry("to make a GatewayClass", creating(class)),
		Entry("to make a TunnelConfiguration", creating(more)),
		Entry("to change a TunnelConfiguration", changing(settings)),
		Entry("to make the Secret of the API token", creating(thing("v1", "Secret", "gateways", "token"))),
		Entry("to make a ReferenceGrant beside the Gateway", creating(referenceGrant("gateways"))),
		Entry("to read a team's sets", listing(set)),
		Entry("to read a team's routes", listing(route)),
		Entry("to delete a team's set", deleting(set)),
		Entry("to delete a team's route", deleting(route)),
	}
}

// notForThePlatformTeam is what the platform team of the guide tries.
func notForThePlatformTeam() []TableEntry {
	privileged := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	return []TableEntry{
		Entry("to make a Gateway elsewhere", creating(thing(gatewayAPI, "Gateway", "kube-system", "mine"))),
		Entry("to make a TunnelConfiguration elsewhere", creating(thing(ownAPI, "TunnelConfiguration", "orders", "mine"))),
		Entry("to make a ReferenceGrant in a team's namespace", creating(referenceGrant("orders"))),
		Entry("to change a team's set", changing(thing(gatewayAPI, "ListenerSet", "orders", "orders"))),
		Entry("to change a team's route", changing(thing(gatewayAPI, "HTTPRoute", "orders", "orders"))),
		Entry("to read a team's Secrets", reading(thing("v1", "Secret", "orders", "any"))),
		Entry("to make namespaces", creating(thing("v1", "Namespace", "", "mine"))),
		Entry("to change a namespace's domain", changing(thing("v1", "Namespace", "", "orders"))),
		Entry("to lift a namespace's pod security", patching(thing("v1", "Namespace", "", "kube-system"), privileged)),
		Entry("to give rights", creating(thing("rbac.authorization.k8s.io/v1", "RoleBinding", "gateways", "mine"))),
		Entry("to change the policy", deleting(thing("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "listenersets-keep-to-their-domain"))),
		Entry("to write a status", writingStatus(thing(gatewayAPI, "Gateway", "gateways", "shared"))),
	}
}

// referenceGrant returns one for the Secrets of the namespace.
func referenceGrant(namespace string) *unstructured.Unstructured {
	u := thing("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", namespace, "mine")
	u.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "namespace": "journal"}},
		"to":   []any{map[string]any{"group": "", "kind": "Secret"}},
	}
	return u
}

// thing names an object.
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

// listing lists the objects that are beside the one.
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
	nothing := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))
	return func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, u.DeepCopy(), nothing) }
}
