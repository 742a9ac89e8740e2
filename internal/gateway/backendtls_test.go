package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// policySnapshot returns a Gateway with Envoy whose only route leads to shop/cart.
func policySnapshot(policies ...*gatewayv1.BackendTLSPolicy) *gateway.Snapshot {
	c := newTenantCluster(0)
	c.HTTPRoutes = nil
	c.addNamespace("shop", "")
	c.addRoute("shop", "", 1, "").Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "cart", Port: ptr.To[gatewayv1.PortNumber](443)},
	}}}}}
	c.Services.Set(types.NamespacedName{Namespace: "shop", Name: "cart"}, &corev1.Service{
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.5", Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	})
	c.DataPlane, c.BackendTLSPolicies = v1alpha1.DataPlaneEnvoy, policies
	return c.Snapshot
}

// cartPolicy returns a policy for the Service cart.
func cartPolicy(name string) *gatewayv1.BackendTLSPolicy {
	p := &gatewayv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: "cart"}}}
	p.Spec.Validation = gatewayv1.BackendTLSPolicyValidation{Hostname: "cart.example.com", WellKnownCACertificates: ptr.To(gatewayv1.WellKnownCACertificatesSystem)}
	return p
}

// A policy whose status is full is not implemented, and the route says so: its backend
// gets no request without TLS.
func TestPolicyWithAFullStatusIsNotImplemented(t *testing.T) {
	policy := cartPolicy("cart")
	for i := range 16 {
		policy.Status.Ancestors = append(policy.Status.Ancestors, gatewayv1.PolicyAncestorStatus{
			AncestorRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprintf("g%d", i))}, ControllerName: "example.com/other",
		})
	}
	s := policySnapshot(policy)
	result := gateway.Build(s, envoyOptions())
	if clusters := envoy.Render(result.Table).Clusters; len(clusters) != 0 {
		t.Errorf("Envoy has the clusters %v", clusters)
	}
	report := result.Report(gateway.Outcome{})
	if len(report.Policies) != 1 || report.Policies[0].Ancestor != nil {
		t.Errorf("the policy gets %+v", report.Policies)
	}
	if got := result.Routes[0].Unresolved; got == nil || got.Reason.String() != "InvalidBackendTLSPolicy" || !strings.Contains(got.Message, "16") {
		t.Errorf("the route has the problem %+v", got)
	}
	policy.Status.Ancestors[3] = gatewayv1.PolicyAncestorStatus{
		AncestorRef:    gatewayv1.ParentReference{Namespace: ptr.To(gatewayv1.Namespace(s.Gateway.Namespace)), Name: gatewayv1.ObjectName(s.Gateway.Name)},
		ControllerName: envoyOptions().ControllerName,
	}
	if got := gateway.Build(s, envoyOptions()); got.Routes[0].Unresolved != nil || got.Report(gateway.Outcome{}).Policies[0].Ancestor == nil {
		t.Errorf("with the Gateway's own entry, the route has the problem %+v", got.Routes[0].Unresolved)
	}
}

// Only the ConfigMaps of effective policies are read, however many policies a tenant
// creates.
func TestOnlyEffectivePoliciesReadConfigMaps(t *testing.T) {
	var policies []*gatewayv1.BackendTLSPolicy
	for i := range 100 {
		p := cartPolicy(fmt.Sprintf("p%02d", i))
		p.Spec.Validation.WellKnownCACertificates = nil
		p.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: gatewayv1.ObjectName(p.Name)}}
		if i%2 == 1 {
			p.Spec.TargetRefs[0].SectionName = ptr.To(gatewayv1.SectionName(fmt.Sprintf("none-%d", i)))
		}
		policies = append(policies, p)
	}
	if got := gateway.CABundlesToRead(policySnapshot(policies...)); len(got) != 1 || got[0].Name != "p00" {
		t.Errorf("the ConfigMaps %v are read, want only shop/p00", got)
	}
}

// Large certificate authorities count as rules.
func TestLargeAuthoritiesCount(t *testing.T) {
	usage := func(size int) int {
		p := cartPolicy("cart")
		p.Spec.Validation.WellKnownCACertificates = nil
		p.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: "ca"}}
		s := policySnapshot(p)
		s.CABundles = map[types.NamespacedName]gateway.CABundle{{Namespace: "shop", Name: "ca"}: {Certificates: strings.Repeat("x", size), Digest: "x"}}
		return gateway.Build(s, envoyOptions()).Usage.ByLimit()[0].Used
	}
	if small, large := usage(4<<10), usage(100<<10); large-small < 100 || large-small > 110 {
		t.Errorf("4 KiB count as %d rules, and 100 KiB as %d", small, large)
	}
}
