package controller

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// newTunnel returns the Tunnel for Gateway infra/<name>.
func newTunnel(name, id string) *v1alpha1.Tunnel {
	key := types.NamespacedName{Namespace: "infra", Name: name}
	return &v1alpha1.Tunnel{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: tunnel.ObjectName(key), UID: types.UID("tunnel-" + name)},
		Spec: v1alpha1.TunnelSpec{
			Gateway: v1alpha1.GatewayReference{Namespace: "infra", Name: name}, ControllerName: controllerName, ClusterUID: "cluster",
			AccountID: "00000000000000000000000000000000", Name: tunnel.RemoteName("west", key), DeletionPolicy: v1alpha1.DeletionPolicyDelete,
		},
		Status: v1alpha1.TunnelStatus{TunnelID: id},
	}
}

// withExisting configures the Tunnel to adopt an existing tunnel.
func withExisting(t *v1alpha1.Tunnel, id string) *v1alpha1.Tunnel {
	t.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: id}
	return t
}

// ownedBy makes the Tunnel the object's controller owner.
func ownedBy(t *v1alpha1.Tunnel, object client.Object) client.Object {
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(t, v1alpha1.GroupVersion.WithKind("Tunnel"))})
	return object
}

// wantKeys checks the error and compares the names in the keys.
func wantKeys(t *testing.T, keys []state.Key, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range keys {
		got = append(got, key.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the Gateways differ (-want +got):\n%s", diff)
	}
}

func TestWatchMapsATunnelToItsGatewayAndRivals(t *testing.T) {
	limited := newGateway("limited", "b.example.com")
	limited.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionFalse, Reason: conditions.ReasonLimitExceeded.String()}}
	h := newHarness(t, limited, newTunnel("alone", "t-1"), newTunnel("first", "t-2"), withExisting(newTunnel("second", ""), "t-2"), newTunnel("new", ""))
	w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}
	ctx := t.Context()
	mapTunnel := func(object *v1alpha1.Tunnel) ([]state.Key, error) { return w.fromTunnel(ctx, object) }

	keys, err := mapTunnel(newTunnel("alone", "t-1"))
	wantKeys(t, keys, err, "alone")
	keys, err = mapTunnel(newTunnel("first", "t-2"))
	wantKeys(t, keys, err, "first", "second")
	keys, err = mapTunnel(withExisting(newTunnel("second", ""), "t-2"))
	wantKeys(t, keys, err, "first", "second")
	keys, err = mapTunnel(newTunnel("new", ""))
	wantKeys(t, keys, err, "new")

	deleted := newTunnel("gone", "t-1")
	keys, err = mapTunnel(deleted) // its rival may claim the tunnel, and another Gateway is within the limit
	wantKeys(t, keys, err, "alone", "gone", "limited")
	keys, err = w.fromGateway(ctx, newGateway("gone", "c.example.com"))
	wantKeys(t, keys, err, "gone", "limited")
	keys, err = w.fromGateway(ctx, h.gateway())
	wantKeys(t, keys, err, "shared")
	elsewhere := newTunnel("alone", "t-1")
	elsewhere.Namespace = "infra"
	keys, err = mapTunnel(elsewhere)
	wantKeys(t, keys, err)
}

func TestWatchMapsConnectorObjectsToTheirGateway(t *testing.T) {
	object := newTunnel("shared", "t-1")
	h := newHarness(t, object)
	w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}
	for name, test := range map[string]struct {
		object client.Object
		want   []string
	}{
		"an object of the Tunnel":           {ownedBy(object, withName(controllerNamespace, "any", &appsv1.Deployment{})), []string{"shared"}},
		"an object of a deleted Tunnel":     {ownedBy(newTunnel("gone", ""), withName(controllerNamespace, "any", &appsv1.Deployment{})), nil},
		"an object with a conflicting name": {withName(controllerNamespace, sharedConnectors.Name, &corev1.ServiceAccount{}), []string{"shared"}},
		"another object":                    {withName(controllerNamespace, "other", &corev1.ServiceAccount{}), nil},
		"an object in another namespace":    {ownedBy(object, withName("infra", sharedConnectors.Name, &appsv1.Deployment{})), nil},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := w.fromConnectors(t.Context(), test.object)
			wantKeys(t, keys, err, test.want...)
		})
	}
}

func TestWatchMapsASecretToGateways(t *testing.T) {
	g := newGateway("secure", "s.example.com")
	g.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "certificate"}}}
	object := newTunnel("shared", "t-1")
	h := newHarness(t, g, object, newTunnel("retired", "t-2"))
	w := watches{
		reader: h.client(), controllerName: controllerName, namespace: controllerNamespace,
		account: credentials.Default{Account: object.Spec.AccountID, Secret: types.NamespacedName{Namespace: controllerNamespace, Name: "cloudflare"}},
	}
	metadata := func(namespace, name string) *metav1.PartialObjectMetadata {
		return secrets.Metadata(types.NamespacedName{Namespace: namespace, Name: name})
	}
	for name, test := range map[string]struct {
		secret *metav1.PartialObjectMetadata
		want   []string
	}{
		"a certificate":                    {metadata("infra", "certificate"), []string{"secure"}},
		"an API token":                     {metadata(controllerNamespace, "cloudflare"), []string{"retired", "shared"}},
		"the token of a tunnel":            {ownedBy(object, metadata(controllerNamespace, "any")).(*metav1.PartialObjectMetadata), []string{"shared"}},
		"a Secret with a conflicting name": {metadata(controllerNamespace, sharedConnectors.Name), []string{"shared"}},
		"an unrelated Secret":              {metadata("infra", "other"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := w.fromSecret(t.Context(), test.secret)
			wantKeys(t, keys, err, test.want...)
		})
	}
}

func TestManagedGatewaysIncludeGatewaysOfTunnels(t *testing.T) {
	// managedGateways returns the Gateways that use this controller, and the Gateways
	// of its Tunnels, even if such a Gateway is gone.
	unmanaged := newGateway("unmanaged", "b.example.com")
	unmanaged.Spec.GatewayClassName = "unmanaged"
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "unmanaged"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}}
	other := newTunnel("other", "t-3")
	other.Spec.ControllerName = "example.com/other"
	h := newHarness(t, unmanaged, class, newTunnel("shared", "t-1"), newTunnel("retired", "t-2"), other)
	w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}
	keys, err := w.managedGateways(context.Background())
	wantKeys(t, keys, err, "retired", "shared")
}
