package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestDataPlaneIsRecordedBeforeTheTunnelIsUsed(t *testing.T) {
	older := Rival{Object: "a", Older: true}
	withoutStatus := status(func(s *v1alpha1.TunnelStatus) { *s = v1alpha1.TunnelStatus{} })
	onlyUID := combine(withoutTunnel, notRecordedDataPlane)
	testDecide(t, []row{
		{"a new Tunnel records its Gateway first", combine(withoutTunnel, withoutStatus), want{Action: Record, Record: "gatewayUID=uid-1"}},
		{"a new Tunnel records the data plane before the tunnel is located", onlyUID, want{Action: Record, Record: "dataPlane=IngressRules"}},
		{"a new Tunnel records the data plane of the settings", combine(onlyUID, wantsEnvoy), want{Action: Record, Record: "dataPlane=Envoy"}},
		{"a new Tunnel with a recorded data plane is located", combine(onlyUID, withEnvoy), want{Action: FindByName}},
		{
			"a Tunnel that requests an existing tunnel records the data plane before the claim",
			combine(notRecorded, notRecordedDataPlane, wantsEnvoy), want{Action: Record, Record: "dataPlane=Envoy"},
		},
		{
			"a Tunnel that cannot claim the tunnel also records the data plane",
			combine(notRecorded, notRecordedDataPlane, rivals(older)), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{
			"an existing tunnel is claimed after the data plane was recorded",
			combine(notRecorded, withEnvoy), want{Action: Claim, Record: "tunnelID=" + testTunnelID},
		},
		{"a Tunnel that served without a recorded data plane has ingress rules", notRecordedDataPlane, want{Action: Record, Record: "dataPlane=IngressRules"}},
		{
			"a Tunnel that served without a recorded data plane keeps ingress rules when the settings ask for Envoy",
			combine(notRecordedDataPlane, wantsEnvoy), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{
			"an adopted tunnel without a recorded data plane has ingress rules",
			combine(adopting, notRecordedDataPlane, wantsEnvoy), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{
			"a Tunnel that has only a configuration without a recorded data plane has ingress rules",
			combine(notRecordedDataPlane, wantsEnvoy, status(func(s *v1alpha1.TunnelStatus) { s.TunnelID = "" })), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{
			"a Tunnel that served without a recorded data plane records it also while its settings are not valid",
			combine(notRecordedDataPlane, invalidSettings), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{"a Tunnel that was restored without status records the data plane of the settings", combine(onlyUID, wantsEnvoy, restarted), want{Action: Record, Record: "dataPlane=Envoy"}},
		{"a Tunnel that was restored without status waits for valid settings", combine(onlyUID, invalidSettings), want{Action: None}},
		{
			"an existing tunnel is not claimed until the settings are valid",
			combine(notRecorded, notRecordedDataPlane, invalidSettings), want{Action: None},
		},
		{"a paused Tunnel records the data plane", combine(paused, notRecordedDataPlane), want{Action: Record, Record: "dataPlane=IngressRules"}},
		{"a paused Tunnel whose settings are not valid reports the pause", combine(onlyUID, invalidSettings, paused), want{Action: None, Problem: ReasonPaused}},
		{
			"a Gateway that is not accepted records the data plane",
			combine(onlyUID, wantsEnvoy, func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }), want{Action: Record, Record: "dataPlane=Envoy"},
		},
	})
}

func TestRecordedDataPlaneDoesNotChange(t *testing.T) {
	lost := combine(tunnelNotFound, tunnelRead(Absent), func(f *Facts) { f.Memory.Remote.Configuration.Missing = true })
	needsHTTP2 := func(f *Facts) { f.Desired.NeedsHTTP2 = true }
	const tunnelLost = "configuration.hash= token.rotatedAt= tunnelID="
	testDecide(t, []row{
		{"settings that ask for another data plane change nothing", wantsEnvoy, idle()},
		{"settings that no longer ask for Envoy change nothing", combine(withEnvoy, func(f *Facts) { f.Desired.DataPlane = v1alpha1.DataPlaneIngressRules }), idle()},
		{
			"the configuration of the recorded data plane is still written",
			combine(wantsEnvoy, routesChanged), want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"the configuration of another data plane is not written",
			combine(wantsEnvoy, routesChanged, func(f *Facts) { f.Desired.ConfigurationDataPlane = v1alpha1.DataPlaneEnvoy }), want{Action: Wait, Wait: time.Second},
		},
		{
			"the spec follows the settings while they ask for another data plane",
			combine(wantsEnvoy, func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }), want{Action: Claim},
		},
		{"a lost tunnel keeps the data plane", combine(withEnvoy, lost), want{Action: Record, Record: tunnelLost, Event: EventTunnelLost}},
		{"a new Gateway that asks for another data plane resumes the Tunnel", combine(otherUID, wantsEnvoy), want{Action: Record, Record: "gatewayUID=uid-2"}},
		{"a GRPCRoute needs HTTP/2 with ingress rules", needsHTTP2, want{Action: Record, Record: "http2=true", Event: EventHTTP2}},
		{"a GRPCRoute records nothing with Envoy, whose connectors always use HTTP/2", combine(withEnvoy, needsHTTP2), idle()},
	})
}

func TestRecordedDataPlane(t *testing.T) {
	record := func(s v1alpha1.TunnelStatus) *v1alpha1.Tunnel { return &v1alpha1.Tunnel{Status: s} }
	for name, test := range map[string]struct {
		object *v1alpha1.Tunnel
		want   v1alpha1.DataPlane
	}{
		"no Tunnel":                        {nil, ""},
		"a new Tunnel":                     {record(v1alpha1.TunnelStatus{GatewayUID: testGatewayUID, Creating: true}), ""},
		"a recorded data plane":            {record(v1alpha1.TunnelStatus{DataPlane: v1alpha1.DataPlaneEnvoy}), v1alpha1.DataPlaneEnvoy},
		"a recorded data plane, in use":    {record(v1alpha1.TunnelStatus{DataPlane: v1alpha1.DataPlaneEnvoy, TunnelID: testTunnelID}), v1alpha1.DataPlaneEnvoy},
		"a tunnel without a data plane":    {record(v1alpha1.TunnelStatus{TunnelID: testTunnelID}), v1alpha1.DataPlaneIngressRules},
		"a configuration without a tunnel": {record(v1alpha1.TunnelStatus{Configuration: v1alpha1.ConfigurationRecord{Hash: "1"}}), v1alpha1.DataPlaneIngressRules},
	} {
		if got := RecordedDataPlane(test.object); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The message names the setting, both data planes, the Tunnel and both remedies.
func TestMessageAboutAnotherDataPlane(t *testing.T) {
	for name, test := range map[string]struct {
		facts change
		want  []string
	}{
		"the settings ask for Envoy": {wantsEnvoy, []string{"dataPlane selects Envoy", "Tunnel infra.shared records IngressRules", "to IngressRules again", "delete the Tunnel object"}},
		"the settings ask for ingress rules": {
			combine(withEnvoy, func(f *Facts) { f.Desired.DataPlane = v1alpha1.DataPlaneIngressRules }),
			[]string{"dataPlane selects IngressRules", "Tunnel infra.shared records Envoy", "to Envoy again", "delete the Tunnel object"},
		},
		"the identity is reported first": {combine(wantsEnvoy, otherAccount), []string{"The setting account "}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Programmed(serving(test.facts))
			if got.State != OutcomeFailed || got.Reason != ReasonSettingsNotApplied || !got.RequiresAction() {
				t.Errorf("the outcome is %+v, want %s", got, ReasonSettingsNotApplied)
			}
			for _, part := range test.want {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message %q does not contain %q", got.Message, part)
				}
			}
			checkSentence(t, "the message", got.Message)
		})
	}
}
