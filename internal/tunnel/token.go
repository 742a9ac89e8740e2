package tunnel

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// tokenInterval is how often Cloudflare is asked for a token that nothing seems
	// to be wrong with: running connectors do not notice that it was replaced.
	tokenInterval = 24 * time.Hour
	// freshConnections is how old a list of connections may be to act on it.
	freshConnections = 10 * time.Second
	// blockedRotation is how often a blocked rotation is looked at.
	blockedRotation = time.Minute
	// rolloutCheck is how often a rollout of connectors is looked at; its events
	// come earlier.
	rolloutCheck = 30 * time.Second
)

// token keeps the tunnel's token in its Secret.
func token(f Facts) Step {
	if f.Object.Status.TunnelID == "" {
		return Step{}
	}
	step := Step{Action: ReadToken, Interval: tokenInterval - f.spread(tokenInterval/2)}
	switch f.Token.State {
	case TokenTaken:
		return blocked(problem(ReasonObjectTaken, "A Secret with the name of the tunnel's token Secret exists and does not belong to Tunnel %s. Delete it.", f.Object.Name))
	case TokenUnknown:
		w := waitFor(firstRetry)
		w.Problem = problem(ReasonTokenFailed, "The Secret with the tunnel's token could not be read.")
		return w
	case TokenPresent:
		if !f.tokenDue() {
			return Step{}
		}
		if f.Object.Status.Token.Phase == "" {
			step.Priority = provider.PriorityDrift
		}
	}
	return f.request(TrackToken, step)
}

// tokenDue reports whether Cloudflare is to be asked for the token although the
// Secret holds one.
func (f Facts) tokenDue() bool {
	check := f.Memory.Token
	if check.Suspect || check.Pending {
		return true
	}
	if !check.AskAgain.Happened() {
		return f.Uptime >= tokenInterval-f.spread(tokenInterval/2)
	}
	return f.Uptime >= check.AskAgain.at
}

// rotation rotates the token: on demand, and at the interval of the settings.
// Each phase is recorded, and continued after a crash.
func rotation(f Facts) Step {
	if f.Object.Status.TunnelID == "" || f.Token.State != TokenPresent {
		return Step{}
	}
	switch f.Object.Status.Token.Phase {
	case v1alpha1.TokenRotating:
		return continueRotating(f)
	case v1alpha1.TokenRolling:
		return continueRolling(f)
	case v1alpha1.TokenDisconnecting:
		return disconnectRotated(f)
	default:
		return startRotation(f)
	}
}

// startRotation begins a rotation that was asked for or is due.
func startRotation(f Facts) Step {
	recorded := f.Object.Status.Token
	if recorded.RotatedAt == nil {
		return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.RotatedAt = f.now() })}
	}
	requested := f.Object.Annotations[v1alpha1.RotateTokenAnnotation]
	onDemand := requested != "" && requested != recorded.Requested
	left, scheduled := f.untilScheduled()
	if !onDemand && (!scheduled || left > 0) {
		if scheduled {
			return waitFor(left)
		}
		return Step{}
	}
	if step := f.rotationBlocked(onDemand); step.Action != "" {
		return step
	}
	return f.request(TrackToken, Step{Action: RotateToken, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase = v1alpha1.TokenRotating
		if onDemand {
			t.Requested = requested
		}
	})})
}

// untilScheduled returns the time until the next scheduled rotation. One Tunnel
// rotates at a time.
func (f Facts) untilScheduled() (time.Duration, bool) {
	if f.Desired == nil || f.Desired.TokenRotation == 0 {
		return 0, false
	}
	const jitter = 10 // a tenth
	interval := f.Desired.TokenRotation + f.spread(f.Desired.TokenRotation/jitter)
	left := interval - f.Clock.Sub(f.Object.Status.Token.RotatedAt.Time)
	if left <= 0 && f.OtherRotates {
		left = blockedRotation
	}
	return left, true
}

// rotationBlocked returns the step that waits while the token cannot be rotated,
// or the zero Step.
func (f Facts) rotationBlocked(onDemand bool) Step {
	why := ""
	switch {
	case f.Desired == nil:
		why = "the settings of the Gateway are not valid"
	case !f.Desired.RunConnectors:
		why = "connector.enabled is false, so the controller cannot replace the connectors"
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.request(TrackToken, Step{Action: ListConnections, Priority: provider.PriorityDrift})
	case f.connected() > f.Connectors.Pods:
		why = "connectors that this controller does not run are connected to the tunnel"
	default:
		return Step{}
	}
	w := waitFor(blockedRotation)
	if onDemand {
		w.Problem = problem(ReasonRotationBlocked, "The token is not rotated: %s.", why)
	}
	return w
}

// stale reports whether the list is too old to act on it.
func (c RemoteConnections) stale(uptime time.Duration) bool {
	return !c.Read.Happened() || c.Read.since(uptime) > freshConnections
}

// continueRotating repeats the rotation that an earlier process began, and waits
// until the new token is in the Secret.
func continueRotating(f Facts) Step {
	switch {
	case !f.Memory.Token.Rotated.Happened():
		return f.request(TrackToken, Step{Action: RotateToken})
	case f.Memory.Token.Pending:
		return Step{} // rule token reads it
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase, t.RotatedAt = v1alpha1.TokenRolling, f.now()
	})}
}

// continueRolling waits until every connector runs with the new token.
func continueRolling(f Facts) Step {
	switch {
	case f.Desired == nil || !f.Connectors.Current || !f.Connectors.RolledOut:
		return waitFor(rolloutCheck)
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.request(TrackToken, Step{Action: ListConnections})
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = v1alpha1.TokenDisconnecting })}
}

// disconnectRotated disconnects the connectors that connected with the old
// token, live ones included.
func disconnectRotated(f Facts) Step {
	if f.Memory.Remote.Connections.stale(f.Uptime) {
		return f.request(TrackToken, Step{Action: ListConnections})
	}
	since := f.Object.Status.Token.RotatedAt
	i := slices.IndexFunc(f.Memory.Remote.Connections.Connectors, func(c provider.Connector) bool { return c.ConnectedAt.Before(since.Time) })
	if i >= 0 {
		return f.request(TrackToken, Step{Action: Disconnect, Connector: f.Memory.Remote.Connections.Connectors[i].ID})
	}
	return Step{
		Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = "" }),
		Event: &Event{Reason: EventTokenRotated, Message: fmt.Sprintf("The token of tunnel %s was rotated.", f.Object.Status.TunnelID)},
	}
}

func (f Facts) tokenRecord(change func(*v1alpha1.TokenStatus)) *v1alpha1.TunnelStatus {
	return f.record(func(s *v1alpha1.TunnelStatus) { change(&s.Token) })
}

// now is the wall clock as records hold it, in whole seconds.
func (f Facts) now() *metav1.Time {
	now := metav1.NewTime(f.Clock.Truncate(time.Second))
	return &now
}
