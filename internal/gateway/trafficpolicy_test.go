package gateway_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

const messageIgnoredPolicy = "All references are resolved. HTTP/2 and gRPC requests go to all ready pods, so these fields have no effect for them: internalTrafficPolicy of Service shop/cart."

// HTTP/2 requests go to the pods, so the ResolvedRefs message names the fields that
// prefer pods near the client.
func TestIgnoredTrafficPolicies(t *testing.T) {
	h2c, https := new("kubernetes.io/h2c"), new("https")
	local := new(corev1.ServiceInternalTrafficPolicyLocal)
	for name, test := range map[string]struct {
		appProtocol *string
		policy      *corev1.ServiceInternalTrafficPolicy
		http2Origin bool
		plane       v1alpha1.DataPlane
		ignored     bool
	}{
		"HTTP/2":                      {h2c, local, false, v1alpha1.DataPlaneEnvoy, true},
		"HTTP/1":                      {nil, local, false, v1alpha1.DataPlaneEnvoy, false},
		"HTTP/2 without a policy":     {h2c, nil, false, v1alpha1.DataPlaneEnvoy, false},
		"TLS":                         {https, local, false, v1alpha1.DataPlaneEnvoy, false},
		"TLS with HTTP/2":             {https, local, true, v1alpha1.DataPlaneEnvoy, true},
		"TLS with HTTP/2, in rules":   {https, local, true, v1alpha1.DataPlaneIngressRules, false},
		"HTTP/1 with the HTTP/2 flag": {nil, local, true, v1alpha1.DataPlaneEnvoy, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := trafficSnapshot(test.http2Origin, test.plane)
			s.Services.Set(types.NamespacedName{Namespace: "shop", Name: "cart"}, &corev1.Service{Spec: corev1.ServiceSpec{
				ClusterIP: "10.96.0.5", InternalTrafficPolicy: test.policy, Ports: []corev1.ServicePort{{Port: 80, AppProtocol: test.appProtocol}},
			}})
			report := gateway.Build(s, options).Report(gateway.Outcome{})
			got, want := "", "All references are resolved."
			for _, c := range report.Routes[0].Parents[0].Conditions {
				if c.Type == conditions.TypeResolvedRefs.String() {
					got = c.Message
				}
			}
			if test.ignored {
				want = messageIgnoredPolicy
			}
			if got != want {
				t.Errorf("got message %q, want %q", got, want)
			}
		})
	}
}

// trafficSnapshot returns a Gateway with a route to Service shop/cart.
func trafficSnapshot(http2Origin bool, plane v1alpha1.DataPlane) *gateway.Snapshot {
	c := newTenantCluster(0)
	c.HTTPRoutes = nil
	c.addNamespace("shop", "")
	c.addRoute("shop", "", 1, "").Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "cart", Port: new(gatewayv1.PortNumber(80))},
	}}}}}
	c.DataPlane = plane
	if http2Origin {
		c.Class = &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
		}}}
		c.ClassConfiguration = &v1alpha1.TunnelConfiguration{Spec: v1alpha1.TunnelConfigurationSpec{
			OriginRequest: &v1alpha1.OriginRequest{HTTP2Origin: new(true)},
		}}
	}
	return c.Snapshot
}
