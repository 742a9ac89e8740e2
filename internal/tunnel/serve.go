package tunnel

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// rule returns the next step for one aspect of the Tunnel. The zero Step means that
// nothing needs to be done.
type rule func(Facts) Step

// serve returns the next step for a Tunnel whose Gateway exists. The first rules run in
// order: each must be satisfied before the next rule runs. The rules passed to
// firstStep are independent of each other.
func serve(f Facts) Step {
	for _, r := range []rule{applySpec, recordGateway, recordDataPlane, pause, claim, locate} {
		if step := r(f); step.Action != "" {
			return step
		}
	}
	return firstStep(f, applyConfiguration, ensureToken, ensureConnectors, changeDataPlane, rotateToken, refreshConnections)
}

// firstStep returns the first step among the rules' steps that has an action. If there
// is none, it returns the shortest wait, with the first problem.
func firstStep(f Facts, rules ...rule) Step {
	end := Step{Action: None}
	for _, r := range rules {
		step := r(f)
		switch {
		case step.Action == "":
			continue
		case !step.Ends():
			return step
		case step.Action == Wait && (end.Action == None || step.Delay < end.Delay):
			end.Action, end.Delay = Wait, step.Delay
		}
		end.AwaitsEnvoys = end.AwaitsEnvoys || step.AwaitsEnvoys
		if end.Problem == nil {
			end.Problem = step.Problem
		}
	}
	return end
}

// applySpec updates the spec.
func applySpec(f Facts) Step {
	if equality.Semantic.DeepEqual(f.Object.Spec, DesiredSpec(f)) {
		return Step{}
	}
	return f.attempt(TrackObject, Step{Action: Claim})
}

// recordGateway records the UID of the Gateway that the tunnel serves.
func recordGateway(f Facts) Step {
	recorded := types.UID(f.Object.Status.GatewayUID)
	if recorded == f.Gateway.UID || recorded != "" && f.Desired == nil {
		return Step{} // a new Gateway's identity cannot be compared until its settings are valid
	}
	return Step{Action: Record, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = string(f.Gateway.UID) })}
}

// PausedMessage is the message for [conditions.ReasonPaused] while the Gateway exists.
const PausedMessage = "The Gateway is paused" + pausedConsequence

const pausedConsequence = ", so the controller changes nothing at Cloudflare, and what others revoke stays in effect there. Remove the annotation " +
	v1alpha1.PausedAnnotation + " to resume."

// pausedProblem returns the problem that a Gateway is paused, and since when if the
// Tunnel records it.
func (f Facts) pausedProblem() *Problem {
	if f.Object == nil || f.Object.Status.PausedSince == nil {
		return problem(conditions.ReasonPaused, PausedMessage)
	}
	return problem(conditions.ReasonPaused, "The Gateway has been paused since %s%s", f.Object.Status.PausedSince.UTC().Format(time.RFC3339), pausedConsequence)
}

// withPausedSince returns the facts with the time in the Tunnel's status since when it
// is paused.
func (f Facts) withPausedSince() Facts {
	since := f.Object.Status.PausedSince
	switch {
	case !f.Object.Spec.Paused:
		since = nil
	case since == nil && f.Gateway.State == GatewayExists:
		since = f.now()
	}
	if since != f.Object.Status.PausedSince {
		f.Object = f.Object.DeepCopy()
		f.Object.Status.PausedSince = since
	}
	return f
}

// pause stops all changes at Cloudflare and to the connectors while the Tunnel is paused.
// The configuration is still read, to report whether it is in effect.
func pause(f Facts) Step {
	switch {
	case !f.Object.Spec.Paused:
		return Step{}
	case f.Object.Status.Contested:
		return Step{Action: Record, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Contested = false })}
	}
	problem := f.pausedProblem()
	if !f.readsWhilePaused() {
		return blocked(problem)
	}
	step := firstStep(f, finishToken, nextRead, refreshConnections)
	if step.Ends() {
		step.Problem = problem
	}
	return step
}

// readsWhilePaused reports whether, while the Tunnel is paused, its tunnel can be read
// and the configuration can be compared.
func (f Facts) readsWhilePaused() bool {
	return f.Object.Status.TunnelID != "" && f.Desired != nil && f.Desired.Configuration != nil && f.claimProblem() == nil && f.credentialsProblem() == nil
}

// claim ensures that no other Tunnel has claimed the tunnel. For an existing tunnel, the
// Tunnels are listed, the record is written, and the Tunnels are listed again before the
// first request to Cloudflare.
func claim(f Facts) Step {
	if p := f.claimProblem(); p != nil {
		return blocked(p)
	}
	if !f.adopts() {
		return Step{}
	}
	id := f.Object.Spec.Existing.ID
	switch {
	case f.Object.Status.TunnelID == id && f.Memory.Claimed:
		return Step{}
	case f.Reserved:
		return waitFor(minBackoff)
	}
	return f.attempt(TrackObject, Step{Action: Claim, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.TunnelID = id })})
}

// contenders returns the rivals that can win the claim. A tunnel with its Gateway's
// name belongs to that Gateway, even if other Tunnels of this controller request it.
func (f Facts) contenders() []Rival {
	if f.adopts() {
		return f.Rivals
	}
	return slices.DeleteFunc(slices.Clone(f.Rivals), func(r Rival) bool { return !r.Recorded || !r.OtherController })
}

// claimant returns the name of another Tunnel that has claimed the tunnel, or "". A
// Tunnel that records the tunnel wins over a Tunnel that does not; if both or neither
// record it, the older Tunnel wins. Another controller's Tunnel that records the tunnel
// always wins, and so does the Tunnel for the Gateway whose name the tunnel has.
func (f Facts) claimant() string {
	recorded := f.Object.Status.TunnelID != ""
	for _, rival := range f.contenders() {
		if rival.Recorded && (!recorded || rival.OtherController || rival.HasGatewayName) || rival.Recorded == recorded && rival.Older {
			return rival.Object
		}
	}
	return ""
}

// claimProblem returns the problem that another Tunnel has claimed the tunnel, or nil.
// The Gateway's owner reads the message, so it does not name the other Gateway.
func (f Facts) claimProblem() *Problem {
	if f.claimant() == "" {
		return nil
	}
	return problem(conditions.ReasonTunnelInUse, "Another Gateway uses the tunnel of Tunnel %s. Set tunnel.existing.id to another tunnel.", f.Object.Name)
}

// credentialsProblem returns the problem that forbids using an API token, or nil.
func (f Facts) credentialsProblem() *Problem {
	switch f.Credentials.State {
	case CredentialsUsable:
		return nil
	case CredentialsMissing:
		return problem(conditions.ReasonCredentialsMissing, "%s", f.Credentials.Message)
	case CredentialsWrongAccount:
		return problem(conditions.ReasonWrongAccount, "The tunnel is in account %s, but the controller's API token belongs to another account. "+
			"Set spec.account in the GatewayClass's TunnelConfiguration to a Secret with a token for the tunnel's account.", f.Object.Spec.AccountID)
	default:
		return problem(conditions.ReasonKubernetesUnavailable, "Failed to %s.", strings.TrimSuffix(f.Credentials.Message, "."))
	}
}

// attempt returns the step, or a wait while the track is in backoff.
func (f Facts) attempt(track Track, step Step) Step {
	b := f.Memory.Backoffs[track]
	if wait := b.wait(f.Uptime, step.Priority); wait > 0 {
		w := waitFor(wait)
		w.Problem = b.Problem
		return w
	}
	return step
}

// attemptCall is attempt for a step that calls the Cloudflare API: it also requires
// credentials.
func (f Facts) attemptCall(track Track, step Step) Step {
	switch p := f.credentialsProblem(); {
	case p == nil:
		return f.attempt(track, step)
	case f.Credentials.State == CredentialsUnknown:
		w := waitFor(unknownRetry)
		w.Problem = p
		return w
	default:
		return blocked(p)
	}
}
