package tunnel

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// checkDataPlane checks that the data plane is recorded before a claim, a call or the
// start of connectors. Only the configuration for the recorded data plane may be
// written, or for the data plane to which the configuration switches.
func (m *model) checkDataPlane(current *attempt) {
	f, s := current.facts, current.step
	if f.Object == nil || f.lifecycle() != lifecycleServing || s.Action == Record || s.Action == Claim && s.Record == nil {
		return
	}
	recorded := f.Object.Status.DataPlane
	if s.Action == Claim {
		recorded = s.Record.DataPlane
	}
	switch {
	case recorded == "":
		m.violate("%s before the data plane is recorded", s.Action)
	case s.Action == Configure && dataPlaneOf(s.Hash) != recorded:
		m.checkSwitch(current)
	}
}

// checkSwitch checks that the configuration may switch to another data plane.
func (m *model) checkSwitch(current *attempt) {
	s, change := current.step, current.facts.Object.Status.DataPlaneChange
	switch {
	case change == nil || change.Phase != v1alpha1.DataPlaneSwitching || dataPlaneOf(s.Hash) != change.To:
		m.violate("the configuration of another data plane is written")
	case current.excused:
	case change.To == v1alpha1.DataPlaneEnvoy:
		m.checkReady(current)
	case m.actors[current.actor].gateway.settings.excess:
		m.violate("the ingress rules are written although they exceed their limits")
	}
}

// checkReady checks that every connector can use Envoy before the configuration leads
// to Envoy.
func (m *model) checkReady(current *attempt) {
	actor := &m.actors[current.actor]
	envoys := 0
	for _, p := range actor.pods {
		switch {
		case p.state == podNone:
		case !p.envoy:
			m.violate("the configuration leads to Envoy although a pod has no Envoy")
		case p.state != podConnected || !p.runs(actor.deployment):
			m.violate("the configuration leads to Envoy although a pod is not ready")
		default:
			envoys++
		}
	}
	switch {
	case envoys < actor.replicas():
		m.violate("the configuration leads to Envoy although replicas are missing")
	case envoys > 0 && actor.envoys != envoysAcknowledged:
		m.violate("the configuration leads to Envoy although an Envoy has not acknowledged its configuration")
	}
	m.checkListed(current)
}

// checkListed checks that no other connector is connected according to a current list.
func (m *model) checkListed(current *attempt) {
	t, list := m.cloudflare.get(current.tunnel), current.facts.Memory.Remote.Connections
	switch {
	case t == nil:
	case list.stale(m.uptime()):
		m.violate("the configuration leads to Envoy without a current list of the connectors")
	case t.unmanagedConnector() >= 0 && t.connectors[t.unmanagedConnector()].at-m.boot < list.Read.at:
		m.violate("the configuration leads to Envoy although a connector is connected that the controller does not run")
	}
}

// checkRecordedDataPlane checks that a recorded data plane changes only while the
// configuration switches and only after its configuration has come into effect, and
// that a GRPCRoute does not replace connectors with Envoy.
func (m *model) checkRecordedDataPlane(a int, before, after v1alpha1.TunnelStatus) {
	if after.HTTP2 && !before.HTTP2 && RunsEnvoy(&v1alpha1.Tunnel{Status: before}) {
		m.violate("a GRPCRoute records HTTP/2 although the connectors have Envoy")
	}
	if before.DataPlane == "" || after.DataPlane == before.DataPlane {
		return
	}
	change, t := before.DataPlaneChange, m.recordedTunnel(a)
	switch {
	case change == nil || change.Phase != v1alpha1.DataPlaneSwitching || change.To != after.DataPlane:
		m.violate("the recorded data plane changes from %s to %q", before.DataPlane, after.DataPlane)
	case t != nil && t.version == int(m.actors[a].memory.Remote.Configuration.Version) && dataPlaneOf(configurationHashes[t.configuration]) != after.DataPlane:
		m.violate("%s is recorded before its configuration is in effect", after.DataPlane)
	}
}

// checkPodsHaveEnvoy checks that every pod has Envoy while the configuration that the
// controller wrote leads to Envoy.
func (m *model) checkPodsHaveEnvoy() {
	if !m.ownTunnelCurrent || m.adminChanged {
		return
	}
	for a := range m.count {
		for _, p := range m.actors[a].pods {
			if p.state == podNone || p.envoy {
				continue
			}
			if t := m.cloudflare.get(p.tunnel); t != nil && !t.external && leadsToEnvoy(int(t.configuration)) {
				m.violate("the configuration leads to Envoy, and a pod has no Envoy")
			}
		}
	}
}

// verdictDataPlane checks that the data plane in the settings serves the Gateway,
// unless the environment justifies that the change waits.
func (m *model) verdictDataPlane(a int, f Facts) string {
	status := m.actors[a].object.Status
	complete := status.DataPlane == f.Desired.DataPlane && status.DataPlaneChange == nil
	applied := conditions.TypeTunnelDataPlaneApplied.IsTrue(status.Conditions)
	switch {
	case complete != applied:
		return fmt.Sprintf("the data plane change is complete: %t, but DataPlaneApplied is %t", complete, applied)
	case !complete && !m.rolloutBlocked(a) && !m.justified(a, conditions.ReasonLimitExceeded) && !m.justified(a, conditions.ReasonDataPlaneBlocked):
		return fmt.Sprintf("the data plane is %s, the settings ask for %s, and the change is %+v", status.DataPlane, f.Desired.DataPlane, status.DataPlaneChange)
	}
	return ""
}

// verdictBlocked checks that the configuration for the recorded data plane is in effect
// while a change waits.
func (m *model) verdictBlocked(a int, f Facts) string {
	if t := m.recordedTunnel(a); t != nil && configurationHashes[t.configuration] != f.Desired.Hash {
		return fmt.Sprintf("the data plane change waits, and the configuration of %s is not in effect", m.actors[a].object.Status.DataPlane)
	}
	return m.verdictDataPlane(a, f)
}

// changeWaits reports whether a data plane change waits for a user or for a rollout.
func (m *model) changeWaits(a int, c *DataPlaneChange, s Step) bool {
	return c != nil && (c.Reason != conditions.ReasonDataPlaneChanging || s.Problem == nil && m.rolloutBlocked(a))
}

// rolloutBlocked reports whether the environment keeps a rollout from ending, or Envoys
// have not acknowledged their configuration.
func (m *model) rolloutBlocked(a int) bool {
	actor := &m.actors[a]
	return m.noRoom || m.envoyFails || actor.stuck() || actor.envoys == envoysSlow || actor.envoys == envoysDisconnected
}

// environmentEvents returns two events: one changes the environment, and one restores
// it.
func environmentEvents(set, restore string, flag func(m *model) *bool) []event {
	change := func(name string, free, to bool) event {
		return event{name: name, once: true, free: free, apply: func(m *model, _ int) bool {
			if *flag(m) == to {
				return false
			}
			*flag(m) = to
			m.startPending()
			m.requeueAll()
			return true
		}}
	}
	return []event{change(set, false, true), change(restore, true, false)}
}

// keepsPending reports whether a new pod with or without Envoy stays pending.
func (m *model) keepsPending(envoy bool) bool { return m.noRoom || m.envoyFails && envoy }

// startPending starts the pending pods that can start.
func (m *model) startPending() {
	for a := range m.count {
		for i := range m.actors[a].pods {
			if p := &m.actors[a].pods[i]; p.state == podPending && !m.keepsPending(p.envoy) {
				p.state, p.until = podStarting, m.now+startTime
			}
		}
	}
}

// rolloutEvents delay the connectors' rollout or change how many there are.
func rolloutEvents() []event {
	list := environmentEvents("no node has room for new pods", "nodes have room again", func(m *model) *bool { return &m.noRoom })
	list = append(list, environmentEvents("Envoy does not start in new pods", "Envoy starts again", func(m *model) *bool { return &m.envoyFails })...)
	return append(list, scaleEvent("the autoscaler adds a pod", false, 0, 1), scaleEvent("the autoscaler removes the pod", true, 1, 0),
		scaleEvent("the connectors are scaled to 0", false, 0, -1), scaleEvent("the connectors are scaled up again", true, -1, 0))
}

// scaleEvent returns an event that changes the replica count.
func scaleEvent(name string, free bool, from, to int8) event {
	return event{name: name, free: free, apply: func(m *model, a int) bool {
		actor := &m.actors[a]
		if actor.scaled != from {
			return false
		}
		actor.scaled = to
		m.continueRollOut(a)
		m.requeueAll()
		return true
	}}
}

// envoyEvents happen at the xDS server.
func envoyEvents() (list []event) {
	set := func(name string, free bool, possible func(envoyState) bool, to envoyState) {
		list = append(list, event{name: name, free: free, apply: func(m *model, a int) bool {
			if !possible(m.actors[a].envoys) {
				return false
			}
			m.actors[a].envoys = to
			m.requeueAll()
			return true
		}})
	}
	fine := func(s envoyState) bool { return s == envoysAcknowledged }
	set("an Envoy does not acknowledge", false, fine, envoysSlow)
	set("an Envoy rejects the configuration", false, fine, envoysRejected)
	set("no Envoy is connected", false, fine, envoysDisconnected)
	set("every Envoy acknowledges", true, func(s envoyState) bool { return !fine(s) }, envoysAcknowledged)
	return list
}

func excessEvents() []event {
	return toggle("the routes exceed the limits of ingress rules", "the routes are within the limits again", func(g *gatewayObject) *bool { return &g.settings.excess })
}

// startServing starts with a Gateway whose connector is connected.
func startServing(start func(m *model)) func(m *model) {
	return func(m *model) {
		start(m)
		x := &exploration{}
		for m.actors[0].pods[0].state != podConnected || !m.idle() {
			x.advanceOnce(m, nil)
		}
		m.ownTunnelCurrent = true
	}
}
