package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func accessEntry(hostname string, block v1alpha1.Access) v1alpha1.ListenerConfiguration {
	return v1alpha1.ListenerConfiguration{ProtocolPort: v1alpha1.EveryPort, Hostname: hostname, Access: &block}
}

func TestTheExplanationNamesWhatDecidesAboutAccess(t *testing.T) {
	s := accessSnapshot(
		accessPolicy("team", "web", accessTarget(gateway.KindListenerSet, "set", "good")),
		accessPolicy("infra", "own", accessTarget(gateway.KindGateway, "shared", "own")),
	)
	s.ClassConfiguration.Name = "defaults"
	s.Class.Spec.ParametersRef.Name = "defaults"
	s.ClassConfiguration.Spec.ListenerConfigurations = []v1alpha1.ListenerConfiguration{
		accessEntry("*.class.example.com", v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"employees"}}),
		accessEntry("hand.example.com", v1alpha1.Access{Required: true, TeamName: new("acme"), AUDTags: []v1alpha1.AUDTag{"hand"}}),
		accessEntry("open.example.com", v1alpha1.Access{}),
	}
	for _, hostname := range []string{"hand.example.com", "open.example.com", "nothing.example.com"} {
		s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener(strings.Split(hostname, ".")[0], hostname, 80))
	}
	s.ListenerSets[0].Spec.Listeners = append(s.ListenerSets[0].Spec.Listeners, gatewayv1.ListenerEntry(httpListener("class", "a.class.example.com", 80)))
	result := gateway.Build(s, options)
	pending := func(hostname string) access.State {
		state := result.AccessStates[hostname]
		if state.Status != access.Closed || state.Reason != conditions.ReasonPending {
			t.Errorf("%s is %s, %s", hostname, state.Status, state.Reason)
		}
		return state
	}
	const object = " (TunnelConfiguration tunnel-gateway/defaults)"
	for host, want := range map[string]gateway.AccessExplanation{
		"team.example.com":    {Hostname: "team.example.com", Decider: "AccessPolicy team/web", Application: "team.example.com", State: pending("team.example.com")},
		"own.example.com":     {Hostname: "own.example.com", Decider: "AccessPolicy infra/own", Application: "own.example.com", State: pending("own.example.com")},
		"hand.example.com":    {Hostname: "hand.example.com", Decider: "the entry of the GatewayClass for hand.example.com" + object},
		"open.example.com":    {Hostname: "open.example.com", Decider: "the entry of the GatewayClass for open.example.com" + object},
		"nothing.example.com": {Hostname: "nothing.example.com"},
		"a.class.example.com": {
			Hostname: "a.class.example.com", Decider: "the entry of the GatewayClass for *.class.example.com" + object, Inherited: true,
			Application: "a.class.example.com", State: pending("a.class.example.com"),
		},
	} {
		got, ok := result.ExplainAccess(host)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(conditions.Reason{})); !ok || diff != "" {
			t.Errorf("%s: found %t (-want +got):\n%s", host, ok, diff)
		}
	}
	if got, ok := result.ExplainAccess("other.example.org"); ok {
		t.Errorf("got %+v for a hostname that no listener claims", got)
	}
}

// Without permissions, the demands of tenants close their hostnames, which the platform team
// must know.
func TestClassWarnsOfDemandsWithoutPermissions(t *testing.T) {
	for _, from := range []v1alpha1.HostnamesFrom{v1alpha1.HostnamesFromAll, v1alpha1.HostnamesFromNamespaceAnnotation} {
		s := accessSnapshot()
		s.ClassConfiguration.Spec.Hostnames.From = &from
		status := gateway.BuildClass(&gateway.ClassSnapshot{Class: s.Class, Configuration: s.ClassConfiguration}, options)
		c := meta.FindStatusCondition(status.Conditions, "Accepted")
		if warned := strings.Contains(c.Message, "only entries of the GatewayClass can protect a hostname"); warned != (from == v1alpha1.HostnamesFromAll) {
			t.Errorf("%s: Accepted is %s with the message %q", from, c.Status, c.Message)
		}
	}
}
