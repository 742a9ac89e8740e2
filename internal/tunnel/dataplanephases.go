package tunnel

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// progress is how far a data plane change is. Its zero value means that there is
// nothing to change.
type progress struct {
	// step is the change's next step.
	step Step
	// message describes what the change waits for if the step is a wait.
	message string
}

// waiting returns the progress while a change waits for something in the cluster, which
// is checked at the interval.
func waiting(interval time.Duration, message string) progress {
	return progress{step: waitFor(interval), message: message}
}

// changeDataPlane changes the recorded data plane to the data plane in the settings, in
// phases. A change to Envoy adds Envoy to the connectors and then switches the
// configuration; a change to ingress rules switches the configuration and then removes
// Envoy. The configuration therefore leads to Envoy only while every pod has Envoy.
func changeDataPlane(f Facts) Step { return f.changeProgress().step }

// changeProgress determines the change's phase and what it waits for.
func (f Facts) changeProgress() progress {
	if f.Desired == nil {
		return progress{}
	}
	change := f.Object.Status.DataPlaneChange
	if change == nil {
		return f.beginChange()
	}
	switch change.Phase {
	case v1alpha1.DataPlaneAddingEnvoy:
		return f.addEnvoy()
	case v1alpha1.DataPlaneRemovingEnvoy:
		return f.removeEnvoy()
	default: // DataPlaneSwitching
		return f.switchConfiguration()
	}
}

// beginChange begins a change that the settings ask for.
func (f Facts) beginChange() progress {
	recorded, wanted := RecordedDataPlane(f.Object), f.Desired.DataPlane
	switch {
	case recorded == wanted:
		return progress{}
	case f.Desired.Configuration == nil:
		return progress{message: "The data plane change begins when the Gateway is accepted."}
	case f.isOutdated():
		return f.waitForBuild()
	case wanted == v1alpha1.DataPlaneEnvoy:
		return progress{step: f.startPhase(wanted, v1alpha1.DataPlaneAddingEnvoy, newEvent(conditions.EventDataPlaneChanging,
			"The data plane of Tunnel %s changes to Envoy; the ingress rules keep serving until every connector has Envoy.", f.Object.Name))}
	case f.Desired.Other.Excess != "":
		p := problem(conditions.ReasonLimitExceeded, "%s", f.Desired.Other.Excess)
		return progress{step: blocked(p), message: p.Message}
	}
	return progress{step: f.startPhase(wanted, v1alpha1.DataPlaneSwitching, newEvent(conditions.EventDataPlaneChanging,
		"The data plane of Tunnel %s changes to ingress rules.", f.Object.Name))}
}

// isOutdated reports whether the desired configurations were built from an outdated Tunnel.
func (f Facts) isOutdated() bool { return f.Desired.Other == nil || f.hasOtherDataPlane() }

// waitForBuild waits for the next reconcile, which builds both configurations again.
func (f Facts) waitForBuild() progress {
	return progress{step: waitFor(minBackoff), message: "The controller builds the configurations for both data planes."}
}

// startPhase returns the step that records a change's first phase.
func (f Facts) startPhase(to v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase, event *Event) Step {
	return f.recordChange(RecordedDataPlane(f.Object), &v1alpha1.DataPlaneChange{To: to, Phase: phase, StartedAt: *f.now()}, event)
}

// continueWith returns the step that records the change's next phase.
func (f Facts) continueWith(inEffect v1alpha1.DataPlane, phase v1alpha1.DataPlaneChangePhase) Step {
	next := *f.Object.Status.DataPlaneChange
	next.Phase = phase
	return f.recordChange(inEffect, &next, nil)
}

// recordChange returns the step that records the data plane in effect and the change. The
// condition DataPlaneApplied is never True during a change: a client can wait for it.
func (f Facts) recordChange(inEffect v1alpha1.DataPlane, change *v1alpha1.DataPlaneChange, event *Event) Step {
	return Step{Action: Record, Event: event, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) {
		s.DataPlane, s.DataPlaneChange = inEffect, change
		if change != nil && conditions.TypeTunnelDataPlaneApplied.IsTrue(s.Conditions) {
			applied := condition(conditions.TypeTunnelDataPlaneApplied, metav1.ConditionFalse, conditions.ReasonDataPlaneChanging, messageChangeBegun)
			applied.ObservedGeneration, applied.LastTransitionTime = f.Object.Generation, *f.now()
			meta.SetStatusCondition(&s.Conditions, *applied)
		}
	})}
}

// messageChangeBegun is the DataPlaneApplied message until the Facts contain what a new
// change waits for.
const messageChangeBegun = "The data plane change has begun."

// reversed returns the event that the controller reverses the change.
func (f Facts) reversed() *Event {
	return newEvent(conditions.EventDataPlaneReversed, "The controller reverses the data plane change of Tunnel %s to %s.", f.Object.Name, f.Object.Status.DataPlaneChange.To)
}

// completed returns the event that a change has ended.
func (f Facts) completed(plane v1alpha1.DataPlane) *Event {
	return newEvent(conditions.EventDataPlaneChanged, "The data plane of Tunnel %s is now %s.", f.Object.Name, plane)
}

// addEnvoy waits until the configuration may lead to Envoy.
func (f Facts) addEnvoy() progress {
	switch {
	case f.Desired.DataPlane != v1alpha1.DataPlaneEnvoy:
		return progress{step: f.startPhase(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, f.reversed())}
	case f.Desired.Configuration == nil:
		return progress{message: "The data plane change continues when the Gateway is accepted."}
	case f.isOutdated():
		return f.waitForBuild()
	}
	if p := f.untilReady(); p.step.Action != "" {
		return p
	}
	return progress{step: f.continueWith(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneSwitching)}
}

// removeEnvoy waits until every pod is without Envoy and available.
func (f Facts) removeEnvoy() progress {
	switch c := f.Connectors; {
	case f.Desired.DataPlane == v1alpha1.DataPlaneEnvoy:
		return progress{step: f.startPhase(v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneAddingEnvoy, f.reversed())}
	case !c.Current:
		return waiting(rolloutInterval, "The controller removes Envoy from the connectors.")
	case c.WithEnvoy > 0 || !c.rolledOut() || c.Ready < c.Desired:
		return f.waitForRollout("without", c.WithEnvoy, "with")
	}
	return progress{step: f.recordChange(v1alpha1.DataPlaneIngressRules, nil, f.completed(v1alpha1.DataPlaneIngressRules))}
}
