package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func TestChangeStatesWhatItWaitsFor(t *testing.T) {
	in := func(to v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase, reason conditions.Reason) *DataPlaneChange {
		return &DataPlaneChange{To: to, Phase: phase, Reason: reason}
	}
	notBegun := func(to v1alpha1.DataPlane, reason conditions.Reason) *DataPlaneChange {
		return &DataPlaneChange{To: to, Reason: reason}
	}
	addingEnvoy, toEnvoy := in(envoy, adding, conditions.ReasonDataPlaneChanging), in(envoy, switching, conditions.ReasonDataPlaneChanging)
	notReady := func(f *Facts) {
		f.Connectors.WithoutEnvoy, f.Connectors.NotReady = 1, "Pod x is not ready: 0/3 nodes are available."
	}
	added := combine(changing(envoy, adding), everyPodHasEnvoy)
	for _, r := range []struct {
		name    string
		facts   change
		want    *DataPlaneChange
		message string
	}{
		{"no change", selects(rules), nil, "The data plane is IngressRules"},
		{"a new change", selects(envoy), notBegun(envoy, conditions.ReasonDataPlaneChanging), "records the next phase"},
		{"a paused change", combine(selects(envoy), paused), notBegun(envoy, conditions.ReasonDataPlaneChanging), "no longer paused"},
		{"a change that the limits prevent", combine(serves(envoy), selects(rules), excess), notBegun(rules, conditions.ReasonLimitExceeded), "limits.rulesPerTunnel is 1,000. Envoy keeps serving"},
		{"a Gateway that is not accepted", combine(selects(envoy), notAccepted), notBegun(envoy, conditions.ReasonDataPlaneChanging), "begins when the Gateway is accepted"},
		{"a change of a Gateway that is not accepted", combine(added, notAccepted), addingEnvoy, "continues when the Gateway is accepted"},
		{"settings that are not valid", combine(added, invalidSettings), addingEnvoy, "Gateway's settings are valid"},
		{"connectors without Envoy", combine(added, func(f *Facts) { f.Connectors.Current = false }), addingEnvoy, "adds Envoy to the connectors"},
		{"a pod that is not ready", combine(added, notReady), addingEnvoy, "Pod x is not ready: 0/3 nodes are available. The ingress rules serve the Gateway"},
		{"a rollout", combine(added, func(f *Facts) { f.Connectors.WithoutEnvoy = 1 }), addingEnvoy, "2 of 2 connectors are available, remaining pods without Envoy: 1."},
		{"no Envoy", combine(added, func(f *Facts) { f.Envoys = Envoys{} }), addingEnvoy, "until an Envoy is connected"},
		{"an Envoy that has not acknowledged", combine(added, func(f *Facts) { f.Envoys.Acknowledged = false }), addingEnvoy, "has acknowledged"},
		{
			"a rejected configuration", combine(added, func(f *Facts) { f.Envoys.Rejected = "bad route." }),
			in(envoy, adding, conditions.ReasonDataPlaneBlocked), "configuration: bad route. The ingress rules keep serving; set dataPlane to IngressRules",
		},
		{
			"a connector that this controller does not run", combine(added, func(f *Facts) {
				f.Connectors.Pods = 1
				f.Memory.SurplusSince = At(0)
			}),
			in(envoy, adding, conditions.ReasonDataPlaneBlocked), "Stop them",
		},
		{
			"a failed list of the connectors", combine(added, connections(time.Minute), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			addingEnvoy, "It failed. Retrying in 8s.",
		},
		{"a configuration that is written", combine(changing(envoy, switching), everyPodHasEnvoy), toEnvoy, "replaces the tunnel configuration"},
		{
			"a configuration that cannot be written", combine(changing(envoy, switching), everyPodHasEnvoy, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			toEnvoy, "It failed. Retrying in 8s.",
		},
		{
			"a late write", combine(serves(envoy), changing(rules, switching), switched, unconfirmed(time.Second)),
			in(rules, switching, conditions.ReasonDataPlaneChanging), "earlier configuration write",
		},
		{
			"a pod with Envoy", combine(changing(rules, removing), func(f *Facts) { f.Connectors.WithEnvoy = 1 }),
			in(rules, removing, conditions.ReasonDataPlaneChanging), "pods with Envoy: 1.",
		},
		{"outdated configurations", combine(added, func(f *Facts) { f.Desired.Other = nil }), addingEnvoy, "builds the configurations"},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := serving(r.facts)
			got := Programmed(f).DataPlaneChange
			applied := conditions.TypeTunnelDataPlaneApplied.Find(Status(f).Conditions)
			switch {
			case applied == nil || !strings.Contains(applied.Message, r.message):
				t.Fatalf("the condition is %+v, want a message with %q", applied, r.message)
			case (applied.Status == metav1.ConditionTrue) != (r.want == nil):
				t.Errorf("the condition is %s", applied.Status)
			}
			checkSentence(t, "the message", applied.Message)
			if strings.Count(applied.Message, ". ") > 1 {
				t.Errorf("the message has more than two sentences: %q", applied.Message)
			}
			if got != nil {
				if got.Message != applied.Message || got.Reason.String() != applied.Reason {
					t.Errorf("the condition is %+v, and the change is %+v", applied, got)
				}
				got.Message = ""
			}
			if diff := cmp.Diff(r.want, got, comparableReasons); diff != "" {
				t.Errorf("unexpected change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangeOfARetiringTunnelIsNotReported(t *testing.T) {
	for name, facts := range map[string]change{
		"retiring": combine(changing(envoy, adding), retiring()), "unknown": combine(changing(envoy, adding), gatewayIs(GatewayUnknown)),
		"another cluster": combine(changing(envoy, adding), func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }),
	} {
		f := serving(facts)
		if got := Programmed(f).DataPlaneChange; got != nil {
			t.Errorf("%s: the change is %+v", name, got)
		}
		if c := conditions.TypeTunnelDataPlaneApplied.Find(Status(f).Conditions); c != nil {
			t.Errorf("%s: the condition is %+v", name, c)
		}
	}
}

// While the configuration switches, the Gateway stays Programmed whichever
// configuration is in effect.
func TestGatewayStaysProgrammedWhileTheConfigurationSwitches(t *testing.T) {
	toEnvoy := combine(changing(envoy, switching), everyPodHasEnvoy)
	unanswered := func(f *Facts) {
		f.Object.Status.Configuration = v1alpha1.ConfigurationRecord{Hash: otherConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
		f.Memory = Conclude(f.Memory, Step{Action: Configure, Hash: otherConfiguration.Hash()}, Result{Uptime: f.Uptime, Err: unavailableError})
	}
	for _, r := range []struct {
		name  string
		facts change
		want  OutcomeState
	}{
		{"before the write", toEnvoy, OutcomeInEffect},
		{"after the write", combine(toEnvoy, switched), OutcomeInEffect},
		{"a write without a response", combine(toEnvoy, unanswered), OutcomePending},
		{"a restart after a write without a response", combine(toEnvoy, unanswered, restarted), OutcomePending},
		{"a write without a response while the routes change", combine(toEnvoy, unanswered, routesChanged), OutcomeFailed},
		{"an external change", combine(toEnvoy, remoteConfiguration(externalConfiguration, 9), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second)), OutcomeFailed},
	} {
		if got := Programmed(serving(r.facts)); got.State != r.want {
			t.Errorf("%s: the outcome is %+v", r.name, got)
		}
	}
}
