package tunnel

import (
	"fmt"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// OutcomeState tells whether the desired configuration is in effect.
type OutcomeState int

const (
	// OutcomePending means that this is not known yet. The condition keeps its previous
	// state.
	OutcomePending OutcomeState = iota
	// OutcomeFailed means that the configuration is not in effect, for the Reason.
	OutcomeFailed
	// OutcomeInEffect means that the configuration is in effect.
	OutcomeInEffect
)

// Outcome is what a Gateway's conditions report about the tunnel.
type Outcome struct {
	State OutcomeState
	// Reason explains a failure, or why throttled changes are pending.
	Reason conditions.Reason
	// Message describes a failure and what to do, or adds a note to a success.
	Message string
	// Tunnel is the Gateway's tunnel; empty if there is none.
	Tunnel provider.TunnelID
	// DataPlaneChange is in progress, or the settings ask for it but it cannot begin;
	// nil for none.
	DataPlaneChange *DataPlaneChange
}

// RequiresAction reports whether the desired configuration does not come into effect
// until a user acts.
func (o Outcome) RequiresAction() bool { return o.Reason.RequiresAction() }

// Programmed returns what the Gateway's conditions report about the tunnel.
func Programmed(f Facts) Outcome {
	if f.Object == nil {
		return f.outcome(f.withRetryTime(Decide(f).Problem))
	}
	if p := f.objectProblem(); p != nil {
		o := Outcome{State: OutcomeFailed, Reason: p.Reason, Message: p.Message}
		if p.Reason == conditions.ReasonNewerVersion {
			o.Tunnel = provider.TunnelID(f.Object.Status.TunnelID) // it keeps serving the Gateway
		}
		return o
	}
	o := f.servingOutcome()
	o.DataPlaneChange = f.dataPlaneChange()
	o.Tunnel = provider.TunnelID(f.Object.Status.TunnelID)
	if f.adopts() && f.Object.Status.Configuration.Hash == "" && f.Memory.Remote.Tunnel.Presence != Present {
		o.Tunnel = "" // the ID comes from the settings, and the tunnel was not found yet
	}
	return o
}

func (f Facts) servingOutcome() Outcome {
	if stage := f.lifecycle(); stage == lifecycleReturned || stage == lifecycleRetiring && !f.retains() {
		p := deletionPending()
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: p.Message}
	}
	if f.Desired != nil {
		if setting := Disagreement(f.Object.Spec, f.Desired.Spec); setting != "" {
			return Outcome{State: OutcomeFailed, Reason: conditions.ReasonSettingsNotApplied, Message: fmt.Sprintf(
				"The setting %s selects a different tunnel than Tunnel %s records. Restore the setting, or ask an administrator to delete the Tunnel object to switch.",
				setting, f.Object.Name)}
		}
	}
	return f.outcome(f.servingProblem())
}

// outcome returns the outcome for the problem that keeps the desired configuration from
// being in effect, which can be nil.
func (f Facts) outcome(p *Problem) Outcome {
	message := ""
	if p != nil {
		message = p.Message
	}
	switch {
	case p != nil && p.Reason == conditions.ReasonTunnelInUse:
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: message}
	case f.inEffect():
		if p != nil && p.Reason != conditions.ReasonPaused {
			message = ""
		}
		return Outcome{State: OutcomeInEffect, Message: message}
	case p != nil && p.Reason == conditions.ReasonConfigurationThrottled:
		return Outcome{State: OutcomePending, Reason: p.Reason, Message: message}
	case p == nil, p.Reason == conditions.ReasonRateLimited, f.probablyInEffect() && p.keepsServing():
		return Outcome{State: OutcomePending, Message: message}
	default:
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: message}
	}
}

// keepsServing reports whether a configuration that was in effect remains in effect despite
// the problem.
func (p *Problem) keepsServing() bool {
	switch p.Reason {
	case conditions.ReasonPaused, conditions.ReasonCredentialsMissing, conditions.ReasonWrongAccount:
		return true
	default:
		return !p.RequiresAction
	}
}

// inEffect reports whether the desired configuration is in effect. While the
// configuration switches to another data plane, this can be the configuration for
// either.
func (f Facts) inEffect() bool {
	return f.Memory.InEffect != "" && f.isDesired(f.Memory.InEffect)
}

// isDesired reports whether a desired configuration has the hash.
func (f Facts) isDesired(hash string) bool {
	return f.Desired != nil && hash != "" && (hash == f.Desired.Hash || f.acceptsOther() && hash == f.Desired.Other.Hash)
}

// acceptsOther reports whether the configuration for the other data plane can be in
// effect: while the configuration switches, and until a configuration for the new data
// plane was built.
func (f Facts) acceptsOther() bool {
	if f.Object == nil || f.Desired == nil || f.Desired.Other == nil {
		return false
	}
	change := f.Object.Status.DataPlaneChange
	return change != nil && change.Phase == v1alpha1.DataPlaneSwitching || f.hasOtherDataPlane()
}

// probablyInEffect reports whether the desired configuration was written before
// according to the record, and this process knows of no later or failed write and of no
// other configuration at Cloudflare.
func (f Facts) probablyInEffect() bool {
	remote := f.Memory.Remote.Configuration
	if remote.Known && f.Desired != nil && !f.isDesired(remote.Hash) {
		return false
	}
	if f.Object == nil || !f.isDesired(f.Object.Status.Configuration.Hash) {
		return false
	}
	return f.wroteOnlyDesired() || f.Memory.FailedWrite != f.Object.Status.Configuration.Hash && !f.Memory.LateWrites.pending(f.Uptime)
}

// wroteOnlyDesired reports whether, according to the record, the configuration for one
// of the two data planes is in effect, regardless of which write has succeeded.
func (f Facts) wroteOnlyDesired() bool {
	recorded := f.Object.Status.Configuration
	return f.acceptsOther() && f.isDesired(recorded.Hash) && f.isDesired(recorded.Previous) && (recorded.Late == "" || f.isDesired(recorded.Late))
}

// servingProblem returns the problem that keeps the desired configuration from being in
// effect, or nil.
func (f Facts) servingProblem() *Problem {
	for _, r := range []rule{pause, claim, locate, applyConfiguration} {
		step := f.whenWritable(r(f))
		if step.Ends() && step.Problem != nil {
			return f.withRetryTime(step.Problem)
		}
	}
	return nil
}

// withRetryTime adds the retry delay to a problem's message. The message does not
// change until the retry.
func (f Facts) withRetryTime(p *Problem) *Problem {
	for _, b := range f.Memory.Backoffs {
		if p != nil && b.Problem == p && b.Until.IsSet() && !p.RequiresAction {
			return &Problem{Reason: p.Reason, RequiresAction: p.RequiresAction, Message: fmt.Sprintf("%s Retrying in %s.", p.Message, b.Delay.Round(time.Second))}
		}
	}
	return p
}
