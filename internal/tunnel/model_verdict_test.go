package tunnel

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// verdict says what is wrong with a world in which nothing happens any more, or
// returns "".
func (w *model) verdict() string {
	for a := range w.count {
		if bad := w.verdictOf(a); bad != "" {
			return fmt.Sprintf("at the end: %s", bad)
		}
	}
	for i, t := range w.cloudflare.tunnels {
		if t.live && t.creator != 0 && !w.admin && !w.recorded(i) {
			return "at the end: a tunnel is left that no Tunnel records"
		}
	}
	return ""
}

func (w *model) recorded(i int) bool {
	for a := range w.count {
		o := w.actors[a].object
		if o != nil && (o.Status.TunnelID == tunnelIDs[i] || o.Status.Creating && o.Spec.Name == tunnelNames[w.cloudflare.tunnels[i].name]) {
			return true
		}
	}
	return false
}

func (w *model) verdictOf(a int) string {
	me := &w.actors[a]
	probe := *w
	f := probe.gather(a)
	f.Memory = Observe(f)
	s := Decide(f)
	switch me.gateway.state() {
	case GatewayUnknown:
		return ""
	case GatewayGone, GatewayNotManaged:
		return w.verdictGone(a, f, s)
	default:
		return w.verdictServing(a, f, s)
	}
}

// verdictGone checks the end of a Tunnel whose Gateway is gone.
func (w *model) verdictGone(a int, f Facts, s Step) string {
	me := &w.actors[a]
	if me.object == nil {
		if me.deployment.exists || me.secret.exists {
			return "objects of the connectors are left"
		}
		return ""
	}
	phase := me.object.Status.Phase
	if me.object.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain && f.objectProblem() == nil {
		switch {
		case phase != v1alpha1.TunnelRetained:
			return fmt.Sprintf("the phase of a retained Tunnel is %s", phase)
		case me.deployment.exists:
			return "the connectors of a retained Tunnel run"
		}
		return ""
	}
	if !w.problemJustified(a, s) {
		return fmt.Sprintf("the Gateway is gone and the Tunnel is left in phase %s, next step %s", phase, s.describe())
	}
	return ""
}

// verdictServing checks the Tunnel of a Gateway that exists.
func (w *model) verdictServing(a int, f Facts, s Step) string {
	me := &w.actors[a]
	p := Programmed(f)
	switch {
	case f.Desired == nil || f.Desired.Configuration == nil:
		return "" // the Gateway asks for nothing
	case me.gateway.paused:
		return w.verdictPaused(a, f)
	case me.object == nil:
		return "the Gateway exists and has no Tunnel"
	case p.State == OutcomeFailed && p.Reason != ReasonSettingsNotApplied:
		return w.verdictFailed(a, s, p)
	case w.problemJustified(a, s):
		return ""
	case p.Reason == ReasonSettingsNotApplied && me.object.Status.Configuration.Hash == "":
		return ""
	default:
		return w.verdictEffect(a, f, s, p)
	}
}

// verdictPaused checks that the Tunnel of a paused Gateway is paused, too.
func (w *model) verdictPaused(a int, f Facts) string {
	o := w.actors[a].object
	if o != nil && f.objectProblem() == nil && !o.Spec.Paused && !o.Status.Deleting {
		return "the Tunnel of a paused Gateway does not record it"
	}
	return ""
}

// verdictFailed checks that the world justifies the problem of a Gateway that
// fails.
func (w *model) verdictFailed(a int, s Step, p Outcome) string {
	if w.justified(a, p.Reason) || w.problemJustified(a, s) {
		return ""
	}
	return fmt.Sprintf("the Gateway exists and its tunnel has the problem %s", p.Reason)
}

// verdictEffect checks that the desired configuration is in effect and connectors
// run.
func (w *model) verdictEffect(a int, f Facts, s Step, p Outcome) string {
	me := &w.actors[a]
	t := w.recordedTunnel(a)
	switch {
	case t == nil:
		return fmt.Sprintf("the Gateway exists and its tunnel does not; next step %s", s.describe())
	case configurationHashes[t.configuration] != f.Desired.Hash:
		return fmt.Sprintf("the desired configuration is not in effect; next step %s", s.describe())
	case p.State != OutcomeInEffect && p.Reason != ReasonSettingsNotApplied:
		return fmt.Sprintf("the Gateway is not programmed: %v %s %s", p.State, p.Reason, p.Message)
	case me.object.Status.Deleting || me.object.Status.Creating:
		return "the record says that the tunnel is being created or deleted"
	case me.object.Status.Token.Phase == v1alpha1.TokenRolling && me.stuck():
		return "" // a pod on a node that is lost may still run with the old token
	case me.object.Status.Token.Phase != "":
		return fmt.Sprintf("the rotation of the token stays in phase %s", me.object.Status.Token.Phase)
	case me.object.Annotations[v1alpha1.RotateTokenAnnotation] != me.object.Status.Token.Requested:
		return "the token was not rotated"
	case f.Desired.RunConnectors:
		return w.verdictConnectors(a, t)
	}
	return ""
}

// stuck reports whether there is a pod on a node that is lost.
func (me *actor) stuck() bool {
	for _, p := range me.pods {
		if p.state == podStuck {
			return true
		}
	}
	return false
}

func (w *model) verdictConnectors(a int, t *remoteTunnel) string {
	me := &w.actors[a]
	running := false
	for _, p := range me.pods {
		running = running || p.state == podConnected && p.tunnel == tunnelIndex(me.object.Status.TunnelID) && p.token == t.token
	}
	if !running {
		return "no connector runs"
	}
	if c := meta.FindStatusCondition(me.object.Status.Conditions, v1alpha1.TunnelReady); c == nil || c.Status != "True" {
		if p := Programmed(w.gather(a)); p.Reason != ReasonSettingsNotApplied {
			return fmt.Sprintf("the Tunnel serves and is not Ready: %+v", c)
		}
	}
	return ""
}

// problemJustified reports whether the next step waits for a problem that the
// world justifies.
func (w *model) problemJustified(a int, s Step) bool {
	return s.Problem != nil && w.justified(a, s.Problem.Reason)
}

// justified reports whether the world gives a reason for a problem that lasts.
func (w *model) justified(a int, r Reason) bool {
	holds, known := justifications[r]
	return known && holds(situation{model: w, a: a, me: &w.actors[a], tunnel: w.recordedTunnel(a)})
}

// situation is what can justify a problem of an actor.
type situation struct {
	*model
	a  int
	me *actor
	// tunnel is the tunnel that the actor's Tunnel records; nil for none.
	tunnel *remoteTunnel
}

// justifications say when each problem may last. No other problem may.
var justifications = map[Reason]func(x situation) bool{
	ReasonCredentialsMissing:  func(x situation) bool { return x.credentialsLost },
	ReasonPaused:              func(x situation) bool { return x.me.object.Spec.Paused },
	ReasonOtherCluster:        func(x situation) bool { return x.me.object.Spec.ClusterUID != options.ClusterUID },
	ReasonConnectorsConnected: situation.foreignConnectorConnected,
	ReasonRotationBlocked: func(x situation) bool {
		return x.foreignConnectorConnected() || x.me.gateway.settings.unmanaged
	},
	ReasonPrivateRoutes:    func(x situation) bool { return x.tunnel != nil && x.tunnel.routes },
	ReasonTakeoverRequired: situation.takeoverRequired,
	ReasonContested: func(x situation) bool {
		return x.me.object.Status.Contested && x.tunnel != nil && x.tunnel.configuration == externalConfiguration
	},
	ReasonTunnelMissing: situation.adoptedTunnelMissing,
	ReasonTunnelInUse:   func(x situation) bool { return x.rival.exists || x.count > 1 },
	ReasonLocallyManaged: func(x situation) bool {
		return x.tunnel != nil && x.tunnel.local || x.localTunnelHasName()
	},
	ReasonNameReserved: func(x situation) bool { return x.tunnel != nil && x.tunnel.hasOtherGatewayName(x.a) },
}

// foreignConnectorConnected reports whether a connector that the controller does
// not run is connected.
func (x situation) foreignConnectorConnected() bool {
	return x.tunnel != nil && x.tunnel.foreignConnector() >= 0
}

// takeoverRequired reports whether the tunnel has a configuration that only a
// takeover may replace.
func (x situation) takeoverRequired() bool {
	external := x.tunnel != nil && (x.tunnel.original || x.tunnel.configuration == externalConfiguration || x.admin)
	return external && !x.me.object.Spec.Existing.Takeover
}

// adoptedTunnelMissing reports whether the tunnel that the Tunnel adopts does not
// exist.
func (x situation) adoptedTunnelMissing() bool {
	existing := x.me.object.Spec.Existing
	return existing != nil && x.cloudflare.get(tunnelIndex(existing.ID)) == nil
}

// localTunnelHasName reports whether a locally managed tunnel has the name that
// the Tunnel needs.
func (x situation) localTunnelHasName() bool {
	t := x.cloudflare.get(x.cloudflare.find(nameIndex(x.me.object.Spec.Name)))
	return t != nil && t.local
}
