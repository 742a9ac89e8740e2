package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Change is a change of the data plane that is in progress, or that the settings ask for but
// that cannot begin.
type Change struct {
	// To is the data plane that will serve the Gateway.
	To v1alpha1.DataPlane
	// Phase is the phase of the change; empty if it has not begun.
	Phase v1alpha1.DataPlaneChangePhase
	// Reason is [ReasonDataPlaneChanging], or the reason of the problem that a user must fix
	// first: [ReasonLimitExceeded] or [ReasonDataPlaneBlocked].
	Reason Reason
	// Message describes what the change waits for.
	Message string
}

// RunsEnvoy reports whether the connectors of the Tunnel have Envoy now, according to the
// record.
func RunsEnvoy(t *v1alpha1.Tunnel) bool {
	if t != nil && t.Status.DataPlaneChange != nil {
		return t.Status.DataPlaneChange.Phase != v1alpha1.DataPlaneRemovingEnvoy
	}
	return RecordedDataPlane(t) == v1alpha1.DataPlaneEnvoy
}

// UsesIdentity reports whether the Envoys of the Tunnel need a certificate: also while a change
// adds or removes the Envoys.
func UsesIdentity(t *v1alpha1.Tunnel) bool {
	return RunsEnvoy(t) || t != nil && t.Status.DataPlaneChange != nil
}

// NeedsBoth reports whether the routing tables of both data planes are needed: while the data
// plane changes, and while the settings ask for another data plane than the Tunnel records.
func NeedsBoth(t *v1alpha1.Tunnel, wanted v1alpha1.DataPlane) bool {
	recorded := RecordedDataPlane(t)
	return recorded != "" && (recorded != wanted || t.Status.DataPlaneChange != nil)
}

// change returns the change of the data plane for the conditions, or nil.
func (f Facts) change() *Change {
	recorded := f.Object.Status.DataPlaneChange
	if f.lifecycle() != lifecycleServing || recorded == nil && (f.Desired == nil || !NeedsBoth(f.Object, f.Desired.DataPlane)) {
		return nil
	}
	c := &Change{Reason: ReasonDataPlaneChanging}
	if recorded != nil {
		c.To, c.Phase = recorded.To, recorded.Phase
	} else {
		c.To = f.Desired.DataPlane
	}
	switch {
	case f.Desired == nil:
		c.Message = "The change of the data plane continues when the settings of the Gateway are valid."
		return c
	case f.Object.Spec.Paused:
		c.Message = "The change of the data plane continues when the Gateway is no longer paused."
		return c
	}
	p := f.changeProgress()
	c.Message = p.message
	switch problem := p.step.Problem; {
	case problem != nil && problem.Reason == ReasonLimitExceeded, problem != nil && problem.Reason == ReasonDataPlaneBlocked:
		c.Reason = problem.Reason
	case c.Message == "":
		c.Message = "The controller records the next phase of the change."
	}
	return c
}
