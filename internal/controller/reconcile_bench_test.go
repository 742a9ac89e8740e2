package controller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// BenchmarkReconcile reconciles a Gateway with 3,000 routes after one has changed. The
// simulated API server adds to the cost.
func BenchmarkReconcile(b *testing.B) {
	const routes = 3000
	var objects []client.Object
	for i := range routes {
		route := newRoute()
		route.Name = fmt.Sprintf("r%04d", i)
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + ".example.com")}
		objects = append(objects, route)
	}
	h := newHarness(b, objects...)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Limits = &v1alpha1.Limits{RulesPerTunnel: ptr.To[int32](2 * routes)}
	})
	h.setHostname("*.example.com")
	h.reconcileFor(driftInterval / 2)
	changed := &gatewayv1.HTTPRoute{}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		h.change("infra", "r1500", changed, func() {
			changed.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
				Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To(fmt.Sprintf("/%d", n)),
			}}}
		})
		h.advance(driftInterval / 100)
		h.cloud.ResetCalls()
		b.StartTimer()
		h.reconcileOnce()
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}
