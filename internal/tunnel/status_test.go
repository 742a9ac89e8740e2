package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// statusSummary contains the phase, and each condition as "<status> <reason>", or "" if it
// is not reported.
type statusSummary struct {
	Phase       v1alpha1.TunnelPhase
	Ready       string
	Credentials string
	Applied     string
	Connectors  string
}

func summarizeStatus(s v1alpha1.TunnelStatus) statusSummary {
	summary := func(t conditions.Type) string {
		c := t.Find(s.Conditions)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	return statusSummary{
		Phase: s.Phase, Ready: summary(conditions.TypeTunnelReady), Credentials: summary(conditions.TypeTunnelCredentialsValid),
		Applied: summary(conditions.TypeTunnelConfigurationApplied), Connectors: summary(conditions.TypeTunnelConnectorsReady),
	}
}

func TestStatusReportsPhaseAndConditions(t *testing.T) {
	const (
		accepted = "True Accepted"
		applied  = "True Applied"
		running  = "True Ready"
	)
	external := remoteConfiguration(externalConfiguration, 9)
	// stopped is the status when a retiring Tunnel's connectors have stopped.
	stopped := func(phase v1alpha1.TunnelPhase, ready string) statusSummary {
		return statusSummary{phase, ready, accepted, "", ""}
	}
	served := func(ready, applied string) statusSummary {
		return statusSummary{v1alpha1.TunnelServing, ready, accepted, applied, running}
	}
	rows := []struct {
		name  string
		facts change
		want  statusSummary
		// ready is a part of the Ready condition's message.
		ready string
	}{
		{"a healthy Tunnel serves", nil, served("True Serving", applied), ""},
		{"a new configuration is pending", routesChanged, served("False Pending", "False Pending"), ""},
		{
			"Ready reports a configuration that could not be written",
			combine(routesChanged, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second)),
			served("False CloudflareUnavailable", "False CloudflareUnavailable"), "Retrying in 8s.",
		},
		{"after a restart nothing is reported until Cloudflare has responded", restarted, statusSummary{v1alpha1.TunnelServing, "", "", "", running}, ""},
		{
			"Ready reports connectors that are not ready",
			func(f *Facts) {
				f.Connectors.Reason, f.Connectors.Message = conditions.ReasonUnavailable, "No connector is connected."
			},
			statusSummary{v1alpha1.TunnelServing, "False Unavailable", accepted, applied, "False Unavailable"}, "No connector is connected.",
		},
		{
			"Ready reports connectors that could not be applied",
			combine(func(f *Facts) { f.Connectors.Current = false }, failing(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second)),
			statusSummary{v1alpha1.TunnelServing, "False ConnectorsFailed", accepted, applied, "False ConnectorsFailed"}, "",
		},
		{
			"users may run the connectors themselves",
			func(f *Facts) { f.Connectors = Connectors{Current: true}; f.Desired.RunConnectors = false },
			statusSummary{v1alpha1.TunnelServing, "True Serving", accepted, applied, ""}, "",
		},

		{"a Tunnel that requests an existing tunnel begins with the claim", notRecorded, statusSummary{v1alpha1.TunnelClaiming, "False Pending", "", "False Pending", ""}, ""},
		{"a Tunnel without a tunnel is locating it", withoutTunnel, statusSummary{v1alpha1.TunnelLocating, "False Pending", "", "False Pending", ""}, ""},
		{
			"a Tunnel whose first configuration is not written yet is being configured",
			combine(status(func(s *v1alpha1.TunnelStatus) { s.Configuration = v1alpha1.ConfigurationRecord{} }), remoteConfiguration(provider.Configuration{}, 0)),
			statusSummary{v1alpha1.TunnelConfiguring, "False Pending", accepted, "False Pending", running}, "",
		},
		{
			"a Tunnel whose tunnel is lost is locating it",
			tunnelNotFound, statusSummary{v1alpha1.TunnelLocating, "", "", "", running}, "",
		},
		{
			"a missing existing tunnel blocks the Tunnel",
			combine(adopting, tunnelNotFound, failing(TrackTunnel, conditions.ReasonTunnelMissing, time.Second)),
			statusSummary{v1alpha1.TunnelBlocked, "False TunnelMissing", "", "False TunnelMissing", running}, "",
		},
		{
			"a missing takeover blocks the Tunnel",
			combine(adopted, external), statusSummary{v1alpha1.TunnelBlocked, "False TakeoverRequired", accepted, "False TakeoverRequired", running}, "",
		},
		{
			"a contested Tunnel serves but is not ready",
			combine(external, status(contested)), served("False Contested", "False Contested"), "pause the Gateway",
		},
		{
			"the message names the Tunnel that has claimed the tunnel",
			combine(notRecorded, rivals(Rival{Object: "team-a.web", Recorded: true})),
			statusSummary{v1alpha1.TunnelBlocked, "False TunnelInUse", "", "False TunnelInUse", ""}, "Tunnel team-a.web has claimed the same tunnel",
		},
		{
			"settings that are not applied do not affect ConfigurationApplied",
			otherAccount, served("False SettingsNotApplied", applied), "The setting account ",
		},
		{"a data plane change that waits is not a problem", changing(envoy, adding), served("True Serving", applied), ""},
		{
			"a data plane change that is blocked requires a user",
			combine(changing(envoy, adding), everyPodHasEnvoy, func(f *Facts) { f.Envoys.Rejected = "bad route" }), served("False DataPlaneBlocked", applied), "rejected",
		},
		{"ingress rules above their limits require a user", combine(serves(envoy), selects(rules), excess), served("False LimitExceeded", applied), "1,200"},
		{
			"a new configuration of the data plane in effect is pending during the change",
			combine(changing(envoy, adding), routesChanged), served("False Pending", "False Pending"), "",
		},
		{
			"the configuration is in effect when it switches", combine(serves(rules), changing(envoy, switching), everyPodHasEnvoy, switched),
			served("True Serving", applied), "",
		},
		{
			"the configuration is in effect until it is built for the new data plane",
			combine(changing(envoy, switching), everyPodHasEnvoy, switched, status(func(s *v1alpha1.TunnelStatus) { s.DataPlane, s.DataPlaneChange = envoy, nil })),
			served("True Serving", applied), "",
		},
		{"a paused Tunnel serves but is not ready", paused, served("False Paused", applied), "The Gateway has been paused since 2026-09-01T12:00:00Z"},
		{
			"a paused Tunnel whose routes changed reports the pause",
			combine(paused, routesChanged), served("False Paused", "False Paused"), "The Gateway has been paused since 2026-09-01T12:00:00Z",
		},
		{
			"a Tunnel of another cluster is blocked",
			func(f *Facts) { f.Object.Spec.ClusterUID = "cluster-2" },
			statusSummary{v1alpha1.TunnelBlocked, "False OtherCluster", accepted, applied, running}, "another cluster (UID cluster-2)",
		},
		{
			"a Tunnel that a newer version serves is blocked",
			newerVersion, statusSummary{v1alpha1.TunnelBlocked, "False NewerVersion", accepted, applied, running}, "Run the newer version again",
		},
		{
			"a Tunnel that a newer version serves does not apply changed routes",
			combine(newerVersion, routesChanged), statusSummary{v1alpha1.TunnelBlocked, "False NewerVersion", accepted, "False NewerVersion", running}, "",
		},
		{
			"Ready reports why a rotation is blocked",
			combine(rotateOnDemand, func(f *Facts) { f.Desired.RunConnectors = false }), served("False RotationBlocked", applied), "connector.enabled is false",
		},

		{
			"a Tunnel without credentials keeps serving",
			credentials(CredentialsMissing), statusSummary{v1alpha1.TunnelServing, "True Serving", "False CredentialsMissing", applied, running}, "",
		},
		{
			"missing credentials are reported after a restart",
			combine(restarted, credentials(CredentialsMissing)), statusSummary{v1alpha1.TunnelServing, "False CredentialsMissing", "False CredentialsMissing", "", running}, "api-token not found",
		},
		{
			"missing credentials block a new Tunnel",
			combine(withoutTunnel, credentials(CredentialsMissing)),
			statusSummary{v1alpha1.TunnelBlocked, "False CredentialsMissing", "False CredentialsMissing", "False CredentialsMissing", ""}, "",
		},
		{
			"credentials for another account are reported",
			credentials(CredentialsWrongAccount), statusSummary{v1alpha1.TunnelServing, "True Serving", "False WrongAccount", applied, running}, "",
		},
		{
			"CredentialsValid reports a rejected token of any track",
			failing(TrackToken, conditions.ReasonUnauthorized, time.Second), statusSummary{v1alpha1.TunnelServing, "True Serving", "False Unauthorized", applied, running}, "",
		},

		{
			"a Tunnel without its Gateway keeps its phase until the retirement delay",
			gatewayGone(time.Second), statusSummary{v1alpha1.TunnelServing, "False GatewayMissing", accepted, "", running}, "Gateway infra/shared is gone",
		},
		{
			"a Tunnel whose Gateway is unknown keeps its phase",
			gatewayIs(GatewayUnknown), statusSummary{v1alpha1.TunnelServing, "False GatewayUnknown", accepted, "", running}, "cannot determine whether",
		},
		{
			"a new Tunnel whose Gateway is unknown is in the first phase",
			combine(withoutTunnel, gatewayIs(GatewayUnknown)), statusSummary{v1alpha1.TunnelClaiming, "False GatewayUnknown", "", "", ""}, "",
		},
		{"a Tunnel retires", gatewayGone(time.Minute), statusSummary{v1alpha1.TunnelRetiring, "False Pending", accepted, "", running}, ""},
		{
			"a retiring Tunnel waits for its connectors",
			retiring(func(f *Facts) { f.Connectors.Pods = 1 }), stopped(v1alpha1.TunnelRetiring, "False ConnectorsStopping"), "pods left: 1",
		},
		{"a Tunnel whose tunnel is being deleted is pending", retiring(status(deleting)), stopped(v1alpha1.TunnelDeleting, "False Pending"), ""},
		{
			"Ready reports a failed delete",
			retiring(status(deleting), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second)), stopped(v1alpha1.TunnelDeleting, "False CloudflareUnavailable"), "Retrying in 8s.",
		},
		{
			"private network routes block the deletion",
			retiring(status(deleting), failing(TrackTunnel, conditions.ReasonPrivateRoutes, time.Second)), stopped(v1alpha1.TunnelBlocked, "False PrivateRoutes"), "",
		},
		{
			"connectors that this controller does not run block the deletion",
			retiring(connections(0, connectedConnector("a", 0))), stopped(v1alpha1.TunnelBlocked, "False ConnectorsConnected"), "Retain",
		},
		{
			"a locally managed tunnel blocks the deletion",
			retiring(tunnelRead(Present), locallyManaged), stopped(v1alpha1.TunnelBlocked, "False LocallyManaged"), "Retain",
		},
		{
			"missing credentials block the deletion",
			retiring(credentials(CredentialsMissing)), statusSummary{v1alpha1.TunnelBlocked, "False CredentialsMissing", "False CredentialsMissing", "", ""}, "api-token",
		},
		{
			"a Gateway that was deleted while paused blocks the deletion with instructions",
			combine(gatewayGone(time.Minute), recordedPaused), statusSummary{v1alpha1.TunnelBlocked, "False Paused", accepted, "", running}, "Set spec.paused of Tunnel infra.shared to false",
		},
		{"a retained Tunnel is ready", retiring(withRetain), stopped(v1alpha1.TunnelRetained, "True Retained"), "Delete the Tunnel object"},
		{
			"a Gateway that returns during the deletion is pending",
			returnedAfterDeleting, statusSummary{v1alpha1.TunnelDeleting, "False DeletionPending", accepted, "", ""}, "",
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			f.Connectors.Message = "2 of 2 connectors are ready."
			if r.facts != nil {
				r.facts(&f)
			}
			f.Memory = Observe(f)
			got := Status(f)
			if diff := cmp.Diff(r.want, summarizeStatus(got)); diff != "" {
				t.Errorf("unexpected status (-want +got):\n%s", diff)
			}
			if c := conditions.TypeTunnelReady.Find(got.Conditions); r.ready != "" && !strings.Contains(c.Message, r.ready) {
				t.Errorf("message of Ready = %q, want it to contain %q", c.Message, r.ready)
			}
			repeated := f
			repeated.Object = f.Object.DeepCopy()
			repeated.Object.Status, repeated.Clock = *got.DeepCopy(), f.Clock.Add(time.Minute)
			if diff := cmp.Diff(got, Status(repeated)); diff != "" {
				t.Errorf("the status changed without a change of the Facts (-first +second):\n%s", diff)
			}
			for _, c := range got.Conditions {
				checkSentence(t, "the condition "+c.Type, c.Message)
				if c.ObservedGeneration != 3 || c.LastTransitionTime.IsZero() {
					t.Errorf("condition %s has generation %d and time %s", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
		})
	}
}

func TestStatusReportsPrintedFields(t *testing.T) {
	status := func(changes ...change) v1alpha1.TunnelStatus {
		f := serving(changes...)
		f.Memory = Observe(f)
		return Status(f)
	}
	hostnames := func(n int32) *int32 { return &n }
	reported := func(n int32) change {
		return func(f *Facts) { f.Object.Status.Hostnames = hostnames(n) }
	}
	equal := func(name string, want, got any) {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected field (-want +got):\n%s", diff)
			}
		})
	}
	equal("the Gateway is printed with its namespace", "infra/shared", status().Gateway)
	equal("the connectors are printed as ready/desired", v1alpha1.ConnectorsStatus{Desired: 3, Ready: 1, Summary: "1/3"},
		status(func(f *Facts) { f.Connectors.Desired, f.Connectors.Ready = 3, 1 }).Connectors)
	equal("stopped connectors are printed as 0/0", "0/0", status(retiring()).Connectors.Summary)
	equal("the hostnames of the routes are counted", hostnames(1), status().Hostnames)
	equal("with Envoy, hostnames without a rule are counted", hostnames(40), status(withEnvoy, func(f *Facts) { f.Desired.Hostnames = 40 }).Hostnames)
	equal("hostnames are counted when their configuration is in effect", hostnames(7), status(routesChanged, reported(7)).Hostnames)
	equal("hostnames are kept when the Gateway is gone", hostnames(7), status(gatewayGone(time.Minute), reported(7)).Hostnames)
	equal("the time since which the Gateway is missing is recorded", timeAt(0), status(gatewayIs(GatewayGone)).MissingSince)
	equal("the time since which the Gateway is missing is kept after a restart", timeAt(-time.Hour), status(gatewayIs(GatewayGone), func(f *Facts) {
		f.Object.Status.MissingSince = timeAt(-time.Hour)
	}).MissingSince)
	equal("the time since which the Gateway is missing is removed when it returns", (*metav1.Time)(nil), status(func(f *Facts) {
		f.Object.Status.MissingSince = timeAt(-time.Hour)
	}).MissingSince)

	equal("stopped connectors are no longer reported as ready", (*metav1.Condition)(nil), conditions.TypeTunnelConnectorsReady.Find(status(retiring(func(f *Facts) {
		f.Object.Status.Conditions = []metav1.Condition{conditions.TypeTunnelConnectorsReady.New(metav1.ConditionTrue, conditions.ReasonReady, "")}
	})).Conditions))

	before := serving()
	after := Status(before)
	equal("the record does not change", recordChanges(before.Object.Status, func() v1alpha1.TunnelStatus {
		s := *after.DeepCopy()
		s.Conditions, s.Gateway, s.Hostnames, s.Connectors = nil, "", nil, v1alpha1.ConnectorsStatus{}
		return s
	}()), "unchanged")
	equal("the status does not change without a change of the Facts", after, func() v1alpha1.TunnelStatus {
		f := serving()
		f.Object.Status = *after.DeepCopy()
		f.Clock, f.Uptime = f.Clock.Add(time.Minute), f.Uptime+time.Minute
		return Status(f)
	}())
	equal("the Facts are not changed", serving().Object.Status, before.Object.Status)
}
