package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// DataPlaneChange is a data plane change as the conditions report it. It is in
// progress, or the settings ask for it but it cannot begin.
type DataPlaneChange struct {
	// To is the data plane that will serve the Gateway.
	To v1alpha1.DataPlane
	// Phase is empty if the change has not begun.
	Phase v1alpha1.DataPlaneChangePhase
	// Reason is [conditions.ReasonDataPlaneChanging], or the problem that a user must
	// fix first: [conditions.ReasonLimitExceeded] or
	// [conditions.ReasonDataPlaneBlocked].
	Reason conditions.Reason
	// Message describes what the change waits for.
	Message string
}

// dataPlaneChange returns the change that the conditions report, or nil.
func (f Facts) dataPlaneChange() *DataPlaneChange {
	recorded := f.Object.Status.DataPlaneChange
	if f.lifecycle() != lifecycleServing || recorded == nil && (f.Desired == nil || !NeedsBoth(f.Object, f.Desired.DataPlane)) {
		return nil
	}
	c := &DataPlaneChange{Reason: conditions.ReasonDataPlaneChanging}
	if recorded != nil {
		c.To, c.Phase = recorded.To, recorded.Phase
	} else {
		c.To = f.Desired.DataPlane
	}
	switch {
	case f.Desired == nil:
		c.Message = "The data plane change continues when the Gateway's settings are valid."
		return c
	case f.Object.Spec.Paused:
		c.Message = "The data plane change continues when the Gateway is no longer paused."
		return c
	}
	p := f.changeProgress()
	c.Message = p.message
	switch problem := p.step.Problem; {
	case problem != nil && problem.Reason == conditions.ReasonLimitExceeded, problem != nil && problem.Reason == conditions.ReasonDataPlaneBlocked:
		c.Reason = problem.Reason
	case c.Message == "":
		c.Message = "The controller records the next phase of the change."
	}
	return c
}
