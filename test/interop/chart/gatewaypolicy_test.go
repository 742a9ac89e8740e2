package chart

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// newServing creates a Gateway with the number of attached ListenerSets in its status. An
// empty address means that it has no tunnel.
func (c *policyCluster) newServing(t *testing.T, namespace, name, address string, attached int32) *gatewayv1.Gateway {
	t.Helper()
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"case": name}}}
	g.Spec.GatewayClassName = "any"
	g.Spec.Listeners = []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	c.create(t, g)
	if address != "" {
		g.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Type: ptr.To(gatewayv1.HostnameAddressType), Value: address}}
	}
	g.Status.AttachedListenerSets = &attached
	if err := c.kube.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *policyCluster) protectsGateways(t *testing.T) {
	const namespace, address = "protected", "9f2c8f4e-0000-4000-8000-000000000000.cfargotunnel.com"
	c.create(t, newNamespace(namespace))
	refused := func(g *gatewayv1.Gateway) string {
		return fmt.Sprintf("Gateway %s/%s serves %d attached ListenerSets, whose hostnames would stop working; if it must be deleted, first run: "+
			"kubectl annotate gateways.gateway.networking.k8s.io -n %[1]s %[2]s tunnelgateway.dev/allow-deletion=true", g.Namespace, g.Name, *g.Status.AttachedListenerSets)
	}
	used := c.newServing(t, namespace, "used", address, 2)
	dryRun := client.NewDryRunClient(c.kube)
	eventually(t, "the policy applies", func() error { return wantRefusal(dryRun.Delete(t.Context(), used), refused(used)) })

	for _, allowed := range []*gatewayv1.Gateway{
		c.newServing(t, namespace, "unused", address, 0),
		c.newServing(t, namespace, "of-another-controller", "gateway.example.com", 3),
		c.newServing(t, namespace, "without-a-tunnel", "", 3),
	} {
		if err := c.kube.Delete(t.Context(), allowed); err != nil {
			t.Errorf("Gateway %s: %v", allowed.Name, err)
		}
	}
	inCollection := c.kube.DeleteAllOf(t.Context(), &gatewayv1.Gateway{}, client.InNamespace(namespace), client.MatchingLabels(used.Labels))
	if err := wantRefusal(inCollection, refused(used)); err != nil {
		t.Errorf("a collection: %v", err)
	}
	for _, test := range []struct{ value, want string }{{"false", refused(used)}, {"true", ""}} {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AllowDeletionAnnotation, test.value)
		if err := c.kube.Patch(t.Context(), used, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		if err := wantRefusal(dryRun.Delete(t.Context(), used), test.want); err != nil {
			t.Errorf("with the annotation %s: %v", test.value, err)
		}
	}
	if err := c.kube.Delete(t.Context(), used); err != nil {
		t.Error(err)
	}
}

// protectsGatewaysOfDeletedNamespaces deletes a namespace with a Gateway, whose deletion
// ends when an annotation confirms it.
func (c *policyCluster) protectsGatewaysOfDeletedNamespaces(t *testing.T) {
	const name = "lost"
	c.create(t, newNamespace(name))
	g := c.newServing(t, name, "used", "9f2c8f4e-0000-4000-8000-000000000000.cfargotunnel.com", 1)
	if err := c.kube.Delete(t.Context(), newNamespace(name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to report the Gateway", func() error {
		found := newNamespace(name)
		if err := c.kube.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionContentFailure && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", found.Status.Conditions)
	})
	if err := c.kube.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil || g.DeletionTimestamp != nil {
		t.Fatalf("the Gateway is deleted: %v, %v", g.DeletionTimestamp, err)
	}
	g.Annotations = map[string]string{v1alpha1.AllowDeletionAnnotation: "true"}
	if err := c.kube.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to be deleted", func() error {
		found := newNamespace(name)
		if err := c.kube.Get(t.Context(), client.ObjectKeyFromObject(found), found); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the namespace exists: %v, %w", found.Status.Conditions, err)
		}
		return nil
	})
}
