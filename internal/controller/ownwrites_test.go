package controller

import (
	"context"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
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

// ownWriteHarness writes the statuses of a route that is attached to the Gateway infra/shared
// through a ListenerSet.
type ownWriteHarness struct {
	t     *testing.T
	kube  client.WithWatch
	own   *ownWrites
	route *gatewayv1.HTTPRoute
}

func newOwnWriteHarness(t *testing.T) *ownWriteHarness {
	t.Helper()
	h := &ownWriteHarness{t: t, kube: watchedCluster(t), own: newOwnWrites()}
	h.route = readObject(t, h.kube, "team", "by-set", &gatewayv1.HTTPRoute{})
	return h
}

// write changes the route's status in a reconcile of the key.
func (h *ownWriteHarness) write(key state.Key) {
	h.t.Helper()
	h.route = h.route.DeepCopy()
	h.route.Status.Parents = append(h.route.Status.Parents, gatewayv1.RouteParentStatus{ControllerName: controllerName, ParentRef: h.route.Spec.ParentRefs[0]})
	if err := h.own.client(h.kube).Status().Update(context.WithValue(h.t.Context(), writingKey{}, key), h.route); err != nil {
		h.t.Fatal(err)
	}
}

// isReconciled reports whether an update of the route since before reaches a reconcile.
func (h *ownWriteHarness) isReconciled(before *gatewayv1.HTTPRoute) bool {
	for _, watch := range (watches{reader: h.kube, controllerName: controllerName, own: h.own}).all(func(state.Key) {}) {
		if watch.kind.GVK() == kinds.HTTPRoute.GVK() {
			return watch.filter.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: h.route})
		}
	}
	panic("HTTPRoutes are not watched")
}

// The event of an own write is dropped only if the writing key knows the status, and it affects no
// other key.
func TestOwnWritesOfUpToDateReconcilesNeedNoOther(t *testing.T) {
	shared, second := state.GatewayKey("infra", "shared"), state.GatewayKey("infra", "second")
	for name, test := range map[string]struct {
		do   func(*ownWriteHarness)
		want bool
	}{
		"one write":  {func(h *ownWriteHarness) { h.write(shared) }, false},
		"two writes": {func(h *ownWriteHarness) { h.write(shared); h.write(shared) }, false},
		"a write by a Gateway to which the route is no longer attached": {func(h *ownWriteHarness) { h.write(second) }, true},
		"a write by each Gateway": {func(h *ownWriteHarness) { h.write(second); h.write(shared) }, true},
		"another writer's write in between": {func(h *ownWriteHarness) {
			h.write(shared)
			if err := h.kube.Update(h.t.Context(), h.route); err != nil {
				h.t.Fatal(err)
			}
			h.write(shared)
		}, true},
		"a later reconcile has begun, which may have read the route before the write": {func(h *ownWriteHarness) {
			h.write(shared)
			h.own.reconciling(h.t.Context(), shared)
		}, true},
		"a later reconcile of another Gateway has begun": {func(h *ownWriteHarness) {
			h.write(shared)
			h.own.reconciling(h.t.Context(), second)
		}, false},
		"a route that was created again": {func(h *ownWriteHarness) {
			if err := h.kube.Delete(h.t.Context(), h.route); err != nil {
				h.t.Fatal(err)
			}
			h.route = h.route.DeepCopy()
			h.route.ResourceVersion, h.route.UID = "", "another"
			if err := h.kube.Create(h.t.Context(), h.route); err != nil {
				h.t.Fatal(err)
			}
			h.write(shared)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newOwnWriteHarness(t)
			before := h.route
			test.do(h)
			if got := h.isReconciled(before); got != test.want {
				t.Errorf("reconciled: %t, want %t", got, test.want)
			}
			if len(h.own.written) > 0 {
				t.Errorf("still remembered: %v", h.own.written)
			}
		})
	}
}
