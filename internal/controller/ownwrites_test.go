package controller

import (
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// A change causes one reconcile with either data plane: the statuses that the reconcile writes
// cause no other one. An external change of a status causes one, which corrects the status.
func TestChangeCausesOneReconcile(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		t.Run(string(plane), func(t *testing.T) {
			h := newLargeHarness(t, plane, 3)
			route := &gatewayv1.HTTPRoute{}
			h.change("infra", routeName(1), route, func() {
				route.Generation++
				route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
					Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To("/changed"),
				}}}
			})
			published := len(h.xds.publications)
			if reconciles := h.reconcileQueued(); reconciles != 1 {
				t.Errorf("%d reconciles of a change, want 1", reconciles)
			}
			if n := len(h.xds.publications) - published; plane == v1alpha1.DataPlaneEnvoy && n != 1 {
				t.Errorf("%d publications of a change, want 1", n)
			}
			if got := observedGeneration(h); got != route.Generation {
				t.Errorf("the route's status is for generation %d, want %d", got, route.Generation)
			}

			h.change("infra", routeName(1), route, func() {})
			h.reconcileQueued()
			route.Status.Parents = nil
			if err := h.kube.Status().Update(t.Context(), route); err != nil {
				t.Fatal(err)
			}
			if reconciles := h.reconcileQueued(); reconciles != 1 {
				t.Errorf("%d reconciles of an external change, want 1", reconciles)
			}
			if got := observedGeneration(h); got != route.Generation {
				t.Errorf("after an external change, the route's status is for generation %d, want %d", got, route.Generation)
			}
		})
	}
}

// observedGeneration returns the generation for which the changed route's status is, or 0.
func observedGeneration(h *harness) int64 {
	h.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := h.kube.Get(h.t.Context(), client.ObjectKey{Namespace: "infra", Name: routeName(1)}, route); err != nil {
		h.t.Fatal(err)
	}
	if len(route.Status.Parents) == 0 {
		return 0
	}
	return route.Status.Parents[0].Conditions[0].ObservedGeneration
}
