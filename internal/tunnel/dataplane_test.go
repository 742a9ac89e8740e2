package tunnel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func TestDataPlaneIsRecordedBeforeTheTunnelIsUsed(t *testing.T) {
	older := Rival{Object: "a", Older: true}
	withoutStatus := status(func(s *v1alpha1.TunnelStatus) { *s = v1alpha1.TunnelStatus{SchemaVersion: SchemaVersion} })
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
			"a Tunnel that served without a recorded data plane records it even while its settings are not valid",
			combine(notRecordedDataPlane, invalidSettings), want{Action: Record, Record: "dataPlane=IngressRules"},
		},
		{"a Tunnel that was restored without status records the data plane of the settings", combine(onlyUID, wantsEnvoy, restarted), want{Action: Record, Record: "dataPlane=Envoy"}},
		{"a Tunnel that was restored without status waits for valid settings", combine(onlyUID, invalidSettings), want{Action: None}},
		{
			"an existing tunnel is not claimed until the settings are valid",
			combine(notRecorded, notRecordedDataPlane, invalidSettings), want{Action: None},
		},
		{"a paused Tunnel records the data plane", combine(paused, notRecordedDataPlane), want{Action: Record, Record: "dataPlane=IngressRules"}},
		{"a paused Tunnel whose settings are not valid reports the pause", combine(onlyUID, invalidSettings, paused), want{Action: None, Problem: conditions.ReasonPaused}},
		{
			"a Gateway that is not accepted records the data plane",
			combine(onlyUID, wantsEnvoy, func(f *Facts) { f.Desired.Configuration, f.Desired.Hash = nil, "" }), want{Action: Record, Record: "dataPlane=Envoy"},
		},
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

func TestConnectorsRunEnvoyBeforeItServesAndAfterwards(t *testing.T) {
	record := func(plane, to v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase) *v1alpha1.Tunnel {
		s := v1alpha1.TunnelStatus{DataPlane: plane}
		if phase != "" {
			s.DataPlaneChange = &v1alpha1.DataPlaneChange{To: to, Phase: phase}
		}
		return &v1alpha1.Tunnel{Status: s}
	}
	for name, test := range map[string]struct {
		object                                 *v1alpha1.Tunnel
		runsEnvoy, bothForRules, bothWithEnvoy bool
	}{
		"no Tunnel":                               {nil, false, false, false},
		"a Tunnel that has recorded nothing":      {record("", "", ""), false, false, false},
		"ingress rules":                           {record(rules, "", ""), false, false, true},
		"Envoy":                                   {record(envoy, "", ""), true, true, false},
		"Envoy is added":                          {record(rules, envoy, adding), true, true, true},
		"the configuration switches to Envoy":     {record(rules, envoy, switching), true, true, true},
		"the configuration switches to the rules": {record(envoy, rules, switching), true, true, true},
		"Envoy is removed":                        {record(rules, rules, removing), false, true, true},
	} {
		got := []bool{RunsEnvoy(test.object), NeedsBoth(test.object, rules), NeedsBoth(test.object, envoy)}
		if diff := cmp.Diff([]bool{test.runsEnvoy, test.bothForRules, test.bothWithEnvoy}, got); diff != "" {
			t.Errorf("%s: unexpected (RunsEnvoy, NeedsBoth for rules and for Envoy) (-want +got):\n%s", name, diff)
		}
	}
}
