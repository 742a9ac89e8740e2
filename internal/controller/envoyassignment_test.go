package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// assignmentHarness has a Gateway whose Envoys connect to the pods behind Services
// infra/web and infra/other. before is called with the Service name before each
// assignment.
type assignmentHarness struct {
	*harness
	before func(service string)
}

func newAssignmentHarness(t *testing.T) *assignmentHarness {
	h := &assignmentHarness{harness: newEnvoyHarness(t), before: func(string) {}}
	service := &corev1.Service{}
	h.change("infra", "web", service, func() { service.Spec.ClusterIP = corev1.ClusterIPNone })
	h.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "other"}, Spec: service.Spec})
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {
		rule := route.Spec.Rules[0].DeepCopy()
		rule.BackendRefs[0].Name = "other"
		rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To("/other")}}}
		route.Spec.Rules = append(route.Spec.Rules, *rule)
	})
	for _, name := range []string{"web", "other"} {
		h.create(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "infra", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
		})
	}
	h.envoys.assign = func(clusters []envoy.EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(string) bool) (envoy.Assignments, map[string]bool) {
		h.before(clusters[0].Service.Name)
		return envoy.Assign(clusters, endpointSlices, isReserved)
	}
	h.reconcileOnce()
	return h
}

// changeAddress changes the Service's only pod address to 10.244.0.2.
func (h *assignmentHarness) changeAddress(service string) {
	h.t.Helper()
	slice := &discoveryv1.EndpointSlice{}
	h.change("infra", service, slice, func() { slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.2"}}} })
}

// renamePort renames the port of Service web, so that the next publication has another cluster.
func (h *assignmentHarness) renamePort(name string) {
	h.t.Helper()
	object, slice := &corev1.Service{}, &discoveryv1.EndpointSlice{}
	h.change("infra", "web", object, func() { object.Spec.Ports[0].Name = name })
	h.change("infra", "web", slice, func() { slice.Ports[0].Name = ptr.To(name) })
}

func (h *assignmentHarness) follow(service string) {
	h.t.Helper()
	err := h.envoys.publishEndpoints(h.t.Context(), followed{h.key.NamespacedName, envoy.EndpointSource{NamespacedName: types.NamespacedName{Namespace: "infra", Name: service}}})
	if err != nil {
		h.t.Error(err)
	}
}

// endpointsIn returns the Services and addresses in each assignment.
func endpointsIn(a envoy.Assignments) string {
	var parts []string
	for cluster, assignment := range a {
		for _, e := range assignment.GetEndpoints()[0].GetLbEndpoints() {
			parts = append(parts, fmt.Sprintf("%s=%s", strings.Split(cluster, ".")[2], e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()))
		}
	}
	return strings.Join(parts, " ")
}

// The tenants decide how long an assignment takes, so that no mutex is locked meanwhile.
func TestNoMutexIsLockedDuringAnAssignment(t *testing.T) {
	h := newAssignmentHarness(t)
	assigned := 0
	h.before = func(string) {
		assigned++
		p := h.memories.findPublication(h.key.NamespacedName)
		if !p.mu.TryLock() {
			t.Fatal("the mutex of the publication is locked")
		}
		p.mu.Unlock()
	}
	h.renamePort("renamed")
	h.reconcileOnce()
	h.follow("web")
	if assigned != 2 {
		t.Errorf("%d assignments, want 2", assigned)
	}
}

// A Service whose endpoints are being assigned does not delay another Service.
func TestASlowServiceDelaysNoOther(t *testing.T) {
	h := newAssignmentHarness(t)
	h.changeAddress("other")
	h.before = func(service string) {
		if service == "web" {
			h.follow("other")
		}
	}
	h.follow("web")
	if len(h.xds.endpoints) != 2 || endpointsIn(h.xds.endpoints[0]) != "other=10.244.0.2" || endpointsIn(h.xds.endpoints[1]) != "web=10.244.0.1" {
		t.Errorf("published %v, want other before web", h.xds.endpoints)
	}
}

// A publication that assigned older endpoints does not replace newer ones.
func TestOlderEndpointsDoNotReplaceNewerOnes(t *testing.T) {
	t.Run("a change overtakes a publication", func(t *testing.T) {
		h := newAssignmentHarness(t)
		h.before = func(string) {
			h.before = func(string) {}
			h.changeAddress("web")
			h.follow("web")
		}
		h.renamePort("renamed")
		h.reconcileOnce()
		if got := endpointsIn(h.xds.last(t).Assignments); !strings.Contains(got, "web=10.244.0.2") || !strings.Contains(got, "other=10.244.0.1") {
			t.Errorf("the last publication has the endpoints %s, want web=10.244.0.2 and other=10.244.0.1", got)
		}
	})
	t.Run("a publication overtakes a change", func(t *testing.T) {
		h := newAssignmentHarness(t)
		h.before = func(string) {
			h.before = func(string) {}
			h.changeAddress("web")
			h.renamePort("renamed")
			h.reconcileOnce()
		}
		h.follow("web")
		if len(h.xds.endpoints) > 0 {
			t.Errorf("the older endpoints %v are published", h.xds.endpoints)
		}
	})
	t.Run("a change overtakes the first publication", func(t *testing.T) {
		h := newAssignmentHarness(t)
		h.envoys.remove(h.key.NamespacedName)
		h.before = func(string) {
			h.before = func(string) {}
			h.changeAddress("web")
			h.follow("web")
		}
		h.reconcileOnce()
		if got := endpointsIn(h.xds.last(t).Assignments); !strings.Contains(got, "web=10.244.0.2") {
			t.Errorf("the first publication has the endpoints %s, want web=10.244.0.2", got)
		}
		if len(h.xds.endpoints) > 0 {
			t.Errorf("%v was published before the first publication", h.xds.endpoints)
		}
	})
}

// Endpoints that are being assigned are not published for a Gateway that no longer has
// Envoys.
func TestEndpointsOfARemovedGatewayAreNotPublished(t *testing.T) {
	h := newAssignmentHarness(t)
	h.before = func(string) { h.envoys.remove(h.key.NamespacedName) }
	h.follow("web")
	if len(h.xds.endpoints) > 0 {
		t.Errorf("published %v", h.xds.endpoints)
	}
}

// What a publication that panicked has left behind is not published later.
func TestPublicationThatPanickedLeavesNoEndpoints(t *testing.T) {
	h := newAssignmentHarness(t)
	h.renamePort("renamed")
	h.before = func(string) { panic("a bug") }
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("the publication did not panic")
			}
		}()
		h.reconcileOnce()
	}()
	h.before = func(string) {}
	h.follow("web")
	h.renamePort("")
	h.reconcileOnce()
	h.changeAddress("web")
	h.follow("web")
	h.renamePort("renamed")
	h.reconcileOnce()
	if got := endpointsIn(h.xds.last(t).Assignments); !strings.Contains(got, "web=10.244.0.2") {
		t.Errorf("the last publication has the endpoints %s, want web=10.244.0.2", got)
	}
}

// A publication that Envoys refuse can have assigned endpoints with another limit.
func TestRefusedPublicationLeavesNoLimit(t *testing.T) {
	h := newAssignmentHarness(t)
	limit := 0 // of the cluster for Service web
	h.envoys.assign = func(clusters []envoy.EndpointsOf, endpointSlices []*discoveryv1.EndpointSlice, isReserved func(string) bool) (envoy.Assignments, map[string]bool) {
		found, _ := envoy.Assign(clusters, endpointSlices, isReserved)
		limited := map[string]bool{}
		for _, cluster := range clusters {
			if limited[cluster.Cluster] = true; cluster.Service.Name == "web" {
				limit = cluster.Limit
			}
		}
		return found, limited
	}
	h.follow("web")
	before := limit
	h.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "third"}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {
		route.Spec.Rules[0].BackendRefs = append(route.Spec.Rules[0].BackendRefs, *route.Spec.Rules[0].BackendRefs[0].DeepCopy())
		route.Spec.Rules[0].BackendRefs[1].Name = "third"
	})
	h.xds.err = errors.New("refused")
	h.reconcileOnce()
	if limit >= before {
		t.Fatalf("with another cluster, the limit is %d; it was %d", limit, before)
	}
	h.change("infra", "web", route, func() { route.Spec.Rules[0].BackendRefs = route.Spec.Rules[0].BackendRefs[:1] })
	h.xds.err = nil
	h.reconcileOnce()
	if limit != before {
		t.Errorf("after the refused publication, the limit is %d, want %d", limit, before)
	}
}

// The endpoints controller publishes everything when it starts, because it may have missed events.
func TestFirstUpdatePublishesAllEndpoints(t *testing.T) {
	h := newAssignmentHarness(t)
	h.changeAddress("web")
	if err := h.envoys.update(t.Context(), followed{}); err != nil {
		t.Fatal(err)
	}
	if len(h.xds.endpoints) != 1 || !strings.Contains(endpointsIn(h.xds.endpoints[0]), "web=10.244.0.2") {
		t.Errorf("published %v, want web=10.244.0.2", h.xds.endpoints)
	}
}
