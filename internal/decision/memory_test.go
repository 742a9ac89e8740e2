package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// withHostname returns the Snapshot with another object for its route, which has the
// hostname.
func withHostname(s *gateway.Snapshot, hostname gatewayv1.Hostname) *gateway.Snapshot {
	next, route := *s, s.HTTPRoutes[0].DeepCopy()
	route.Spec.Hostnames = []gatewayv1.Hostname{hostname}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: ptr.To(gatewayv1.PortNumber(80))},
	}}}}}
	next.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
	return &next
}

// withService returns the Snapshot with the Service that its route names.
func withService(s *gateway.Snapshot) *gateway.Snapshot {
	next := *s
	next.Services.Set(types.NamespacedName{Namespace: "infra", Name: "web"}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	return &next
}

// A decision with a memory equals the decision without, through every change of data plane.
func TestMemoryDoesNotAffectDecisions(t *testing.T) {
	changing := recorded(rules)
	changing.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{To: envoy, Phase: v1alpha1.DataPlaneAddingEnvoy}
	asksRules, asksEnvoy := snapshot(rules), snapshot(envoy)
	withoutService := withHostname(asksRules, "a.example.com")
	m := &decision.Memory{}
	for i, step := range []struct {
		snapshot *gateway.Snapshot
		object   *v1alpha1.Tunnel
	}{
		{asksRules, nil},
		{asksRules, recorded(rules)},
		{withoutService, recorded(rules)},
		{withService(withoutService), recorded(rules)},
		{withoutService, recorded(rules)},
		{withHostname(asksEnvoy, "a.example.com"), recorded(rules)},
		{withHostname(asksEnvoy, "b.example.com"), changing},
		{asksEnvoy, changing},
		{asksEnvoy, recorded(envoy)},
		{withHostname(asksEnvoy, "b.example.com"), recorded(envoy)},
		{asksRules, recorded(envoy)},
		{asksRules, recorded(rules)},
	} {
		for range 2 { // the second time, nothing has changed
			got, want := decision.Decide(step.snapshot, step.object, options, m), decision.Decide(step.snapshot, step.object, options, nil)
			if diff := cmp.Diff(want.Desired(step.object), got.Desired(step.object)); diff != "" {
				t.Errorf("step %d: the memory affects the desired state (-without +with):\n%s", i, diff)
			}
			if planeOf(got.Envoy(step.object)) != planeOf(want.Envoy(step.object)) {
				t.Errorf("step %d: the memory affects which plane Envoys get", i)
			}
		}
	}
}

// Without a change, a decision keeps the table and the configuration of the last one.
func TestMemoryKeepsWhatDoesNotChange(t *testing.T) {
	s, m := snapshot(envoy), &decision.Memory{}
	first := decision.Decide(s, nil, options, m).Plane(nil)
	table, configuration := first.Result.Table, first.Configuration
	later := *s
	second := decision.Decide(&later, nil, options, m).Plane(nil)
	if second.Result.Table != table || second.Configuration != configuration {
		t.Error("the table or the configuration was built again")
	}
}
