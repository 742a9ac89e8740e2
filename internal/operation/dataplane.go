package operation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// asSettings returns whether the tunnel serves the Gateway with the data plane in its
// GatewayClass settings.
func (f objects) asSettings() effect {
	e := f.serving("is served by " + describeDataPlane(tunnel.RecordedDataPlane(f.tunnel)))
	target := f.targetDataPlane()
	switch paused := f.tunnel.Spec.Paused; {
	case paused != v1alpha1.RequestsPause(f.gateway):
		return effect{outstanding: "the controller has not processed the annotation " + v1alpha1.PausedAnnotation + " yet"}
	case target != "" && target != f.class.dataPlane && (e.refused == "" || e.refused == f.change()):
		return f.notBegun()
	case e.done == "":
		return e
	case f.changeCondition() == nil:
		return effect{outstanding: "the controller has not reported the Tunnel's data plane yet"}
	case paused:
		e.done += ", and the Gateway is paused"
	}
	return e
}

// notBegun returns the effect when the settings ask for another data plane than the
// Tunnel records.
func (f objects) notBegun() effect {
	if f.tunnel.Spec.Paused {
		return effect{refused: fmt.Sprintf("the data plane does not change to %s: %s", f.class.dataPlane, pausedHint)}
	}
	text := fmt.Sprintf("the controller has not begun to change the data plane to %s yet", f.class.dataPlane)
	if f.change() != "" {
		text += "; " + f.change()
	}
	return effect{outstanding: text}
}

// targetDataPlane returns the data plane that the settings asked for when the controller
// last wrote the Tunnel's status; empty if it has recorded none.
func (f objects) targetDataPlane() v1alpha1.DataPlane {
	recorded := tunnel.RecordedDataPlane(f.tunnel)
	switch c := f.changeCondition(); {
	case f.tunnel.Status.DataPlaneChange != nil:
		return f.tunnel.Status.DataPlaneChange.To
	case recorded == "" || c == nil || c.Status == metav1.ConditionTrue:
		return recorded
	default:
		return recorded.Other()
	}
}

// changeCondition returns the Tunnel's DataPlaneApplied condition since the Tunnel's spec
// last changed, or nil.
func (f objects) changeCondition() *metav1.Condition {
	c := conditions.TypeTunnelDataPlaneApplied.Find(f.tunnel.Status.Conditions)
	if c == nil || c.ObservedGeneration != f.tunnel.Generation {
		return nil
	}
	return c
}

// outstandingChange returns the Tunnel's DataPlaneApplied condition if the data plane in
// the settings is not in effect, or nil.
func (f objects) outstandingChange() *metav1.Condition {
	if c := f.changeCondition(); c != nil && c.Status != metav1.ConditionTrue {
		return c
	}
	return nil
}

// change describes the phase of a data plane change and what it waits for. It returns ""
// if no change is in progress or outstanding.
func (f objects) change() string {
	message, phase := "", ""
	if c := f.changeCondition(); c != nil && c.Status != metav1.ConditionTrue {
		message = sentence(c.Message)
	}
	if c := f.tunnel.Status.DataPlaneChange; c != nil {
		phase = fmt.Sprintf("changing the data plane to %s, phase %s", c.To, c.Phase)
	}
	if phase != "" && message != "" {
		return phase + ": " + message
	}
	return phase + message
}

func describeDataPlane(d v1alpha1.DataPlane) string {
	if d == v1alpha1.DataPlaneEnvoy {
		return "Envoy"
	}
	return "ingress rules"
}
