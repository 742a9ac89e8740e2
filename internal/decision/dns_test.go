package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// What DNS learns about a Gateway depends on whether it is accepted, paused or blocked,
// and on whether its configuration is in effect.
func TestDNSFollowsTheDecision(t *testing.T) {
	inEffect := tunnel.Outcome{State: tunnel.OutcomeInEffect, Tunnel: "created"}
	located := recorded(rules)
	located.Status.TunnelID = "recorded"
	blocked := located.DeepCopy()
	blocked.Status.Phase = v1alpha1.TunnelBlocked
	reject := func(s *gateway.Snapshot) {
		s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
	}
	pause := func(s *gateway.Snapshot) {
		s.Gateway.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
	}
	for _, tt := range []struct {
		name    string
		change  func(*gateway.Snapshot)
		object  *v1alpha1.Tunnel
		outcome tunnel.Outcome
		state   ownership.State
		tunnel  provider.TunnelID
		served  bool
	}{
		{"the configuration is in effect", nil, located, inEffect, ownership.Accepted, "recorded", true},
		{"the Tunnel object does not exist yet", nil, nil, inEffect, ownership.Accepted, "created", true},
		{"no tunnel exists yet", nil, nil, tunnel.Outcome{}, ownership.Accepted, "", false},
		{"the configuration is not in effect", nil, located, tunnel.Outcome{State: tunnel.OutcomeFailed}, ownership.Accepted, "recorded", false},
		{"the Gateway is not accepted", reject, located, inEffect, ownership.Rejected, "recorded", false},
		{"the Gateway is paused", pause, located, inEffect, ownership.Frozen, "recorded", true},
		{"the Tunnel is blocked", nil, blocked, inEffect, ownership.Frozen, "recorded", true},
		{"a Gateway that is not accepted is paused", func(s *gateway.Snapshot) { reject(s); pause(s) }, located, inEffect, ownership.Frozen, "recorded", false},
	} {
		s := snapshot(rules)
		s.HTTPRoutes[0].Spec.Rules = []gatewayv1.HTTPRouteRule{{}}
		if tt.change != nil {
			tt.change(s)
		}
		want := dns.Gateway{
			NamespacedName: types.NamespacedName{Namespace: "infra", Name: "shared"}, State: tt.state, Tunnel: tt.tunnel,
			Hostnames: []dns.Hostname{{Name: "a.example.com", Namespace: "infra", Served: tt.served, Permitted: true}},
		}
		if diff := cmp.Diff(want, decision.Decide(s, tt.object, options, nil).DNS(tt.object, tt.outcome), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A hostname without a permission is not kept, unless nothing may be removed for its
// Gateway: only then does DNS have to know why it is missing.
func TestDNSLearnsOfMissingPermissionsWhileNothingIsRemoved(t *testing.T) {
	for _, accepted := range []bool{true, false} {
		s := snapshot(rules)
		s.ClassConfiguration.Spec.Hostnames = &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)}
		s.HTTPRoutes[0].Namespace = "team"
		s.HTTPRoutes[0].Spec.ParentRefs[0].Namespace = new(gatewayv1.Namespace("infra"))
		s.Gateway.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
		var want []dns.Hostname
		if !accepted {
			s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
			want = []dns.Hostname{{Name: "a.example.com", Namespace: "infra"}}
		}
		got := decision.Decide(s, nil, options, nil).DNS(nil, tunnel.Outcome{State: tunnel.OutcomeInEffect}).Hostnames
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("accepted: %v (-want +got):\n%s", accepted, diff)
		}
	}
}
