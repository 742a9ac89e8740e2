package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// What the executor of applications learns about a Gateway depends on whether the Gateway
// is accepted, paused or blocked, and on whether its demands are known.
func TestAccessFollowsTheDecision(t *testing.T) {
	blocked := recorded(rules)
	blocked.Status.Phase = v1alpha1.TunnelBlocked
	for _, tt := range []struct {
		name   string
		change func(*gateway.Snapshot)
		object *v1alpha1.Tunnel
		want   access.Gateway
	}{
		{"the Gateway is accepted", nil, recorded(rules), access.Gateway{State: ownership.Accepted, HasTunnel: true}},
		{"the Tunnel object does not exist yet", nil, nil, access.Gateway{State: ownership.Accepted}},
		{"the Tunnel is blocked", nil, blocked, access.Gateway{State: ownership.Frozen, HasTunnel: true}},
		{"the Gateway is paused", func(s *gateway.Snapshot) {
			s.Gateway.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
		}, recorded(rules), access.Gateway{State: ownership.Frozen, HasTunnel: true}},
		{"the Gateway is not accepted", func(s *gateway.Snapshot) {
			s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		}, recorded(rules), access.Gateway{State: ownership.Rejected, HasTunnel: true}},
		{
			"AccessPolicies cannot be read", func(s *gateway.Snapshot) { s.AccessPolicies, s.AccessPoliciesUnknown = nil, true }, recorded(rules),
			access.Gateway{State: ownership.Accepted, HasTunnel: true, DemandsUnknown: true},
		},
	} {
		s := snapshot(rules)
		s.AccessPolicies = []*v1alpha1.AccessPolicy{accessPolicy("infra", "employees")}
		if tt.change != nil {
			tt.change(s)
		}
		tt.want.NamespacedName = types.NamespacedName{Namespace: "infra", Name: "shared"}
		tt.want.Hostnames = []access.Hostname{{Name: "a.example.com", Namespace: "infra"}}
		if !tt.want.DemandsUnknown {
			tt.want.Demands = []access.Demand{{
				Hostname: "a.example.com", Level: access.LevelPolicy, Object: "AccessPolicy infra/employees", Owner: "AccessPolicy/infra/infra",
				Namespace: "infra", Policies: []v1alpha1.PolicyName{"employees"}, SessionDuration: settings.DefaultSessionDuration,
			}}
		}
		if diff := cmp.Diff(tt.want, decision.Decide(s, tt.object, options, nil).Access(tt.object), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// While the settings are not valid, it is not known what the hostnames demand.
func TestAccessKnowsNoDemandsWithoutSettings(t *testing.T) {
	s := snapshot(rules)
	s.ClassConfiguration = nil // which parametersRef names
	got := decision.Decide(s, nil, options, nil).Access(nil)
	want := access.Gateway{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "shared"}, State: ownership.Rejected, DemandsUnknown: true}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func accessPolicy(namespace, name string) *v1alpha1.AccessPolicy {
	policy := &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	policy.Spec.Policies = []v1alpha1.PolicyName{v1alpha1.PolicyName(name)}
	policy.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
		LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: gateway.KindGateway, Name: "shared"},
	}}
	return policy
}
