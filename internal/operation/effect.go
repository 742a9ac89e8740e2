package operation

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// effect is an operation's progress. Exactly one field is set.
type effect struct {
	// done is the result of an operation that is in effect.
	done string
	// refused is the problem that a user must fix first.
	refused string
	// lost is why the operation is no longer requested.
	lost string
	// outstanding is what the operation waits for.
	outstanding string
}

// final reports whether waiting longer is useless.
func (e effect) final() bool { return e.outstanding == "" }

const (
	notProcessed = "the controller has not processed the request yet"
	noTunnelText = "the Gateway is Programmed, but the controller's namespace contains no Tunnel for it; set --controller-namespace if the controller runs in another namespace"
	pausedHint   = "the Gateway is paused, so the controller changes nothing; resume it"
)

// effect returns how far the operation is.
func (o Operation) effect(found objects) effect {
	lost := o.lostRequest(found)
	switch {
	case lost != "":
		return effect{lost: lost}
	case found.class.problem != "":
		return effect{refused: found.class.problem}
	case found.tunnel == nil:
		return o.withoutTunnel(found)
	case conditions.ReasonNewerVersion.Is(found.notReady()):
		return effect{refused: found.readyMessage()}
	default:
		return o.withTunnel(found)
	}
}

// withTunnel returns how far the operation is on a Gateway with a Tunnel.
func (o Operation) withTunnel(found objects) effect {
	switch {
	case o == Wait:
		return found.asSettings()
	case o == Pause && found.tunnel.Spec.Paused:
		return effect{done: "paused"}
	case o == Pause, o == Resume && found.tunnel.Spec.Paused:
		return effect{outstanding: notProcessed}
	case o == Resume:
		return found.serving("resumed")
	case o == RotateToken:
		return found.rotation()
	default:
		return found.reconcile()
	}
}

// lostRequest returns why the objects no longer request the operation, or "".
func (o Operation) lostRequest(found objects) string {
	if found.gateway == nil && o != Reconcile {
		return "the Gateway was deleted"
	}
	switch o {
	case Pause, Resume:
		if v1alpha1.RequestsPause(found.gateway) != (o == Pause) {
			return "another client changed the annotation " + v1alpha1.PausedAnnotation + " of the Gateway"
		}
	case RotateToken:
		return found.lostAnnotation(v1alpha1.RotateTokenAnnotation)
	case Reconcile:
		return found.lostAnnotation(v1alpha1.ReconcileAnnotation)
	case Wait: // requests nothing
	}
	return ""
}

// lostAnnotation returns why the Tunnel, if it exists, has no annotation with the name, or
// "". Without the check, a Tunnel that was deleted and created again would record the
// request: both values are empty.
func (f objects) lostAnnotation(name string) string {
	if f.tunnel == nil || f.tunnel.Annotations[name] != "" {
		return ""
	}
	return "the Tunnel was created again, or another client removed its annotation " + name
}

// withoutTunnel returns how far the operation is on a Gateway without a Tunnel.
func (o Operation) withoutTunnel(found objects) effect {
	switch message := found.falseCondition(conditions.TypeAccepted); {
	case found.gateway == nil:
		return effect{done: "reconciled: the Gateway is gone, and its Tunnel was deleted"}
	case message != "":
		return effect{refused: message}
	case (o == Wait || o == Resume) && conditions.TypeProgrammed.IsTrue(found.gateway.Status.Conditions):
		return effect{outstanding: noTunnelText} // the other operations have found the Tunnel before
	default:
		return effect{outstanding: "the controller has not created the Tunnel yet"}
	}
}

// reconcile returns how far the operation Reconcile is.
func (f objects) reconcile() effect {
	switch {
	case !f.reconciled():
		return effect{outstanding: notProcessed}
	case f.gateway == nil && f.tunnel.Status.Phase == v1alpha1.TunnelRetained:
		return effect{done: "reconciled: the Gateway is gone, and its tunnel is retained"}
	case f.gateway == nil && conditions.RequiresAction(f.notReady()):
		return effect{refused: f.readyMessage()}
	case f.gateway == nil:
		return effect{outstanding: "the Gateway was deleted; the controller is deleting its tunnel"}
	case f.tunnel.Spec.Paused && f.applied():
		return effect{done: "reconciled: the configuration is in effect, and the Gateway is paused"}
	case f.tunnel.Spec.Paused:
		return effect{refused: "the configuration is not in effect: " + pausedHint}
	default:
		return f.serving("reconciled")
	}
}

// rotation returns how far the operation RotateToken is.
func (f objects) rotation() effect {
	token := f.tunnel.Status.Token
	switch {
	case token.Phase != "":
		return effect{outstanding: f.rotationPhase()}
	case token.Requested == f.tunnel.Annotations[v1alpha1.RotateTokenAnnotation]:
		return f.serving("token rotated")
	case f.tunnel.Spec.Paused:
		return effect{refused: pausedHint}
	case !f.reconciled():
		return effect{outstanding: notProcessed}
	case conditions.RequiresAction(f.notReady()):
		return effect{refused: f.readyMessage()}
	case f.readyMessage() != "":
		return effect{outstanding: f.readyMessage()}
	default:
		return effect{outstanding: "the controller has not begun to rotate the token yet"}
	}
}

// rotationPhase describes the rotation's phase.
func (f objects) rotationPhase() string {
	switch f.tunnel.Status.Token.Phase {
	case v1alpha1.TokenRotating:
		return "requesting a new token from Cloudflare"
	case v1alpha1.TokenRolling:
		return "rolling out the new token, connectors ready: " + f.tunnel.Status.Connectors.Summary
	default:
		return "disconnecting the connectors with the old token"
	}
}

// serving returns whether the tunnel serves the Gateway as desired: the Gateway is
// Programmed, the configuration is in effect, the connectors have rolled out, no data
// plane change is in progress, and Envoy, if it serves the Gateway, has the
// configuration.
func (f objects) serving(done string) effect {
	accepted := f.falseCondition(conditions.TypeAccepted)
	notReady := cmp.Or(f.falseCondition(conditions.TypeProgrammed), f.dataPlane())
	switch {
	case !f.gatewayObserved():
		return effect{outstanding: "the controller has not processed the last change to the Gateway yet"}
	case accepted != "":
		return effect{refused: accepted}
	case f.applied() && f.rolledOut() && notReady == "" && f.change() == "":
		return effect{done: done + ": the configuration is in effect" + f.connectors()}
	case conditions.RequiresAction(f.outstandingChange()):
		return effect{refused: f.change()}
	case f.change() != "" && conditions.ReasonRotationBlocked.Is(f.notReady()):
		return effect{outstanding: f.change()} // the change continues without a rotation
	case conditions.RequiresAction(f.notReady()):
		return effect{refused: f.readyMessage()}
	default:
		return effect{outstanding: cmp.Or(f.change(), f.readyMessage(), notReady, "the configuration is not in effect yet")}
	}
}

// rolledOut reports whether the connectors, if there are any, are ready and match the
// Tunnel's spec.
func (f objects) rolledOut() bool {
	c := conditions.TypeTunnelConnectorsReady.Find(f.tunnel.Status.Conditions)
	return c == nil || c.Status == metav1.ConditionTrue && c.ObservedGeneration == f.tunnel.Generation
}

// connectors describes the connectors, if the controller runs them.
func (f objects) connectors() string {
	c := f.tunnel.Status.Connectors
	if c.Desired == 0 {
		return ""
	}
	return fmt.Sprintf(", connectors ready: %s", c.Summary)
}

// reconciled reports whether the controller has handled the last requested reconcile. The
// Tunnel's conditions then take it into account.
func (f objects) reconciled() bool {
	return f.tunnel.Status.Reconciled == f.tunnel.Annotations[v1alpha1.ReconcileAnnotation]
}

// applied reports whether the desired configuration is in effect since the Tunnel's spec
// last changed.
func (f objects) applied() bool {
	c := conditions.TypeTunnelConfigurationApplied.Find(f.tunnel.Status.Conditions)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == f.tunnel.Generation
}

// notReady returns the Tunnel's Ready condition if it is False since the Tunnel's spec
// last changed, or nil.
func (f objects) notReady() *metav1.Condition {
	c := conditions.TypeTunnelReady.Find(f.tunnel.Status.Conditions)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != f.tunnel.Generation {
		return nil
	}
	return c
}

// readyMessage returns the message why the Tunnel is not ready, or "".
func (f objects) readyMessage() string {
	if c := f.notReady(); c != nil {
		return sentence(c.Message)
	}
	return ""
}

// gatewayObserved reports whether the Gateway's conditions are for its current
// generation. The controller writes Accepted and Programmed together.
func (f objects) gatewayObserved() bool {
	c := conditions.TypeProgrammed.Find(f.gateway.Status.Conditions)
	return c != nil && c.ObservedGeneration == f.gateway.Generation
}

// falseCondition returns the message of a Gateway condition that is not True for the
// current generation, or "".
func (f objects) falseCondition(t conditions.Type) string {
	if f.gateway == nil {
		return ""
	}
	if message := f.falseMessage(t); message != "" {
		return fmt.Sprintf("the Gateway is not %s: %s", t, message)
	}
	return ""
}

// dataPlane returns the message why Envoy does not have the Gateway's configuration, or
// "".
func (f objects) dataPlane() string {
	if message := f.falseMessage(conditions.TypeDataPlaneReady); message != "" {
		return "the data plane is not ready: " + message
	}
	return ""
}

// falseMessage returns the message of a Gateway condition that is not True for the
// current generation as a part of a sentence, or "".
func (f objects) falseMessage(t conditions.Type) string {
	c := t.Find(f.gateway.Status.Conditions)
	switch {
	case c == nil || c.ObservedGeneration != f.gateway.Generation:
		return "" // serving waits for the current generation's conditions
	case c.Status == metav1.ConditionTrue:
		return ""
	default:
		return sentence(c.Message)
	}
}

// sentence returns a condition's message as a part of a sentence. The message can contain
// other users' text.
func sentence(message string) string {
	return strings.TrimSuffix(terminal.Escape(message), ".")
}
