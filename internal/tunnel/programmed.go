package tunnel

import (
	"fmt"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// OutcomeState says whether the desired configuration is in effect.
type OutcomeState int

// The outcomes.
const (
	// OutcomePending means that it is not known yet; what was reported before
	// stays.
	OutcomePending OutcomeState = iota
	// OutcomeFailed means that it is not in effect, for the Reason.
	OutcomeFailed
	// OutcomeInEffect means that it is in effect.
	OutcomeInEffect
)

// Outcome is what a Gateway's conditions say about its tunnel.
type Outcome struct {
	State OutcomeState
	// Reason of a failure.
	Reason Reason
	// Message says what is wrong and what to do, or adds a remark to a success.
	Message string
	// Tunnel is the Gateway's tunnel; empty when it has none.
	Tunnel provider.TunnelID
}

// NeedsPerson reports whether the desired configuration does not come into effect
// before a person acts.
func (o Outcome) NeedsPerson() bool { return describe(o.Reason).NeedsPerson }

// Programmed returns what the Gateway's conditions say about the tunnel.
func Programmed(f Facts) Outcome {
	if f.Object == nil {
		return f.outcome(f.explain(Decide(f).Problem))
	}
	if p := f.unusable(); p != nil {
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: p.Message}
	}
	o := f.servingOutcome()
	o.Tunnel = provider.TunnelID(f.Object.Status.TunnelID)
	if f.adopts() && f.Object.Status.Configuration.Hash == "" && f.Memory.Remote.Tunnel.Presence != Present {
		o.Tunnel = "" // the ID comes from the settings and was not found yet
	}
	return o
}

func (f Facts) servingOutcome() Outcome {
	if life := f.life(); life == lifeReturned || life == lifeRetire && !f.retains() {
		p := deletionPending()
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: p.Message}
	}
	if f.Desired != nil {
		if setting := Disagreement(f.Object.Spec, f.Desired.Spec); setting != "" {
			return Outcome{State: OutcomeFailed, Reason: ReasonSettingsNotApplied, Message: fmt.Sprintf(
				"The setting %s asks for another tunnel than Tunnel %s records. Restore the setting, or ask an administrator to delete the Tunnel object to switch.",
				setting, f.Object.Name)}
		}
	}
	return f.outcome(f.servingProblem())
}

// outcome returns the outcome when the problem is the only one that prevents the
// desired configuration from being in effect. It may be nil.
func (f Facts) outcome(p *Problem) Outcome {
	message := ""
	if p != nil {
		message = p.Message
	}
	switch {
	case p != nil && p.Reason == ReasonTunnelInUse:
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: message}
	case f.inEffect():
		if p != nil && p.Reason != ReasonPaused {
			message = ""
		}
		return Outcome{State: OutcomeInEffect, Message: message}
	case p == nil, p.Reason == ReasonRateLimited, f.probablyInEffect() && p.leavesServing():
		return Outcome{State: OutcomePending, Message: message}
	default:
		return Outcome{State: OutcomeFailed, Reason: p.Reason, Message: message}
	}
}

// leavesServing reports whether a configuration that was in effect stays so,
// although the controller cannot find out.
func (p *Problem) leavesServing() bool {
	switch p.Reason {
	case ReasonPaused, ReasonCredentialsMissing, ReasonWrongAccount:
		return true
	default:
		return !p.NeedsPerson
	}
}

func (f Facts) inEffect() bool {
	return f.Desired != nil && f.Desired.Hash != "" && f.Memory.InEffect == f.Desired.Hash
}

// probablyInEffect reports whether the desired configuration was written before,
// as far as the record says and this process knows.
func (f Facts) probablyInEffect() bool {
	return f.Object != nil && f.Desired != nil && f.Object.Status.Configuration.Hash == f.Desired.Hash &&
		f.Memory.Unwritten != f.Desired.Hash && !f.Memory.Late.pending(f.Uptime)
}

// servingProblem returns why the desired configuration is not in effect, or nil.
func (f Facts) servingProblem() *Problem {
	for _, r := range []rule{pause, claim, locate, configuration} {
		step := f.whenWritable(r(f))
		if step.Ends() && step.Problem != nil {
			return f.explain(step.Problem)
		}
	}
	return nil
}

// explain adds to a problem when the next attempt is due. The text stays the same
// until then.
func (f Facts) explain(p *Problem) *Problem {
	for _, b := range f.Memory.Backoffs {
		if p != nil && b.Problem == p && b.Until.IsSet() && !p.NeedsPerson {
			return &Problem{Reason: p.Reason, NeedsPerson: p.NeedsPerson, Message: fmt.Sprintf("%s Retrying in %s.", p.Message, b.Delay.Round(time.Second))}
		}
	}
	return p
}
