package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestProgrammed(t *testing.T) {
	inEffect := Outcome{State: OutcomeInEffect, Tunnel: ownID}
	pending := Outcome{State: OutcomePending, Tunnel: ownID}
	notInEffect := func(reason Reason) Outcome { return Outcome{State: OutcomeFailed, Reason: reason, Tunnel: ownID} }
	noTunnel := func(reason Reason) Outcome { return Outcome{State: OutcomeFailed, Reason: reason} }
	foreign := remoteConfiguration(foreignConfiguration, 9)
	rows := []struct {
		name  string
		facts change
		want  Outcome
		// says is a part of the message.
		says string
	}{
		{"a configuration that was written or read is in effect", nil, inEffect, ""},
		{"a new configuration is pending until it is written", routesChanged, pending, ""},
		{"after a restart what was reported before stays, until the configuration is read", restarted, pending, ""},
		{
			"after a restart a failure does not change what was reported before",
			all(restarted, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)), pending, "It failed. Retrying in 8s.",
		},
		{
			"a new configuration that could not be written is not in effect, for the reason",
			all(routesChanged, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)), notInEffect(ReasonUnavailable), "It failed. Retrying in 8s.",
		},
		{
			"a rate limit is no failure of a Gateway",
			all(routesChanged, failing(TrackConfiguration, ReasonRateLimited, 4*time.Second)), pending, "It failed. Retrying in 8s.",
		},
		{
			"a configuration that is in effect stays so when a read fails",
			all(readDue, failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)), inEffect, "",
		},
		{
			"a rejected configuration is not in effect",
			all(routesChanged, failing(TrackConfiguration, ReasonConfigurationRejected, 4*time.Second)), notInEffect(ReasonConfigurationRejected), "",
		},
		{
			"a write that may still arrive leaves it open which configuration is in effect",
			all(restarted, func(f *Facts) {
				f.Memory.Late = LateWrites{Hashes: []string{"late"}, Settled: At(f.Uptime + time.Second)}
			},
				failing(TrackConfiguration, ReasonUnavailable, 4*time.Second)),
			notInEffect(ReasonUnavailable), "",
		},
		{"an external change is being reverted", foreign, pending, ""},
		{"a contested configuration needs a person", all(foreign, status(contested)), notInEffect(ReasonContested), "pause the Gateway"},
		{"a contested Tunnel whose configuration is as desired is in effect", status(contested), inEffect, ""},

		{"settings that ask for another account are not applied, and the account is named", otherAccount, notInEffect(ReasonSettingsNotApplied), "The setting account "},
		{
			"settings that ask for an existing tunnel are not applied, and it is named",
			func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherID} }, notInEffect(ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"settings that ask for another existing tunnel are not applied",
			all(adopting, func(f *Facts) { f.Desired.Spec.Existing.ID = otherID }), notInEffect(ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"settings that no longer ask for an existing tunnel are not applied",
			all(adopting, func(f *Facts) { f.Desired.Spec.Existing = nil }), notInEffect(ReasonSettingsNotApplied), "The setting tunnel.existing ",
		},
		{
			"another cluster ID asks for another name and is not applied",
			func(f *Facts) { f.Desired.Spec.Name = "other.infra.shared" }, notInEffect(ReasonSettingsNotApplied), "The setting --cluster-id ",
		},
		{"takeover is a setting that is applied", all(adopting, func(f *Facts) { f.Desired.Spec.Existing.Takeover = true }), inEffect, ""},
		{"settings that are not applied name the Tunnel object", otherAccount, notInEffect(ReasonSettingsNotApplied), "Tunnel infra.shared "},

		{
			"a Tunnel object that is for another Gateway is named",
			func(f *Facts) { f.Object.Spec.Gateway.Name = "other" }, noTunnel(ReasonObjectMismatch), "Tunnel infra.shared belongs to Gateway infra/other",
		},
		{
			"a Tunnel of another cluster is named",
			func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }, noTunnel(ReasonOtherCluster), "Tunnel infra.shared was created in another cluster",
		},
		{
			"a Gateway that returns during the deletion is not programmed, whatever was in effect before",
			status(deleting), notInEffect(ReasonDeletionPending), "",
		},
		{"a Gateway that returns during the deletion is not programmed after a restart either", all(status(deleting), restarted), notInEffect(ReasonDeletionPending), ""},
		{
			"a Gateway whose settings do not agree with the retiring Tunnel waits until that is gone",
			all(otherUID, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }), notInEffect(ReasonDeletionPending), "",
		},
		{
			"a Gateway whose settings do not agree with a retained Tunnel is told which setting it is",
			all(otherUID, withRetain, otherAccount, func(f *Facts) { f.Memory.MissingSince = At(f.Uptime - time.Minute) }),
			notInEffect(ReasonSettingsNotApplied), "The setting account ",
		},

		{
			"a tunnel that is in use is reported without the name of the other Gateway",
			all(adopting, rivals(Rival{Object: "team-a.secret", Recorded: true, Older: true})), notInEffect(ReasonTunnelInUse), "in use by another Gateway",
		},
		{
			"a tunnel that is in use cannot be claimed",
			all(unclaimed, rivals(Rival{Object: "team-a.secret", Recorded: true})), noTunnel(ReasonTunnelInUse), "in use by another Gateway",
		},
		{
			"an existing tunnel with another Gateway's name is refused",
			all(adopted, tunnelRead(Present), named("prod.team-a.web")), notInEffect(ReasonNameReserved), "",
		},
		{
			"an existing tunnel that does not exist has no address",
			all(adopted, tunnelRead(Absent), failing(TrackTunnel, ReasonTunnelMissing, time.Second)), noTunnel(ReasonTunnelMissing), "It failed.",
		},
		{
			"an adopted tunnel that served keeps its address while it is missing",
			all(adopting, tunnelNotFound, failing(TrackTunnel, ReasonTunnelMissing, time.Second)), notInEffect(ReasonTunnelMissing), "",
		},
		{"an existing tunnel needs takeover", all(adopted, foreign), notInEffect(ReasonTakeoverRequired), "tunnel.existing.takeover"},

		{"a paused Gateway whose configuration is in effect is programmed, with a remark", paused, inEffect, "The Gateway is paused"},
		{"a paused Gateway whose routes changed is not programmed", all(paused, routesChanged), notInEffect(ReasonPaused), "The Gateway is paused"},
		{"a paused Gateway stays as it was reported after a restart", all(paused, restarted), pending, ""},
		{"a paused Gateway without a Tunnel is not programmed", func(f *Facts) { f.Object, f.Memory, f.Gateway.Paused = nil, Memory{}, true }, noTunnel(ReasonPaused), ""},

		{"while the credentials are missing, what is served stays served", credentials(CredentialsMissing), inEffect, ""},
		{"while the credentials are missing, a restart leaves what was reported", all(restarted, credentials(CredentialsMissing)), pending, "api-token not found"},
		{"while the credentials are for another account, a restart leaves what was reported", all(restarted, credentials(CredentialsWrongAccount)), pending, "another account"},
		{
			"while the credentials are missing, a new configuration is not in effect",
			all(routesChanged, credentials(CredentialsMissing)), notInEffect(ReasonCredentialsMissing), "api-token not found",
		},
		{"a new Tunnel without credentials has the reason", all(unlocated, credentials(CredentialsMissing)), noTunnel(ReasonCredentialsMissing), ""},
		{
			"credentials for another account are a reason",
			all(unlocated, credentials(CredentialsWrongAccount)), noTunnel(ReasonWrongAccount), "account account-1",
		},
		{
			"a token that Cloudflare refuses is a reason",
			all(unlocated, failing(TrackTunnel, ReasonUnauthorized, time.Second)), noTunnel(ReasonUnauthorized), "Retrying in 8s.",
		},

		{"a Gateway whose Tunnel object is not created yet is pending", func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, Outcome{}, ""},
		{
			"a Tunnel object that could not be created is a reason",
			all(func(f *Facts) { f.Object, f.Memory = nil, Memory{} }, failing(TrackObject, ReasonKubernetes, time.Second)), noTunnel(ReasonKubernetes), "Retrying in 8s.",
		},
		{"a Gateway whose settings are not valid says nothing about its tunnel", invalidSettings, pending, ""},
		{"connectors that fail do not make a configuration less in effect", failing(TrackConnectors, ReasonConnectorsFailed, time.Second), inEffect, ""},
		{"a token that cannot be read does not make a configuration less in effect", func(f *Facts) { f.Token.State = TokenNameConflict }, inEffect, ""},
		{
			"a locally managed tunnel is a reason",
			all(unlocated, func(f *Facts) {
				f.Memory = Conclude(f.Memory, Step{Action: FindByName}, Result{Uptime: f.Uptime, Tunnel: provider.Tunnel{ID: ownID, Name: ownName, Local: true}})
			}),
			noTunnel(ReasonLocallyManaged), "locally managed",
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
			if !strings.Contains(got.Message, r.says) {
				t.Errorf("the message is %q, want it to contain %q", got.Message, r.says)
			}
			if got.Message != "" {
				checkSentence(t, "the message", got.Message)
			}
			if strings.Contains(got.Message, "team-a") {
				t.Errorf("the message names another Gateway: %q", got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredSpec(t *testing.T) {
	changed := func(f *Facts) {
		f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
		f.Desired.Spec.Credentials = &v1alpha1.SecretKeyReference{Name: "team-token", Key: ptr.To("token")}
	}
	type spec = *v1alpha1.TunnelSpec
	follows := func(s spec) {
		s.DeletionPolicy, s.Credentials = v1alpha1.DeletionPolicyRetain, &v1alpha1.SecretKeyReference{Name: "team-token", Key: ptr.To("token")}
	}
	stays := func(spec) {}
	byHand := func(f *Facts) {
		f.Object.Spec.DeletionPolicy, f.Object.Spec.Paused = v1alpha1.DeletionPolicyRetain, false
	}
	rows := []struct {
		name  string
		facts change
		want  func(spec)
	}{
		{"a healthy Tunnel keeps its spec", nil, stays},
		{"the settings are written while they agree with every identity field", changed, follows},
		{"what an administrator wrote is overwritten while the Gateway exists", byHand, func(s spec) { s.DeletionPolicy = v1alpha1.DeletionPolicyDelete }},
		{"while the account disagrees, nothing is written", all(changed, otherAccount), stays},
		{"while the name disagrees, nothing is written", all(changed, func(f *Facts) { f.Desired.Spec.Name = "other" }), stays},
		{
			"while the existing tunnel disagrees, nothing is written",
			all(changed, func(f *Facts) { f.Desired.Spec.Existing = &v1alpha1.AdoptedTunnel{ID: otherID} }), stays,
		},
		{"while settings disagree, paused is written", all(changed, otherAccount, func(f *Facts) { f.Gateway.Paused = true }), func(s spec) { s.Paused = true }},
		{"while settings disagree, a pause that ended is written", all(recordedPaused, otherAccount), func(s spec) { s.Paused = false }},
		{"while settings are not valid, paused is written", all(invalidSettings, func(f *Facts) { f.Gateway.Paused = true }), func(s spec) { s.Paused = true }},
		{"takeover is written: it is no part of the identity", all(adopting, func(f *Facts) { f.Desired.Spec.Existing.Takeover = true }), func(s spec) { s.Existing.Takeover = true }},
		{"while the Gateway is gone, nothing is written", all(recordedPaused, gatewayIs(GatewayGone)), stays},
		{"while the Gateway is not managed, nothing is written", all(recordedPaused, gatewayIs(GatewayNotManaged)), stays},
		{"while the Gateway is unknown, nothing is written", all(changed, recordedPaused, func(f *Facts) { f.Gateway.State = GatewayUnknown }), stays},
		{"for another Gateway of the name whose settings disagree, nothing is written", all(changed, otherUID, otherAccount, func(f *Facts) { f.Gateway.Paused = true }), stays},
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
				t.Errorf("the Facts were changed:\n%s", diff)
			}
		})
	}

	t.Run("a Gateway without a Tunnel object gets the spec of its settings", func(t *testing.T) {
		f := serving(changed)
		f.Object = nil
		if diff := cmp.Diff(f.Desired.Spec, DesiredSpec(f)); diff != "" {
			t.Errorf("unexpected spec (-want +got):\n%s", diff)
		}
	})
}
