package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestProgrammedReportsTheOutcome(t *testing.T) {
	inEffect := Outcome{State: OutcomeInEffect, Tunnel: testTunnelID}
	pending := Outcome{State: OutcomePending, Tunnel: testTunnelID}
	notInEffect := func(reason conditions.Reason) Outcome {
		return Outcome{State: OutcomeFailed, Reason: reason, Tunnel: testTunnelID}
	}
	noTunnel := func(reason conditions.Reason) Outcome { return Outcome{State: OutcomeFailed, Reason: reason} }
	external := remoteConfiguration(externalConfiguration, 9)
	rows := []struct {
		name  string
		facts change
		want  Outcome
		// message is a part of the message.
		message string
	}{
		{"a configuration that was written or read is in effect", nil, inEffect, ""},
		{"a new configuration is pending until it is written", routesChanged, pending, ""},
		{"after a restart the reported state does not change until the configuration is read", restarted, pending, ""},
		{
			"after a restart a failure does not change the reported state",
			combine(restarted, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)), pending, "It failed. Retrying in 8s.",
		},
		{
			"a new configuration that could not be written is not in effect",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)), notInEffect(conditions.ReasonCloudflareUnavailable), "It failed. Retrying in 8s.",
		},
		{
			"a rate limit does not count as a failure",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonRateLimited, 4*time.Second)), pending, "It failed. Retrying in 8s.",
		},
		{
			"a change that waits for a token does not count as a failure",
			combine(routesChanged, limited, spent(3, 5500*time.Millisecond)), Outcome{State: OutcomePending, Reason: conditions.ReasonConfigurationThrottled, Tunnel: testTunnelID},
			"permits (3 writes, and one more every 20s), so the controller writes the latest changes at 2026-09-01T12:00:15Z.",
		},
		{
			"a configuration stays in effect when a read fails",
			combine(readDue, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)), inEffect, "",
		},
		{
			"a rejected configuration is not in effect",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonConfigurationRejected, 4*time.Second)), notInEffect(conditions.ReasonConfigurationRejected), "",
		},
		{
			"a write that may still be applied makes the effective configuration unknown",
			combine(restarted, func(f *Facts) {
				f.Memory.LateWrites = LateWrites{Hashes: []string{"late"}, Settled: At(f.Uptime + time.Second)}
			},
				failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			notInEffect(conditions.ReasonCloudflareUnavailable), "",
		},
		{"an external change is being reverted", external, pending, ""},
		{"a contested configuration requires a user", combine(external, status(contested)), notInEffect(conditions.ReasonContested), "pause the Gateway"},
		{"the desired configuration of a contested Tunnel is in effect", status(contested), inEffect, ""},

		{"a different account in the settings is not applied, but named", otherAccount, notInEffect(conditions.ReasonSettingsNotApplied), "The setting account "},
		{
			"an existing tunnel in the settings is not applied, but named",
			func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherTunnelID} }, notInEffect(conditions.ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"a different existing tunnel in the settings is not applied",
			combine(adopting, func(f *Facts) { f.Desired.Spec.Existing.ID = otherTunnelID }), notInEffect(conditions.ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"removing the existing tunnel from the settings is not applied",
			combine(adopting, func(f *Facts) { f.Desired.Spec.Existing = nil }), notInEffect(conditions.ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"a different cluster ID is not applied",
			func(f *Facts) { f.Desired.Spec.Name = "other.infra.shared" }, notInEffect(conditions.ReasonSettingsNotApplied), "The setting --cluster-id ",
		},
		{"a change of takeover is applied", combine(adopting, func(f *Facts) { f.Desired.Spec.Existing.Takeover = true }), inEffect, ""},
		{"the message about settings that are not applied names the Tunnel object", otherAccount, notInEffect(conditions.ReasonSettingsNotApplied), "Tunnel infra.shared "},

		{
			"the message names a Tunnel object of another Gateway",
			func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }, noTunnel(conditions.ReasonObjectMismatch), "Tunnel infra.shared belongs to Gateway infra/other",
		},
		{
			"the message names a Tunnel of another cluster",
			func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }, noTunnel(conditions.ReasonOtherCluster), "Tunnel infra.shared was created in another cluster",
		},
		{
			"the message names a Tunnel that a newer version serves, and the address stays",
			newerVersion, notInEffect(conditions.ReasonNewerVersion), "A newer version of the controller serves Tunnel infra.shared (schema version 4; this version supports 3)",
		},
		{
			"a Gateway that returns during the deletion is not programmed",
			status(deleting), notInEffect(conditions.ReasonDeletionPending), "",
		},
		{"a Gateway that returns during the deletion is not programmed after a restart", combine(status(deleting), restarted), notInEffect(conditions.ReasonDeletionPending), ""},
		{
			"a Gateway waits until a retiring Tunnel with other settings is gone",
			combine(otherUID, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }), notInEffect(conditions.ReasonDeletionPending), "",
		},
		{
			"the message names the setting that does not agree with a retained Tunnel",
			combine(otherUID, withRetain, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }),
			notInEffect(conditions.ReasonSettingsNotApplied), "The setting account ",
		},

		{
			"the message about a tunnel in use does not name the other Gateway",
			combine(adopting, rivals(Rival{Object: "team-a.secret", Recorded: true, Older: true})), notInEffect(conditions.ReasonTunnelInUse), "Another Gateway uses the tunnel",
		},
		{
			"a tunnel that is in use cannot be claimed",
			combine(notRecorded, rivals(Rival{Object: "team-a.secret", Recorded: true})), noTunnel(conditions.ReasonTunnelInUse), "Another Gateway uses the tunnel",
		},
		{
			"an existing tunnel with another Gateway's name is not adopted",
			combine(adopted, tunnelRead(Present), withRemoteName("prod.team-a.web")), notInEffect(conditions.ReasonNameReserved), "",
		},
		{
			"an existing tunnel that does not exist has no address",
			combine(adopted, tunnelRead(Absent), failing(TrackTunnel, conditions.ReasonTunnelMissing, time.Second)), noTunnel(conditions.ReasonTunnelMissing), "It failed.",
		},
		{
			"an adopted tunnel keeps its address while it is missing",
			combine(adopting, tunnelNotFound, failing(TrackTunnel, conditions.ReasonTunnelMissing, time.Second)), notInEffect(conditions.ReasonTunnelMissing), "",
		},
		{"replacing the configuration of an existing tunnel requires takeover", combine(adopted, external), notInEffect(conditions.ReasonTakeoverRequired), "tunnel.existing.takeover"},

		{"a paused Gateway whose configuration is in effect is programmed, with a note", paused, inEffect, "The Gateway is paused"},
		{
			"the message about a pause contains its beginning",
			combine(paused, func(f *Facts) { f.Object.Status.PausedSince = timeAt(-time.Hour) }), inEffect, "paused since 2026-09-01T11:00:00Z, so the controller",
		},
		{"a paused Gateway whose routes changed is not programmed", combine(paused, routesChanged), notInEffect(conditions.ReasonPaused), "The Gateway is paused"},
		{"a restart does not change the reported state of a paused Gateway", combine(paused, restarted), pending, ""},
		{"a paused Gateway without a Tunnel is not programmed", func(f *Facts) { f.Object, f.Memory, f.Gateway.Paused = nil, Memory{}, true }, noTunnel(conditions.ReasonPaused), ""},

		{"while the credentials are missing, the configuration stays in effect", credentials(CredentialsMissing), inEffect, ""},
		{"while the credentials are missing, a restart does not change the reported state", combine(restarted, credentials(CredentialsMissing)), pending, "api-token not found"},
		{"a restart with another account's credentials does not change the reported state", combine(restarted, credentials(CredentialsWrongAccount)), pending, "another account"},
		{
			"while the credentials are missing, a new configuration is not in effect",
			combine(routesChanged, credentials(CredentialsMissing)), notInEffect(conditions.ReasonCredentialsMissing), "api-token not found",
		},
		{"a new Tunnel without credentials fails", combine(withoutTunnel, credentials(CredentialsMissing)), noTunnel(conditions.ReasonCredentialsMissing), ""},
		{
			"a new Tunnel with credentials for another account fails",
			combine(withoutTunnel, credentials(CredentialsWrongAccount)), noTunnel(conditions.ReasonWrongAccount), "account account-1",
		},
		{
			"a new Tunnel fails when Cloudflare rejects the token",
			combine(withoutTunnel, failing(TrackTunnel, conditions.ReasonUnauthorized, time.Second)), noTunnel(conditions.ReasonUnauthorized), "Retrying in 8s.",
		},

		{"a Gateway without a Tunnel object is pending", func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, Outcome{}, ""},
		{
			"a Gateway whose Tunnel object could not be created fails",
			combine(func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, failing(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second)), noTunnel(conditions.ReasonKubernetesUnavailable), "Retrying in 8s.",
		},
		{"a Gateway whose settings are not valid does not change the reported state", invalidSettings, pending, ""},
		{"failing connectors do not affect the configuration", failing(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second), inEffect, ""},
		{"a token that cannot be read does not affect the configuration", func(f *Facts) { f.Token.State = TokenNameConflict }, inEffect, ""},
		{
			"a Gateway with a locally managed tunnel fails",
			combine(withoutTunnel, func(f *Facts) {
				f.Memory = Conclude(f.Memory, Step{Action: FindByName}, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: testTunnelID, Name: testTunnelName, Local: true}})
			}),
			noTunnel(conditions.ReasonLocallyManaged), "locally managed",
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.facts != nil {
				r.facts(&f)
			}
			f.Memory = Observe(f)
			got := Programmed(f)
			if !strings.Contains(got.Message, r.message) {
				t.Errorf("message = %q, want it to contain %q", got.Message, r.message)
			}
			if got.Message != "" {
				checkSentence(t, "the message", got.Message)
			}
			if strings.Contains(got.Message, "team-a") {
				t.Errorf("the message names another Gateway: %q", got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(r.want, got, comparableReasons); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredSpecFollowsTheSettings(t *testing.T) {
	changed := func(f *Facts) {
		f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
		f.Desired.Spec.Credentials = &v1alpha1.SecretKeyReference{Name: "team-token", Key: ptr.To("token")}
	}
	type spec = *v1alpha1.TunnelSpec
	applied := func(s spec) {
		s.DeletionPolicy, s.Credentials = v1alpha1.DeletionPolicyRetain, &v1alpha1.SecretKeyReference{Name: "team-token", Key: ptr.To("token")}
	}
	unchanged := func(spec) {}
	manualChange := func(f *Facts) {
		f.Object.Spec.DeletionPolicy, f.Object.Spec.Paused = v1alpha1.DeletionPolicyRetain, false
	}
	rows := []struct {
		name  string
		facts change
		want  func(spec)
	}{
		{"a healthy Tunnel keeps its spec", nil, unchanged},
		{"the settings are written while they agree with every identity field", changed, applied},
		{"a manual change of the spec is overwritten while the Gateway exists", manualChange, func(s spec) { s.DeletionPolicy = v1alpha1.DeletionPolicyDelete }},
		{"while the account disagrees, nothing is written", combine(changed, otherAccount), unchanged},
		{"while the name disagrees, nothing is written", combine(changed, func(f *Facts) { f.Desired.Spec.Name = "other" }), unchanged},
		{
			"while the existing tunnel disagrees, nothing is written",
			combine(changed, func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherTunnelID} }), unchanged,
		},
		{"while settings disagree, paused is written", combine(changed, otherAccount, func(f *Facts) { f.Gateway.Paused = true }), func(s spec) { s.Paused = true }},
		{"while settings disagree, the end of a pause is written", combine(recordedPaused, otherAccount), func(s spec) { s.Paused = false }},
		{"while settings are not valid, paused is written", combine(invalidSettings, func(f *Facts) { f.Gateway.Paused = true }), func(s spec) { s.Paused = true }},
		{"takeover is written because it is not a part of the identity", combine(adopting, func(f *Facts) { f.Desired.Spec.Existing.Takeover = true }), func(s spec) { s.Existing.Takeover = true }},
		{"while the Gateway is gone, nothing is written", combine(recordedPaused, gatewayIs(GatewayGone)), unchanged},
		{"while the Gateway is not managed, nothing is written", combine(recordedPaused, gatewayIs(GatewayNotManaged)), unchanged},
		{"while the Gateway is unknown, nothing is written", combine(changed, recordedPaused, func(f *Facts) { f.Gateway.State = GatewayUnknown }), unchanged},
		{"for a new Gateway whose settings disagree, nothing is written", combine(changed, otherUID, otherAccount, func(f *Facts) { f.Gateway.Paused = true }), unchanged},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.facts != nil {
				r.facts(&f)
			}
			want := f.Object.Spec.DeepCopy()
			r.want(want)
			before := f.Object.Spec.DeepCopy()
			if diff := cmp.Diff(*want, DesiredSpec(f)); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*before, f.Object.Spec); diff != "" {
				t.Errorf("DesiredSpec changed the Facts:\n%s", diff)
			}
		})
	}

	t.Run("a new Tunnel's spec follows the settings", func(t *testing.T) {
		f := serving(changed)
		f.Object = nil
		if diff := cmp.Diff(f.Desired.Spec, DesiredSpec(f)); diff != "" {
			t.Errorf("unexpected spec (-want +got):\n%s", diff)
		}
	})
}
