package tunnel

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Names of data planes and phases in the rows.
const (
	rules     = v1alpha1.DataPlaneIngressRules
	envoy     = v1alpha1.DataPlaneEnvoy
	adding    = v1alpha1.DataPlaneAddingEnvoy
	switching = v1alpha1.DataPlaneSwitching
	removing  = v1alpha1.DataPlaneRemovingEnvoy
)

const (
	recordedNow    = "dataPlaneChange.startedAt=2026-09-01T12:00:00Z"
	noChangeFields = "dataPlaneChange.phase= dataPlaneChange.startedAt= dataPlaneChange.to="
)

func serves(plane v1alpha1.DataPlane) change {
	return func(f *Facts) { f.Object.Status.DataPlane, f.Desired.ConfigurationDataPlane = plane, plane }
}

// excess is a Tunnel whose routes exceed the limits of ingress rules.
func excess(f *Facts) {
	f.Desired.Other.Excess = "The routes need 1,200 ingress rules, and limits.rulesPerTunnel is 1,000. Envoy keeps serving until you raise the limit."
}

// unconfirmed is a configuration that an earlier write can still replace.
func unconfirmed(remaining time.Duration) change {
	return func(f *Facts) {
		f.Memory.Remote.Configuration.Confirmed = false
		f.Memory.LateWrites = LateWrites{Hashes: []string{"late"}, Settled: At(f.Uptime + remaining)}
	}
}

// switched is a tunnel that has the configuration for the other data plane.
func switched(f *Facts) {
	remoteConfiguration(otherConfiguration, 8)(f)
	f.Memory.Remote.Configuration.Confirmed = true
	f.Object.Status.Configuration = v1alpha1.ConfigurationRecord{Hash: otherConfiguration.Hash(), Previous: wantedConfiguration.Hash()}
}

func notAccepted(f *Facts) { f.Desired.Configuration, f.Desired.Hash, f.Desired.Other = nil, "", nil }

func waitsFor(d time.Duration, reason conditions.Reason) want {
	return want{Action: Wait, Wait: d, Problem: reason}
}

// One row for each row in the state machine's table, and for what delays it.
func TestDataPlaneChangesInPhases(t *testing.T) {
	toEnvoy := combine(serves(rules), changing(envoy, switching), everyPodHasEnvoy)
	toRules := combine(serves(envoy), changing(rules, switching), everyPodHasEnvoy)
	writesOther := want{Action: Configure, Record: "configuration.hash=other configuration.previous=desired"}
	writesBack := want{Action: Configure, Record: "configuration.hash=desired configuration.previous=other"}
	testDecide(t, []row{
		{"the data plane of the settings is not changed", selects(rules), idle()},
		{
			"a change to Envoy begins", selects(envoy),
			want{Action: Record, Record: "dataPlaneChange.phase=AddingEnvoy " + recordedNow + " dataPlaneChange.to=Envoy", Event: conditions.EventDataPlaneChanging},
		},
		{
			"a change to ingress rules begins", combine(serves(envoy), selects(rules)),
			want{Action: Record, Record: "dataPlaneChange.phase=Switching " + recordedNow + " dataPlaneChange.to=IngressRules", Event: conditions.EventDataPlaneChanging},
		},
		{"a change to ingress rules above their limits does not begin", combine(serves(envoy), selects(rules), excess), waitsFor(untilNextRead, conditions.ReasonLimitExceeded)},
		{
			"Envoy is still configured while the ingress rules exceed their limits", combine(serves(envoy), selects(rules), excess, routesChanged),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{"a change of a Gateway that is not accepted does not begin", combine(selects(envoy), notAccepted), want{Action: None}},
		{"a change begins with both configurations", combine(serves(envoy), wantsRules), waitsFor(time.Second, noReason)},
		{"a change of a paused Tunnel does not begin", combine(selects(envoy), paused), waitsFor(untilNextRead, conditions.ReasonPaused)},

		{"Envoy is added to the connectors", combine(changing(envoy, adding), func(f *Facts) { f.Connectors.Current = false }), want{Action: RunConnectors}},
		{
			"the configuration switches when every pod has Envoy", combine(changing(envoy, adding), everyPodHasEnvoy),
			want{Action: Record, Record: "dataPlaneChange.phase=Switching"},
		},
		{
			"the ingress rules are still written while Envoy is added", combine(changing(envoy, adding), routesChanged),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"settings that ask for ingress rules again remove Envoy", combine(changing(envoy, adding), selects(rules)),
			want{Action: Record, Record: "dataPlaneChange.phase=RemovingEnvoy " + recordedNow + " dataPlaneChange.to=IngressRules", Event: conditions.EventDataPlaneReversed},
		},

		{"the configuration leads to Envoy when every pod has Envoy", toEnvoy, writesOther},
		{
			"a change to Envoy is complete when its configuration is in effect", combine(toEnvoy, switched),
			want{Action: Record, Record: "dataPlane=Envoy " + noChangeFields, Event: conditions.EventDataPlaneChanged},
		},
		{
			"a change to Envoy is complete although a pod is not ready", combine(toEnvoy, switched, func(f *Facts) { f.Connectors.Ready = 1 }),
			want{Action: Record, Record: "dataPlane=Envoy " + noChangeFields, Event: conditions.EventDataPlaneChanged},
		},
		{"the configuration of a reversed change is replaced again", combine(toEnvoy, switched, selects(rules)), writesBack},
		{
			"Envoy is removed when the ingress rules are confirmed", combine(toEnvoy, selects(rules)),
			want{Action: Record, Record: "dataPlaneChange.phase=RemovingEnvoy " + recordedNow + " dataPlaneChange.to=IngressRules", Event: conditions.EventDataPlaneReversed},
		},
		{"Envoy is not removed while a late write can lead to Envoy", combine(toEnvoy, selects(rules), unconfirmed(4*time.Second)), waitsFor(4*time.Second, noReason)},
		{"the configuration is read again after late writes", combine(toEnvoy, selects(rules), unconfirmed(0)), want{Action: ReadConfiguration}},
		{
			"a failed write of the configuration is retried with backoff", combine(toEnvoy, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			waitsFor(4*time.Second, conditions.ReasonCloudflareUnavailable),
		},
		{
			"the configuration of a contested Tunnel does not switch", combine(toEnvoy, status(contested), remoteConfiguration(externalConfiguration, 9)),
			waitsFor(rolloutInterval, conditions.ReasonContested),
		},

		{"the ingress rules are written before Envoy is removed", toRules, writesOther},
		{
			"Envoy stays in effect while the ingress rules cannot be written", combine(toRules, failing(TrackConfiguration, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			waitsFor(4*time.Second, conditions.ReasonCloudflareUnavailable),
		},
		{
			"Envoy is removed when the ingress rules are in effect", combine(toRules, switched),
			want{Action: Record, Record: "dataPlane=IngressRules dataPlaneChange.phase=RemovingEnvoy"},
		},
		{"Envoy stays in effect while a late write can lead to Envoy", combine(toRules, switched, unconfirmed(4*time.Second)), waitsFor(4*time.Second, noReason)},
		{
			"a switch to the data plane that is recorded as being in effect ends", combine(toRules, serves(rules)),
			want{Action: Record, Record: "dataPlaneChange.phase=RemovingEnvoy " + recordedNow, Event: conditions.EventDataPlaneReversed},
		},
		{"settings that ask for Envoy again restore its configuration", combine(toRules, switched, selects(envoy)), writesBack},
		{
			"a change to ingress rules that is reversed is complete when the configuration of Envoy is in effect", combine(toRules, selects(envoy)),
			want{Action: Record, Record: noChangeFields, Event: conditions.EventDataPlaneReversed},
		},
		{"ingress rules that begin to exceed the limits are not written", combine(toRules, excess), want{Action: Record, Record: noChangeFields, Event: conditions.EventDataPlaneReversed}},

		{
			"Envoy is removed from the connectors", combine(changing(rules, removing), func(f *Facts) { f.Connectors.Current = false }),
			want{Action: RunConnectors},
		},
		{
			"a change to ingress rules is not complete while the objects of the connectors cannot be written",
			combine(changing(rules, removing), failing(TrackConnectors, conditions.ReasonConnectorsFailed, 4*time.Second), func(f *Facts) { f.Connectors.Current = false }),
			waitsFor(4*time.Second, conditions.ReasonConnectorsFailed),
		},
		{
			"a change to ingress rules is complete when every pod is without Envoy", combine(changing(rules, removing), func(f *Facts) { f.Connectors.WithoutEnvoy = 2 }),
			want{Action: Record, Record: noChangeFields, Event: conditions.EventDataPlaneChanged},
		},
		{"a pod that is not available delays the end of the change", combine(changing(rules, removing), func(f *Facts) { f.Connectors.Ready-- }), waitsFor(rolloutInterval, noReason)},
		{"a terminating pod with Envoy delays the end of the change", combine(changing(rules, removing), func(f *Facts) { f.Connectors.WithEnvoy = 1 }), waitsFor(terminationInterval, noReason)},
		{
			"a change to ingress rules is complete when the settings no longer ask for connectors",
			combine(changing(rules, removing), func(f *Facts) { f.Connectors = Connectors{Current: true} }), want{Action: Record, Record: noChangeFields, Event: conditions.EventDataPlaneChanged},
		},
		{
			"settings that ask for Envoy again add Envoy", combine(changing(rules, removing), selects(envoy)),
			want{Action: Record, Record: "dataPlaneChange.phase=AddingEnvoy " + recordedNow + " dataPlaneChange.to=Envoy", Event: conditions.EventDataPlaneReversed},
		},
		{"a change of a paused Tunnel does not continue", combine(changing(rules, removing), paused), waitsFor(untilNextRead, conditions.ReasonPaused)},
		{"a change does not continue while the settings are not valid", combine(changing(rules, removing), invalidSettings), want{Action: None}},
		{
			"a lost tunnel keeps the change",
			combine(toEnvoy, tunnelNotFound, tunnelRead(Absent), func(f *Facts) { f.Memory.Remote.Configuration.Missing = true }),
			want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=", Event: conditions.EventTunnelLost},
		},
	})
}

// wantsRules changes the settings to ingress rules without building their configuration.
func wantsRules(f *Facts) { f.Desired.DataPlane = rules }

func TestTrafficReachesEnvoyAfterEveryConnectorIsReady(t *testing.T) {
	podWithoutEnvoy := func(f *Facts) { f.Connectors.WithoutEnvoy, f.Connectors.WithEnvoy = 1, 1 }
	external := connections(time.Second, connectedConnector("a", 0), connectedConnector("b", 0), connectedConnector("c", 0))
	surplusFor := func(d time.Duration) change {
		return combine(external, func(f *Facts) { f.Memory.SurplusSince = At(f.Uptime - d) })
	}
	noReplicas := func(f *Facts) {
		f.Connectors.Desired, f.Connectors.Ready, f.Connectors.Pods, f.Connectors.WithEnvoy, f.Envoys = 0, 0, 0, 0, Envoys{}
	}
	list := want{Action: ListConnections}
	rollout, termination := waitsFor(rolloutInterval, noReason), waitsFor(terminationInterval, noReason)
	rows := []row{
		{"a pod without Envoy", podWithoutEnvoy, termination},
		{"a rollout that has not ended", func(f *Facts) { f.Connectors.RolledOut = false }, termination},
		{"a pod that is not ready", combine(podWithoutEnvoy, func(f *Facts) { f.Connectors.NotReady = "Pod a is not ready yet." }), rollout},
		{"a replica that is not available", func(f *Facts) { f.Connectors.Ready = 1 }, rollout},
		{"no connected Envoy", func(f *Facts) { f.Envoys = Envoys{} }, rollout},
		{"an Envoy that is about to acknowledge", func(f *Facts) { f.Envoys.Acknowledged = false }, waitsForEnvoys(maxUnacknowledged)},
		{"an Envoy that has not acknowledged for two seconds", func(f *Facts) {
			f.Envoys.Acknowledged, f.Memory.UnacknowledgedSince = false, At(f.Uptime-maxUnacknowledged)
		}, waitsFor(acknowledgementInterval, noReason)},
		{"an Envoy that is late", func(f *Facts) { f.Envoys.Acknowledged, f.Envoys.Late = false, true }, rollout},
		{"an Envoy that has rejected the configuration", func(f *Facts) { f.Envoys = Envoys{Connected: 2, Rejected: "bad route"} }, waitsFor(blockedChangeInterval, conditions.ReasonDataPlaneBlocked)},
		{"no list of the connectors", func(f *Facts) { f.Memory.Remote.Connections = RemoteConnections{} }, list},
		{"an old list of the connectors", connections(time.Minute), list},
		{
			"a list that fails", combine(connections(time.Minute), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, 4*time.Second)),
			waitsFor(4*time.Second, conditions.ReasonCloudflareUnavailable),
		},
		{"a connector that can belong to a stopped pod", surplusFor(20 * time.Second), waitsFor(10*time.Second, noReason)},
		{"a connector that this controller does not run", surplusFor(time.Minute), waitsFor(blockedChangeInterval, conditions.ReasonDataPlaneBlocked)},
		{
			"a connector that this controller does not run, without replicas",
			combine(noReplicas, connections(time.Second, connectedConnector("a", 0))), waitsFor(blockedChangeInterval, conditions.ReasonDataPlaneBlocked),
		},
	}
	for _, phase := range []v1alpha1.DataPlaneChangePhase{adding, switching} {
		var of []row
		for _, r := range rows {
			of = append(of, row{string(phase) + ": " + r.name, combine(changing(envoy, phase), everyPodHasEnvoy, r.facts), r.want})
		}
		testDecide(t, of)
	}
	testDecide(t, []row{
		{
			"without replicas, no Envoy must be connected", combine(changing(envoy, adding), everyPodHasEnvoy, noReplicas, connections(time.Second)),
			want{Action: Record, Record: "dataPlaneChange.phase=Switching"},
		},
		{
			"the ingress rules are written while the configuration cannot switch", combine(changing(envoy, switching), everyPodHasEnvoy, podWithoutEnvoy, routesChanged),
			want{Action: Configure, Record: "configuration.hash=changed configuration.previous=desired"},
		},
		{
			"the ingress rules are restored while the configuration cannot switch",
			combine(changing(envoy, switching), everyPodHasEnvoy, podWithoutEnvoy, remoteConfiguration(provider.Configuration{}, 8), func(f *Facts) {
				f.Object.Status.Configuration.Previous = provider.Configuration{}.Hash()
			}),
			want{Action: Configure},
		},
	})
}

func TestConfigurationsOfAnOutdatedTunnelAreNotWritten(t *testing.T) {
	needsHTTP2 := func(f *Facts) { f.Desired.NeedsHTTP2 = true }
	outdated := func(f *Facts) { f.Desired.ConfigurationDataPlane = envoy }
	testDecide(t, []row{
		{"the configuration of another data plane is not written", combine(selects(envoy), routesChanged, outdated), waitsFor(time.Second, noReason)},
		{"an outdated configuration does not switch", combine(changing(envoy, switching), everyPodHasEnvoy, outdated), waitsFor(time.Second, noReason)},
		{
			"the spec follows the settings while the data plane changes",
			combine(changing(envoy, adding), func(f *Facts) { f.Desired.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain }), want{Action: Claim},
		},
		{"a new Gateway continues the change", combine(changing(envoy, adding), otherUID), want{Action: Record, Record: "gatewayUID=uid-2"}},
		{"a GRPCRoute needs HTTP/2 with ingress rules", needsHTTP2, want{Action: Record, Record: "http2=true", Event: conditions.EventConnectorProtocol}},
		{
			"a GRPCRoute needs HTTP/2 when Envoy is removed", combine(changing(rules, removing), needsHTTP2),
			want{Action: Record, Record: "http2=true", Event: conditions.EventConnectorProtocol},
		},
		{"a GRPCRoute records nothing with Envoy, whose connectors always use HTTP/2", combine(withEnvoy, needsHTTP2), idle()},
		{"a GRPCRoute records nothing while Envoy is added", combine(changing(envoy, adding), needsHTTP2), waitsFor(rolloutInterval, noReason)},
	})
}

// A response confirms a configuration once Cloudflare can no longer apply an earlier
// write, even from an earlier process.
func TestConfigurationIsConfirmedWhenEarlierWritesHaveSettled(t *testing.T) {
	read := func(m Memory, at time.Duration, unsettled ...string) Memory {
		return Conclude(m, Step{Action: ReadConfiguration, Unsettled: unsettled}, Result{Uptime: at, Configuration: wantedConfiguration, Version: 7})
	}
	write := func(m Memory, at time.Duration, err error) Memory {
		return Conclude(m, Step{Action: Configure, Hash: wantedConfiguration.Hash()}, Result{Uptime: at, Configuration: wantedConfiguration, Version: m.Remote.Configuration.Version + 1, Err: err})
	}
	const later = provider.CallTimeout
	restarted := read(Memory{}, 0, "", wantedConfiguration.Hash())
	confirmed := read(restarted, later)
	unanswered := write(confirmed, 2*later, unavailableError)
	for _, r := range []struct {
		name   string
		memory Memory
		want   bool
	}{
		{"a new tunnel", Conclude(Memory{}, Step{Action: Create}, Result{}), true},
		{"a read of a tunnel that was never configured", read(Memory{}, 0, "", ""), true},
		{"the first read of a process", restarted, false},
		{"a write after the first read", write(restarted, later-1, nil), false},
		{"a read when the writes of the earlier process have settled", confirmed, true},
		{"a write after that", write(confirmed, 2*later, nil), true},
		{"a read after a write without a response", read(unanswered, 2*later+1), false},
		{"a read when the write has settled", read(unanswered, 3*later), true},
		{"a write when the write has settled", write(read(unanswered, 2*later+1), 3*later, nil), true},
	} {
		if got := r.memory.Remote.Configuration; !got.Known || got.Confirmed != r.want {
			t.Errorf("%s: confirmed: %t, want %t", r.name, got.Confirmed, r.want)
		}
	}
}
