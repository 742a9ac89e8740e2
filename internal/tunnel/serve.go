package tunnel

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// rule decides about one concern. The zero Step means that nothing is to be done
// about it.
type rule func(Facts) Step

// serve decides about the Tunnel of a Gateway that exists. Each of the first
// rules must be satisfied before the next one counts; the last ones are
// independent of each other.
func serve(f Facts) Step {
	for _, r := range []rule{applySpec, recordGateway, pause, claim, locate} {
		if step := r(f); step.Action != "" {
			return step
		}
	}
	return firstOf(f, configuration, token, connectors, rotation)
}

// firstOf returns the first step of the rules that does something; else the
// earliest wait of them, with the first problem.
func firstOf(f Facts, rules ...rule) Step {
	end := Step{Action: None}
	for _, r := range rules {
		step := r(f)
		switch {
		case step.Action == "":
			continue
		case !step.Ends():
			return step
		case step.Action == Wait && (end.Action == None || step.For < end.For):
			end.Action, end.For = Wait, step.For
		}
		if end.Problem == nil {
			end.Problem = step.Problem
		}
	}
	return end
}

// applySpec brings the spec up to date.
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
		return Step{} // whether a new Gateway's identity agrees shows when its settings are valid
	}
	return Step{Action: Record, Record: f.record(func(s *v1alpha1.TunnelStatus) { s.GatewayUID = string(f.Gateway.UID) })}
}

// PausedMessage is the message of [ReasonPaused] while the Gateway exists.
const PausedMessage = "The Gateway is paused, so changes are computed and not pushed. Remove the annotation " + v1alpha1.PausedAnnotation + " to resume."

func pausedProblem() *Problem { return problem(ReasonPaused, PausedMessage) }

// pause stops every change at Cloudflare and to the connectors. The
// configuration is still read, to know whether it is in effect.
func pause(f Facts) Step {
	switch {
	case !f.Object.Spec.Paused:
		return Step{}
	case f.Object.Status.Contested:
		return Step{Action: Record, Record: f.record(func(s *v1alpha1.TunnelStatus) { s.Contested = false })}
	}
	stop := pausedProblem()
	if f.Object.Status.TunnelID == "" || f.Desired == nil || f.Desired.Configuration == nil || f.claimProblem() != nil || f.credentialsProblem() != nil {
		return blocked(stop)
	}
	step := firstOf(f, finishToken, nextRead)
	if step.Ends() {
		step.Problem = stop
	}
	return step
}

// claim makes sure that no other Tunnel has the claim on the tunnel. For an
// existing tunnel the Tunnels are listed, the record is written, and the Tunnels
// are listed again before anything is asked of Cloudflare.
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
		return waitFor(firstRetry)
	}
	return f.attempt(TrackObject, Step{Action: Claim, Record: f.record(func(s *v1alpha1.TunnelStatus) { s.TunnelID = id })})
}

// contenders returns the rivals that count. A tunnel that has the name of its
// Gateway belongs to that Gateway, also when others of this controller ask for
// it.
func (f Facts) contenders() []Rival {
	if f.adopts() {
		return f.Rivals
	}
	return slices.DeleteFunc(slices.Clone(f.Rivals), func(r Rival) bool { return !r.Recorded || !r.OtherController })
}

// claimant returns the name of another Tunnel that has the claim on the tunnel,
// or "": the Tunnel that has recorded it wins; if both or neither have, the older
// one. A Tunnel of another controller that records it always wins, and so does
// the Tunnel of the Gateway whose name the tunnel has.
func (f Facts) claimant() string {
	recorded := f.Object.Status.TunnelID != ""
	for _, rival := range f.contenders() {
		if rival.Recorded && (!recorded || rival.OtherController || rival.ByName) || rival.Recorded == recorded && rival.Older {
			return rival.Object
		}
	}
	return ""
}

// claimProblem returns why another Tunnel has the claim on the tunnel, or nil.
// Its message is for the owner of the Gateway and does not name another one.
func (f Facts) claimProblem() *Problem {
	if f.claimant() == "" {
		return nil
	}
	return problem(ReasonTunnelInUse, "The tunnel of Tunnel %s is in use by another Gateway. Name another tunnel in tunnel.existing.id.", f.Object.Name)
}

// credentialsProblem returns why there is no API token, or nil.
func (f Facts) credentialsProblem() *Problem {
	switch f.Credentials.State {
	case CredentialsUsable:
		return nil
	case CredentialsMissing:
		return problem(ReasonCredentialsMissing, "%s", f.Credentials.Message)
	case CredentialsWrongAccount:
		return problem(ReasonWrongAccount, "The tunnel is in account %s, and the controller's API token is for another account. "+
			"Name the Secret with a token for that account in spec.account of the GatewayClass's TunnelConfiguration.", f.Object.Spec.AccountID)
	default:
		return problem(ReasonKubernetes, "The Secret with the API token could not be read: %s", f.Credentials.Message)
	}
}

// attempt returns the step of a track, or the wait until it may be tried again.
func (f Facts) attempt(track Track, step Step) Step {
	b := f.Memory.Backoffs[track]
	if wait := b.wait(f.Uptime, step.Priority); wait > 0 {
		w := waitFor(wait)
		w.Problem = b.Problem
		return w
	}
	return step
}

// request is attempt for a step that calls Cloudflare.
func (f Facts) request(track Track, step Step) Step {
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
