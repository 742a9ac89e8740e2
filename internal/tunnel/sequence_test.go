package tunnel

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// sequenceStep is an expected step, its result, and the changes that follow.
type sequenceStep struct {
	want want
	// result is the step's result; the zero value is success.
	result Result
	// then changes the facts after the step, as if the controller had read them.
	then change
	// wait is the time until the next step.
	wait time.Duration
}

// runSequence decides and concludes the steps one after the other, beginning with the
// facts, and writes their records as the controller does.
func runSequence(t *testing.T, f Facts, steps []sequenceStep) {
	t.Helper()
	for i, s := range steps {
		f.Memory = Observe(f)
		step := Decide(f)
		got := summarize(f, step)
		got.Interval = 0
		if diff := cmp.Diff(s.want, got, comparableReasons); diff != "" {
			t.Fatalf("unexpected step %d (-want +got):\n%s", i+1, diff)
		}
		checkStep(t, step)
		if step.Record != nil {
			f.Object.Status = *step.Record.DeepCopy()
		}
		s.result.Uptime = f.Uptime
		f.Memory = Conclude(f.Memory, step, s.result)
		f.Uptime, f.Clock = f.Uptime+s.wait, f.Clock.Add(s.wait)
		if s.then != nil {
			s.then(&f)
		}
	}
}

func TestStepsFollowTheLifetimeOfATunnel(t *testing.T) {
	spec := serving().Object.Spec
	tunnel := provider.Tunnel{ID: testTunnelID, Name: testTunnelName}
	objectCreated := func(f *Facts) { f.Object = &v1alpha1.Tunnel{Spec: spec}; f.Object.Name = "infra.shared" }
	tokenWritten := func(f *Facts) { f.Token.State = TokenPresent }
	running := func(f *Facts) { f.Connectors.Current, f.Connectors.Exist, f.Connectors.Pods = true, true, 2 }
	noObject := func(f *Facts) {
		f.Object, f.Memory, f.Token, f.Connectors = nil, Memory{}, TokenSecret{State: TokenMissing}, Connectors{GracePeriod: 30 * time.Second}
	}
	read := Result{Configuration: wantedConfiguration, Version: 7}

	t.Run("a new tunnel is recorded before it is created", func(t *testing.T) {
		runSequence(t, serving(noObject), []sequenceStep{
			{want: want{Action: Claim}, then: objectCreated},
			{want: want{Action: Record, Record: "gatewayUID=uid-1 schemaVersion=3"}},
			{want: want{Action: Record, Record: "dataPlane=IngressRules"}},
			{want: want{Action: FindByName}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: Create, Record: "creating=true"}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + testTunnelID, Event: conditions.EventTunnelCreated}},
			{
				want:   want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
				result: Result{Configuration: wantedConfiguration, Version: 1},
			},
			{want: want{Action: ReadToken}, then: tokenWritten},
			{want: want{Action: RunConnectors}, then: running},
			{want: want{Action: Record, Record: "token.rotatedAt=2026-09-01T12:00:00Z"}},
			{want: want{Action: Wait, Wait: serving().driftInterval()}},
		})
	})
	t.Run("a tunnel created without a response is found after a timeout", func(t *testing.T) {
		runSequence(t, serving(withoutTunnel, tunnelRead(Absent)), []sequenceStep{
			{want: want{Action: Create, Record: "creating=true"}, result: Result{Err: errNoResponse}},
			{want: want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonCloudflareUnavailable}, wait: 10 * time.Second},
			{want: want{Action: FindByName}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + testTunnelID, Event: conditions.EventTunnelFound}},
		})
	})
	t.Run("a create that was not applied is retried after a timeout", func(t *testing.T) {
		runSequence(t, serving(withoutTunnel, tunnelRead(Absent)), []sequenceStep{
			{want: want{Action: Create, Record: "creating=true"}, result: Result{Err: errNoResponse}},
			{want: want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonCloudflareUnavailable}, wait: 10 * time.Second},
			{want: want{Action: FindByName}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: Create}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + testTunnelID, Event: conditions.EventTunnelCreated}},
		})
	})
	t.Run("a tunnel created late while its Tunnel retires is deleted", func(t *testing.T) {
		runSequence(t, serving(retiring(withoutTunnel, status(creating), func(f *Facts) {
			f.Memory.MissingSince, f.Memory.StatusesWithdrawn, f.Memory.ConnectorsStopped = At(f.Uptime-time.Minute), true, At(f.Uptime)
			f.Memory.Created = At(f.Uptime)
		})), []sequenceStep{
			{want: want{Action: Wait, Wait: 10 * time.Second}, wait: 10 * time.Second},
			{want: want{Action: FindByName, Priority: provider.PriorityDeletion}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + testTunnelID}},
			{want: want{Action: ListConnections, Priority: provider.PriorityDeletion}},
			{want: want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}},
			{want: want{Action: DeleteObject}},
		})
	})
	t.Run("a retiring Tunnel stops its connectors before its tunnel is deleted", func(t *testing.T) {
		noPods := func(f *Facts) { f.Connectors = Connectors{GracePeriod: 30 * time.Second} }
		runSequence(t, serving(gatewayIs(GatewayGone)), []sequenceStep{
			{want: want{Action: Wait, Wait: 30 * time.Second, Problem: conditions.ReasonGatewayMissing}, wait: 30 * time.Second},
			{want: want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring}},
			{want: want{Action: StopConnectors}, then: func(f *Facts) { f.Connectors.Exist = false }},
			{want: want{Action: Wait, Wait: 2 * time.Second, Problem: conditions.ReasonConnectorsStopping}, wait: 2 * time.Second, then: noPods},
			{
				want:   want{Action: ListConnections, Priority: provider.PriorityDeletion},
				result: Result{Connectors: []provider.Connector{disconnected("a"), disconnected("b")}},
			},
			{want: want{Action: ReadTunnel, Priority: provider.PriorityDeletion}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Disconnect, Connector: "a", Record: "deleting=true", Priority: provider.PriorityDeletion}},
			{want: want{Action: Disconnect, Connector: "b", Priority: provider.PriorityDeletion}},
			{want: want{Action: Delete, Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}},
			{want: want{Action: DeleteObject}, then: func(f *Facts) { f.Object = nil }},
			{want: want{Action: None}},
		})
	})
	t.Run("a Gateway that returns resumes a tunnel whose deletion failed", func(t *testing.T) {
		gatewayReturns := func(f *Facts) { healthy := serving(otherUID); f.Gateway, f.Desired = healthy.Gateway, healthy.Desired }
		runSequence(t, serving(retiring()), []sequenceStep{
			{
				want:   want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
				result: Result{Err: errNoResponse}, then: gatewayReturns,
			},
			{want: want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonDeletionPending}, wait: 10 * time.Second},
			{want: want{Action: ReadTunnel}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "deleting=", Event: conditions.EventTunnelResumed}},
			{want: want{Action: Record, Record: "gatewayUID=uid-2"}},
			{want: want{Action: ReadConfiguration, Priority: provider.PriorityStart}, result: read},
			{want: want{Action: RunConnectors}},
		})
	})
	t.Run("a Gateway that returns gets a new Tunnel after a late deletion", func(t *testing.T) {
		gatewayReturns := func(f *Facts) { healthy := serving(otherUID); f.Gateway, f.Desired = healthy.Gateway, healthy.Desired }
		runSequence(t, serving(retiring()), []sequenceStep{
			{
				want:   want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted},
				result: Result{Err: errNoResponse}, then: gatewayReturns,
			},
			{want: want{Action: Wait, Wait: 10 * time.Second, Problem: conditions.ReasonDeletionPending}, wait: 10 * time.Second},
			{want: want{Action: ReadTunnel}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: DeleteObject}, then: func(f *Facts) { f.Object = nil }},
			{want: want{Action: Claim}},
		})
	})
	t.Run("a Tunnel deleted by mistake is recreated and finds its tunnel", func(t *testing.T) {
		runSequence(t, serving(func(f *Facts) { f.Object, f.Token.State, f.Connectors = nil, TokenMissing, Connectors{} }), []sequenceStep{
			{want: want{Action: Claim}, then: objectCreated},
			{want: want{Action: Record, Record: "gatewayUID=uid-1 schemaVersion=3"}},
			{want: want{Action: Record, Record: "dataPlane=IngressRules"}},
			{want: want{Action: FindByName}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Record, Record: "tunnelID=" + testTunnelID, Event: conditions.EventTunnelFound}},
			{want: want{Action: ReadConfiguration}, result: read},
			{want: want{Action: Record, Record: "configuration.hash=desired"}},
			{want: want{Action: ReadToken}, then: tokenWritten},
			{want: want{Action: RunConnectors}, then: running},
		})
	})
	t.Run("an existing tunnel is claimed before the first request to Cloudflare", func(t *testing.T) {
		legacy := provider.Tunnel{ID: testTunnelID, Name: "legacy"}
		runSequence(t, serving(notRecorded, func(f *Facts) { f.Memory.Claimed = true /* by creating the object */ }), []sequenceStep{
			{want: want{Action: Claim, Record: "tunnelID=" + testTunnelID}, result: Result{Err: errAPIServer}},
			{want: want{Action: Wait, Wait: time.Second, Problem: conditions.ReasonKubernetesUnavailable}, wait: time.Second},
			{want: want{Action: Claim, Record: "unchanged"}},
			{want: want{Action: ReadTunnel}, result: Result{Tunnel: legacy}},
			{want: want{Action: ReadConfiguration}, result: Result{Configuration: wantedConfiguration, Version: 3}},
			{want: want{Action: Record, Record: "configuration.hash=desired", Event: conditions.EventTunnelAdopted}},
			{want: want{Action: ReadToken}, then: tokenWritten},
			{want: want{Action: RunConnectors}, then: running},
		})
	})
	t.Run("a tunnel that was deleted externally is replaced", func(t *testing.T) {
		runSequence(t, serving(readDue), []sequenceStep{
			{want: want{Action: ReadConfiguration, Priority: provider.PriorityDrift}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: FindByName}, result: Result{Err: provider.ErrNotFound}},
			{want: want{Action: Record, Record: "configuration.hash= token.rotatedAt= tunnelID=", Event: conditions.EventTunnelLost}},
			{want: want{Action: Create, Record: "creating=true"}, result: Result{Tunnel: provider.Tunnel{ID: otherTunnelID, Name: testTunnelName}}},
			{want: want{Action: Record, Record: "creating= tunnelID=" + otherTunnelID, Event: conditions.EventTunnelCreated}, then: func(f *Facts) { f.Token.State = TokenMissing }},
			{
				want:   want{Action: Configure, Record: "configuration.hash=desired configuration.previous=empty"},
				result: Result{Configuration: wantedConfiguration, Version: 1},
			},
			{want: want{Action: ReadToken}},
		})
	})
	t.Run("repeated external changes are contested until the Gateway is paused", func(t *testing.T) {
		external := func(version provider.Version) change { return remoteConfiguration(externalConfiguration, version) }
		repair := func(version provider.Version, next change) sequenceStep {
			return sequenceStep{
				want:   want{Action: Configure, Event: conditions.EventDriftRepaired, Change: version},
				result: Result{Configuration: wantedConfiguration, Version: version + 1}, wait: time.Minute, then: next,
			}
		}
		runSequence(t, serving(external(8)), []sequenceStep{
			repair(8, external(10)), repair(10, external(12)),
			{want: want{Action: Record, Record: "contested=true", Event: conditions.EventDriftContested, Change: 12}},
			{want: want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonContested}, then: paused},
			{want: want{Action: Record, Record: "contested="}},
			{want: want{Action: Wait, Wait: untilNextRead, Problem: conditions.ReasonPaused}, then: func(f *Facts) { f.Gateway.Paused, f.Object.Spec.Paused = false, false }},
			repair(12, nil),
		})
	})
	t.Run("a rotation disconnects the old connectors last", func(t *testing.T) {
		runSequence(t, serving(rotateOnDemand), []sequenceStep{
			{want: want{Action: ListConnections, Priority: provider.PriorityDrift}, result: Result{Connectors: []provider.Connector{connectedConnector("a", -time.Hour), connectedConnector("b", -time.Hour)}}},
			{want: want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"}},
			{want: want{Action: ReadToken}, then: func(f *Facts) { f.Token.Version, f.Connectors.Current, f.Connectors.RolledOut = "2", false, false }},
			{want: want{Action: RunConnectors}, then: func(f *Facts) { f.Connectors.Current = true }},
			{want: want{Action: Record, Record: "token.phase=Rolling token.rotatedAt=2026-09-01T12:00:00Z"}},
			{want: want{Action: Wait, Wait: 30 * time.Second}, wait: 30 * time.Second, then: func(f *Facts) { f.Connectors.RolledOut = true }},
			{want: want{Action: ListConnections}, result: Result{Connectors: []provider.Connector{connectedConnector("a", -time.Hour), connectedConnector("c", 20*time.Second)}}},
			{want: want{Action: Record, Record: "token.phase=Disconnecting"}},
			{want: want{Action: Disconnect, Connector: "a"}},
			{want: want{Action: Record, Record: "token.phase=", Event: conditions.EventTokenRotated}},
			{want: want{Action: Wait, Wait: untilNextRead - 30*time.Second}},
		})
	})
	t.Run("a delayed rotation ignores an earlier rotation's result", func(t *testing.T) {
		runSequence(t, serving(rotateOnDemand, connections(0), func(f *Facts) { f.Memory.Token.Rotated = At(time.Minute) }), []sequenceStep{
			{want: want{Action: RotateToken, Record: "token.phase=Rotating token.requested=september"}, result: Result{Err: errBudget}},
			{want: want{Action: Wait, Wait: 20 * time.Second}, wait: 20 * time.Second},
			{want: want{Action: RotateToken}},
			{want: want{Action: ReadToken}},
		})
	})
	t.Run("a paused Tunnel without a Gateway retires when spec.paused is cleared", func(t *testing.T) {
		runSequence(t, serving(gatewayGone(time.Minute), recordedPaused), []sequenceStep{
			{want: want{Action: None, Problem: conditions.ReasonPaused}, then: func(f *Facts) { f.Object.Spec.Paused = false }},
			{want: want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring}},
			{want: want{Action: StopConnectors}},
		})
	})
	t.Run("a status that cannot be withdrawn does not delay the retirement", func(t *testing.T) {
		runSequence(t, serving(gatewayGone(time.Minute)), []sequenceStep{
			{want: want{Action: WithdrawStatuses, Event: conditions.EventTunnelRetiring}, result: Result{Err: errAPIServer}},
			{want: want{Action: StopConnectors}, then: func(f *Facts) { f.Connectors = Connectors{} }, wait: time.Second},
			{want: want{Action: WithdrawStatuses}, result: Result{Err: errAPIServer}},
			{want: want{Action: ListConnections, Priority: provider.PriorityDeletion}},
			{want: want{Action: ReadTunnel, Priority: provider.PriorityDeletion}, result: Result{Tunnel: tunnel}},
			{want: want{Action: Delete, Record: "deleting=true", Priority: provider.PriorityDeletion, Event: conditions.EventTunnelDeleted}},
		})
	})
}
