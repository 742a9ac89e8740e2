package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// refreshTo requests a reconcile with the value.
func refreshTo(value string) change {
	return func(f *Facts) {
		f.Object.Annotations = map[string]string{v1alpha1.ReconcileAnnotation: value}
	}
}

// refreshing is a reconcile to the value "a" that began d ago and has read everything.
func refreshing(d time.Duration) change {
	return combine(refreshTo("a"), func(f *Facts) { f.Memory.Refresh = Refresh{Value: "a", Started: At(f.Uptime - d)} })
}

func handled(value string) change {
	return status(func(s *v1alpha1.TunnelStatus) { s.Reconciled = value })
}

func TestRequestedReconcileReadsEverythingAgain(t *testing.T) {
	readConfiguration := want{Action: ReadConfiguration, Priority: provider.PriorityDrift}
	testDecide(t, []row{
		{"a new value reads the configuration", refreshTo("a"), readConfiguration},
		{"an unchanged value has no effect", combine(refreshTo("a"), handled("a")), idle()},
		{"after a restart, a value that was handled has no effect", combine(refreshTo("a"), handled("a"), restarted, withUptime(time.Minute), remoteConfiguration(wantedConfiguration, 7)), idle()},
		{"after a restart, a value that was not handled is handled", combine(refreshTo("a"), handled("b"), restarted), want{Action: ReadConfiguration, Priority: provider.PriorityStart}},
		{"an empty value has no effect", combine(refreshTo(""), handled("a")), idle()},
		{"a value that does not fit in the status has no effect", refreshTo(strings.Repeat("a", 1025)), idle()},
		{"the longest value is handled", refreshTo(strings.Repeat("a", 1024)), readConfiguration},
		{"a rotation whose value does not fit in the status has no effect", combine(rotateOnDemand, func(f *Facts) {
			f.Object.Annotations[v1alpha1.RotateTokenAnnotation] = strings.Repeat("a", 1025)
		}), idle()},

		{"a new value ends the backoff of the configuration", combine(refreshTo("a"), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Minute)), readConfiguration},
		{
			"a new value ends the backoff of the Tunnel object",
			combine(refreshTo("a"), failing(TrackObject, conditions.ReasonKubernetesUnavailable, time.Minute), func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }),
			want{Action: Claim},
		},
		{"a new value tries a rejected configuration again", combine(refreshTo("a"), routesChanged, failing(TrackConfiguration, conditions.ReasonConfigurationRejected, time.Minute)), readConfiguration},
		{
			"a new value does not end a rate limit of the Cloudflare API",
			combine(refreshTo("a"), restarted, failing(TrackConfiguration, conditions.ReasonRateLimited, time.Minute), failing(TrackToken, conditions.ReasonRateLimited, time.Minute), failing(TrackTunnel, conditions.ReasonRateLimited, time.Minute)),
			want{Action: Wait, Wait: time.Minute, Problem: conditions.ReasonRateLimited},
		},
		{
			"a new value does not end a wait for the API request budget",
			combine(refreshTo("a"), restarted, func(f *Facts) {
				for _, track := range []Track{TrackTunnel, TrackConfiguration, TrackToken} {
					f.Memory.Backoffs[track] = Backoff{Until: At(f.Uptime + time.Minute), Slot: Slot{Assigned: true, Priority: provider.PriorityStart}}
				}
			}),
			want{Action: Wait, Wait: time.Minute},
		},
		{
			"a second value waits until ten seconds after the first",
			combine(refreshing(4*time.Second), refreshTo("b")), want{Action: Wait, Wait: 6 * time.Second},
		},
		{"after ten seconds a second value is handled", combine(refreshing(10*time.Second), refreshTo("b")), readConfiguration},
		{
			"a value that waits does not delay an earlier step",
			combine(refreshing(4*time.Second), refreshTo("b"), readDue), readConfiguration,
		},

		{"a paused Tunnel reads the configuration", combine(refreshTo("a"), paused), readConfiguration},
		{
			"a paused Tunnel reads no token, because a new token would restart its connectors",
			combine(refreshing(0), paused, func(f *Facts) { f.Memory.Token.Suspect, f.Memory.Refresh.Connections = true, true }),
			want{Action: ListConnections, Priority: provider.PriorityDrift},
		},
		{"a paused Tunnel writes nothing", combine(refreshing(0), paused, remoteConfiguration(externalConfiguration, 9)), want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused}},
		{"a contested configuration is read, and not written", combine(refreshTo("a"), status(contested), remoteConfiguration(externalConfiguration, 9)), readConfiguration},
		{
			"a tunnel with another Gateway's name is read again, because a user may have renamed it",
			combine(refreshTo("a"), adopted, withRemoteName("prod.team.other"), func(f *Facts) { f.Memory.Remote.Tunnel.Read = At(f.Uptime) }), want{Action: ReadTunnel},
		},
		{"a Tunnel of another cluster reads nothing", combine(refreshTo("a"), func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }), want{Action: None, Problem: conditions.ReasonOtherCluster}},
		{"a retained Tunnel reads nothing", combine(retiring(withRetain), refreshTo("a")), want{Action: None}},
		{
			"a failed deletion is tried again, beginning with the connectors",
			combine(retiring(status(deleting), failing(TrackTunnel, conditions.ReasonPrivateRoutes, time.Minute)), refreshTo("a")),
			want{Action: ReadTunnel, Priority: provider.PriorityDeletion},
		},
		{"a request does not shorten the retirement delay", combine(gatewayGone(29*time.Second), refreshTo("a")), want{Action: Wait, Wait: time.Second, Problem: conditions.ReasonGatewayMissing}},
	})
}

func TestRequestedReconcileIsRecordedWhenItIsComplete(t *testing.T) {
	outstanding := func(change func(*Refresh)) change {
		return func(f *Facts) { change(&f.Memory.Refresh) }
	}
	configuration := outstanding(func(r *Refresh) { r.Configuration = true })
	for _, test := range []struct {
		name  string
		facts change
		want  bool
	}{
		{"everything was read and the desired configuration is in effect", nil, true},
		{"the configuration was not read because of a failure", combine(configuration, readDue, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second)), false},
		{"the configuration was not read because of the API request budget", configuration, false},
		{"the connectors were not listed", combine(outstanding(func(r *Refresh) { r.Connections = true }), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second)), false},
		{"the token was not read", combine(func(f *Facts) { f.Memory.Token.Suspect = true }, failing(TrackToken, conditions.ReasonCloudflareUnavailable, time.Second)), false},
		{"the token is not in its Secret", combine(func(f *Facts) { f.Token.State = TokenMissing }, failing(TrackToken, conditions.ReasonTokenFailed, time.Second)), false},
		{"the configuration could not be written", combine(routesChanged, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second)), false},
		{"the next step is not to wait", func(f *Facts) { f.Connectors.Current = false }, false},
		{"the credentials are missing", combine(configuration, readDue, credentials(CredentialsMissing)), true},
		{"the configuration is contested", combine(status(contested), remoteConfiguration(externalConfiguration, 9)), true},
		{"the configuration is contested and was not read", combine(configuration, status(contested), remoteConfiguration(externalConfiguration, 9)), false},
		{"the name of the token Secret is taken", func(f *Facts) { f.Token.State, f.Memory.Token.Suspect = TokenNameConflict, true }, true},
		{"the settings are not valid", combine(invalidSettings, configuration), true},
		{"another Tunnel has claimed the tunnel", combine(adopting, rivals(Rival{Object: "team-a.web", Recorded: true, Older: true})), true},
		{"the Tunnel belongs to another cluster", func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" }, true},
		{"a newer version serves the Tunnel", newerVersion, true},
		{"the Tunnel is paused", combine(paused, remoteConfiguration(externalConfiguration, 9)), true},
		{"the Tunnel is paused and its configuration was not read", combine(paused, configuration), false},
		{"the Tunnel is paused and its credentials are missing", combine(paused, configuration, credentials(CredentialsMissing)), true},
		{"the state of the Gateway is unknown", gatewayIs(GatewayUnknown), false},
		{"the Gateway is gone and the retirement delay has not passed", combine(gatewayGone(time.Second), configuration), true},
		{"the Tunnel is retained", retiring(withRetain, configuration), true},
		{"the tunnel cannot be deleted", combine(retiring(status(deleting), configuration, failing(TrackTunnel, conditions.ReasonPrivateRoutes, time.Second))), true},
		{"the tunnel of a Gateway that returned is being deleted", returnedAfterDeleting, false},
		{"the annotation has a newer value", refreshTo("b"), false},
		{"the annotation was removed", func(f *Facts) { f.Object.Annotations = nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := serving(refreshing(time.Second))
			if test.facts != nil {
				test.facts(&f)
			}
			f.Memory = Observe(f)
			if got := Status(f).Reconciled; (got == "a") != test.want {
				t.Errorf("status.reconciled = %q, want it to be recorded: %t", got, test.want)
			}
		})
	}
}

func TestRequestedReconcileFollowsItsSteps(t *testing.T) {
	recorded := func(t *testing.T, f *Facts, want string) {
		t.Helper()
		if got := Status(*f).Reconciled; got != want {
			t.Errorf("status.reconciled = %q, want %q", got, want)
		}
	}
	t.Run("failed reads are repeated after an outage", func(t *testing.T) {
		runSequence(t, serving(refreshTo("a"), failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Minute)), []sequenceStep{
			{want: want{Action: ReadConfiguration, Priority: provider.PriorityDrift}, result: Result{Err: errNoResponse}},
			{want: want{Action: ReadToken, Priority: provider.PriorityDrift}},
			{
				want:   want{Action: ListConnections, Priority: provider.PriorityDrift},
				result: Result{Connectors: []provider.Connector{connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour)}},
			},
			{
				want: want{Action: Wait, Wait: time.Second, Problem: conditions.ReasonCloudflareUnavailable}, wait: time.Second,
				then: func(f *Facts) { recorded(t, f, "") },
			},
			{want: want{Action: ReadConfiguration, Priority: provider.PriorityDrift}, result: Result{Configuration: externalConfiguration, Version: 9}},
			{
				want:   want{Action: Configure, Event: conditions.EventDriftRepaired, Change: 9},
				result: Result{Configuration: wantedConfiguration, Version: 10},
				then:   func(f *Facts) { recorded(t, f, "a") },
			},
			{want: want{Action: Wait, Wait: contestedInterval}},
		})
	})
	t.Run("an externally deleted tunnel is replaced without a read", func(t *testing.T) {
		runSequence(t, serving(refreshTo("a")), []sequenceStep{
			{want: want{Action: ReadConfiguration, Priority: provider.PriorityDrift}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: FindByName}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=", Event: conditions.EventTunnelLost}},
			{want: want{Action: Create, Record: "creating=true"}, result: Result{Tunnel: provider.Tunnel{ID: otherTunnelID, Name: testTunnelName}}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + otherTunnelID, Event: conditions.EventTunnelCreated}, then: func(f *Facts) { f.Token.State = TokenMissing }},
			{
				want:   want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
				result: Result{Configuration: wantedConfiguration, Version: 1},
			},
			{want: want{Action: ReadToken}, then: func(f *Facts) { f.Token.State = TokenPresent }},
			{want: want{Action: Record, Record: "token.rotatedAt=2026-09-01T12:00:00Z"}},
			{want: want{Action: ListConnections, Priority: provider.PriorityDrift}, then: func(f *Facts) { recorded(t, f, "a") }},
		})
	})
}

func TestPausedTunnelReportsAnExternalChange(t *testing.T) {
	f := serving(paused, remoteConfiguration(externalConfiguration, 9))
	f.Object.Status = Status(serving())
	if conditions.TypeTunnelConfigurationApplied.IsTrue(Status(f).Conditions) {
		t.Error("ConfigurationApplied is True, although the remote configuration is known to differ")
	}
}
