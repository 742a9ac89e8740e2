package tunnel

import (
	"cmp"
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// verdict describes what is wrong with a final state, or returns "".
func (m *model) verdict() string {
	for a := range m.count {
		if bad := m.verdictOf(a); bad != "" {
			return fmt.Sprintf("in the final state: %s", bad)
		}
	}
	for i, t := range m.cloudflare.tunnels {
		if t.live && t.creator != 0 && !m.adminChanged && !m.recorded(i) {
			return "in the final state: a tunnel exists that no Tunnel records"
		}
	}
	return ""
}

func (m *model) recorded(i int) bool {
	for a := range m.count {
		o := m.actors[a].object
		if o != nil && (o.Status.TunnelID == tunnelIDs[i] || o.Status.Creating && o.Spec.Name == tunnelNames[m.cloudflare.tunnels[i].name]) {
			return true
		}
	}
	return false
}

func (m *model) verdictOf(a int) string {
	actor := &m.actors[a]
	probe := *m
	probe.build(a)
	f := probe.gather(a)
	f.Memory = Observe(f)
	s := Decide(f)
	if bad := m.verdictReconciled(a, f); bad != "" {
		return bad
	}
	switch actor.gateway.state() {
	case GatewayUnknown:
		return ""
	case GatewayGone, GatewayNotManaged:
		return m.verdictGone(a, f, s)
	default:
		return m.verdictServing(a, f, s)
	}
}

// verdictReconciled checks that the requested reconcile was handled.
func (m *model) verdictReconciled(a int, f Facts) string {
	o := m.actors[a].object
	if o == nil || f.Gateway.State == GatewayUnknown || o.Annotations[v1alpha1.ReconcileAnnotation] == o.Status.Reconciled {
		return ""
	}
	return "the requested reconcile was not handled"
}

// verdictGone checks how a Tunnel ends whose Gateway is gone.
func (m *model) verdictGone(a int, f Facts, s Step) string {
	actor := &m.actors[a]
	if actor.object == nil {
		if actor.deployment.exists || actor.secret.exists {
			return "objects of the connectors exist without a Tunnel"
		}
		return ""
	}
	phase := actor.object.Status.Phase
	if actor.object.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain && f.objectProblem() == nil {
		switch {
		case phase != v1alpha1.TunnelRetained:
			return fmt.Sprintf("the phase of a retained Tunnel is %s", phase)
		case actor.deployment.exists:
			return "connectors of a retained Tunnel run"
		}
		return ""
	}
	if !m.problemJustified(a, s) {
		return fmt.Sprintf("the Gateway is gone and the Tunnel remains in phase %s, next step: %s", phase, s.describe())
	}
	return ""
}

// verdictServing checks the Tunnel for a Gateway that exists.
func (m *model) verdictServing(a int, f Facts, s Step) string {
	actor := &m.actors[a]
	p := Programmed(f)
	switch {
	case f.Desired == nil || f.Desired.Configuration == nil:
		return "" // no desired configuration
	case actor.gateway.paused:
		return m.verdictPaused(a, f)
	case actor.object == nil:
		return "the Gateway exists without a Tunnel"
	case p.State == OutcomeFailed && p.Reason != conditions.ReasonSettingsNotApplied:
		return m.verdictFailed(a, s, p)
	case m.changeWaits(a, p.DataPlaneChange, s):
		return m.verdictBlocked(a, f)
	case m.problemJustified(a, s):
		return ""
	case actor.object.Status.Configuration.Hash == "" && Disagreement(actor.object.Spec, f.Desired.Spec) != "":
		return ""
	}
	return cmp.Or(m.verdictSettings(a, f, p), m.verdictDataPlane(a, f), m.verdictEffect(a, f, s, p))
}

// verdictPaused checks that a paused Gateway's Tunnel is paused.
func (m *model) verdictPaused(a int, f Facts) string {
	o := m.actors[a].object
	if o != nil && f.objectProblem() == nil && !o.Spec.Paused && !o.Status.Deleting {
		return "the Tunnel of a paused Gateway is not paused"
	}
	return ""
}

// verdictFailed checks that the environment justifies a failed Gateway's problem.
func (m *model) verdictFailed(a int, s Step, p Outcome) string {
	if m.justified(a, p.Reason) || m.problemJustified(a, s) {
		return ""
	}
	return fmt.Sprintf("the Gateway exists and its tunnel has the problem %s", p.Reason)
}

// verdictSettings checks that the outcome reports settings that do not agree with the
// Tunnel, and that the desired configuration is for the recorded data plane.
func (m *model) verdictSettings(a int, f Facts, p Outcome) string {
	o := m.actors[a].object
	agree := Disagreement(o.Spec, f.Desired.Spec) == ""
	switch {
	case agree == (p.Reason == conditions.ReasonSettingsNotApplied):
		return fmt.Sprintf("the settings agree with the Tunnel: %t, but the outcome is %v %s", agree, p.State, p.Reason)
	case dataPlaneOf(f.Desired.Hash) != o.Status.DataPlane:
		return fmt.Sprintf("the desired configuration is not for %s, which the Tunnel records", o.Status.DataPlane)
	}
	return ""
}

// verdictEffect checks that the desired configuration is in effect and connectors run.
func (m *model) verdictEffect(a int, f Facts, s Step, p Outcome) string {
	actor := &m.actors[a]
	t := m.recordedTunnel(a)
	switch {
	case t == nil:
		return fmt.Sprintf("the Gateway exists, but its tunnel does not; next step: %s", s.describe())
	case configurationHashes[t.configuration] != f.Desired.Hash:
		return fmt.Sprintf("the desired configuration is not in effect; next step: %s", s.describe())
	case p.State != OutcomeInEffect && p.Reason != conditions.ReasonSettingsNotApplied:
		return fmt.Sprintf("the Gateway is not programmed: %v %s %s", p.State, p.Reason, p.Message)
	case actor.object.Status.Deleting || actor.object.Status.Creating:
		return "the record states that the tunnel is being created or deleted"
	case actor.object.Status.Token.Phase == v1alpha1.TokenRolling && actor.stuck():
		return "" // a pod on a lost node may still run with the old token
	case actor.object.Status.Token.Phase != "":
		return fmt.Sprintf("the rotation of the token stays in phase %s", actor.object.Status.Token.Phase)
	case actor.object.Annotations[v1alpha1.RotateTokenAnnotation] != actor.object.Status.Token.Requested:
		return "the token was not rotated"
	case f.Desired.RunConnectors:
		return m.verdictConnectors(a, t)
	}
	return ""
}

// stuck reports whether a pod is on a lost node.
func (actor *actor) stuck() bool {
	for _, p := range actor.pods {
		if p.state == podStuck {
			return true
		}
	}
	return false
}

func (m *model) verdictConnectors(a int, t *remoteTunnel) string {
	actor := &m.actors[a]
	if actor.replicas() == 0 || m.rolloutBlocked(a) {
		return ""
	}
	running := false
	for _, p := range actor.pods {
		running = running || p.state == podConnected && p.tunnel == tunnelIndex(actor.object.Status.TunnelID) && p.token == t.token
	}
	if !running {
		return "no connector runs"
	}
	if c := conditions.TypeTunnelReady.Find(actor.object.Status.Conditions); c == nil || c.Status != "True" {
		if Disagreement(actor.object.Spec, desired(a, actor.gateway.settings, "", false).Spec) == "" {
			return fmt.Sprintf("the Tunnel serves, but is not Ready: %+v", c)
		}
	}
	return ""
}

// problemJustified reports whether the next step waits because of a problem that the
// environment justifies.
func (m *model) problemJustified(a int, s Step) bool {
	return s.Problem != nil && m.justified(a, s.Problem.Reason)
}

// justified reports whether the environment justifies a problem that persists.
func (m *model) justified(a int, r conditions.Reason) bool {
	justifies, ok := justifications[r]
	return ok && justifies(situation{model: m, a: a, actor: &m.actors[a], tunnel: m.recordedTunnel(a)})
}

// situation is what can justify an actor's problem.
type situation struct {
	*model
	a     int
	actor *actor
	// tunnel is the recorded tunnel; nil for none.
	tunnel *remoteTunnel
}

// justifications contains the problems that may persist, and when they may.
var justifications = map[conditions.Reason]func(x situation) bool{
	conditions.ReasonCredentialsMissing:  func(x situation) bool { return x.credentialsLost },
	conditions.ReasonPaused:              func(x situation) bool { return x.actor.object.Spec.Paused },
	conditions.ReasonOtherCluster:        func(x situation) bool { return x.actor.object.Spec.ClusterUID != options.ClusterUID },
	conditions.ReasonNewerVersion:        func(x situation) bool { return x.actor.object.Status.SchemaVersion > SchemaVersion },
	conditions.ReasonConnectorsConnected: situation.unmanagedConnectorConnected,
	conditions.ReasonRotationBlocked: func(x situation) bool {
		return x.unmanagedConnectorConnected() || x.actor.gateway.settings.connectorsDisabled
	},
	conditions.ReasonPrivateRoutes:    func(x situation) bool { return x.tunnel != nil && x.tunnel.routes },
	conditions.ReasonTakeoverRequired: situation.takeoverRequired,
	conditions.ReasonContested: func(x situation) bool {
		return x.actor.object.Status.Contested && x.tunnel != nil && x.tunnel.configuration == externalConfigurationIndex
	},
	conditions.ReasonTunnelMissing: situation.adoptedTunnelMissing,
	conditions.ReasonTunnelInUse:   func(x situation) bool { return x.rival.exists || x.count > 1 },
	conditions.ReasonLocallyManaged: func(x situation) bool {
		return x.tunnel != nil && x.tunnel.local || x.localTunnelHasName()
	},
	conditions.ReasonLimitExceeded: func(x situation) bool { return x.actor.gateway.settings.excess && !x.actor.gateway.settings.envoy },
	conditions.ReasonDataPlaneBlocked: func(x situation) bool {
		return x.unmanagedConnectorConnected() || x.actor.envoys == envoysRejected
	},
	conditions.ReasonNameReserved: func(x situation) bool { return x.tunnel != nil && x.tunnel.hasOtherGatewayName(x.a) },
}

// unmanagedConnectorConnected reports whether a connector that the controller does
// not run is connected.
func (x situation) unmanagedConnectorConnected() bool {
	return x.tunnel != nil && x.tunnel.unmanagedConnector() >= 0
}

// takeoverRequired reports whether replacing the tunnel's configuration requires
// takeover.
func (x situation) takeoverRequired() bool {
	external := x.tunnel != nil && (x.tunnel.original || x.tunnel.configuration == externalConfigurationIndex || x.adminChanged)
	return external && !x.actor.object.Spec.Existing.Takeover
}

// adoptedTunnelMissing reports whether the adopted tunnel does not exist.
func (x situation) adoptedTunnelMissing() bool {
	existing := x.actor.object.Spec.Existing
	return existing != nil && x.cloudflare.get(tunnelIndex(existing.ID)) == nil
}

// localTunnelHasName reports whether a locally managed tunnel has the name that the
// Gateway's tunnel would get.
func (x situation) localTunnelHasName() bool {
	t := x.cloudflare.get(x.cloudflare.find(nameIndex(x.actor.object.Spec.Name)))
	return t != nil && t.local
}
