package tunnel

import (
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
	step := f.readToken()
	switch f.Token.State {
	case TokenNameConflict:
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
	default: // TokenMissing
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
	if !check.AskAgain.IsSet() {
		return f.Uptime >= tokenInterval-f.spread(tokenInterval/2)
	}
	return f.Uptime >= check.AskAgain.at
}

// rotation rotates the token: on demand, and at the interval of the settings.
// Each phase is recorded, and continued after a crash. A tunnel that the
// controller has not configured yet may serve another purpose.
func rotation(f Facts) Step {
	if f.Object.Status.Configuration.Hash == "" || f.Token.State != TokenPresent {
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

// finishToken reads the token of a rotation that has begun, also while nothing
// else is changed: Cloudflare may accept only the new one from connectors that
// connect now.
func finishToken(f Facts) Step {
	check := f.Memory.Token
	if f.Object.Status.Token.Phase != v1alpha1.TokenRotating || f.Token.State == TokenNameConflict || !check.Pending && check.AskAgain.IsSet() {
		return Step{}
	}
	return f.request(TrackToken, f.readToken())
}

// readToken is the step that reads the token.
func (f Facts) readToken() Step {
	return Step{Action: ReadToken, Interval: tokenInterval - f.spread(tokenInterval/2)}
}

// startRotation begins a rotation that was asked for or is due.
func startRotation(f Facts) Step {
	recorded := f.Object.Status.Token
	if recorded.RotatedAt == nil {
		return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.RotatedAt = f.now() })}
	}
	onDemand := f.rotationRequested()
	left, scheduled := f.untilScheduled()
	if !onDemand && (!scheduled || left > 0) {
		if scheduled {
			return waitFor(left)
		}
		return Step{}
	}
	if step := f.rotationBlocked(); step.Action != "" {
		return step
	}
	return f.request(TrackToken, Step{Action: RotateToken, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase = v1alpha1.TokenRotating
		if onDemand {
			t.Requested = f.Object.Annotations[v1alpha1.RotateTokenAnnotation]
		}
	})})
}

// DependsOnPods reports whether a decision depends on the pods of the connectors:
// while the Tunnel may retire, and when its token is to be rotated.
func DependsOnPods(f Facts) bool {
	left, scheduled := f.untilScheduled()
	return f.Gateway.State != GatewayExists || f.Memory.MissingSince.IsSet() || f.Object.Status.Token.Phase != "" ||
		f.rotationRequested() || scheduled && left <= 0
}

// rotationRequested reports whether the Tunnel's annotation asks for a rotation.
func (f Facts) rotationRequested() bool {
	requested := f.Object.Annotations[v1alpha1.RotateTokenAnnotation]
	return requested != "" && requested != f.Object.Status.Token.Requested
}

// untilScheduled returns the time until the next scheduled rotation. One Tunnel
// rotates at a time.
func (f Facts) untilScheduled() (time.Duration, bool) {
	if f.Desired == nil || f.Desired.TokenRotation == 0 || f.Object.Status.Token.RotatedAt == nil {
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
func (f Facts) rotationBlocked() Step {
	why, extra := "", f.connected() > f.Connectors.Pods
	switch {
	case f.Desired == nil:
		why = "the settings of the Gateway are not valid"
	case !f.Desired.RunConnectors:
		why = "connector.enabled is false, so the controller cannot replace the connectors"
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.request(TrackTunnel, Step{Action: ListConnections, Priority: provider.PriorityDrift})
	case extra && f.Connectors.Pods > 0 && f.Memory.SurplusSince.since(f.Uptime) < f.Connectors.GracePeriod:
		return waitFor(f.Connectors.GracePeriod - f.Memory.SurplusSince.since(f.Uptime)) // a connector of a pod that has stopped
	case extra:
		why = "connectors that this controller does not run are connected to the tunnel"
	default:
		return Step{}
	}
	w := waitFor(blockedRotation)
	w.Problem = problem(ReasonRotationBlocked, "The token is not rotated: %s.", why)
	return w
}

// stale reports whether the list is too old to act on it.
func (c RemoteConnections) stale(uptime time.Duration) bool {
	return !c.Read.IsSet() || c.Read.since(uptime) > freshConnections
}

// continueRotating repeats a rotation that was not answered, or that an earlier
// process began, and waits until the new token is in the Secret. A PATCH that
// arrives after the next one would make the token in the Secret invalid.
func continueRotating(f Facts) Step {
	switch {
	case !f.Memory.Token.Rotated.IsSet():
		if left := provider.CallTimeout - f.Memory.Token.Unanswered.since(f.Uptime); left > 0 {
			w := waitFor(left)
			w.Problem = f.Memory.Backoffs[TrackToken].Problem
			return w
		}
		return f.request(TrackToken, Step{Action: RotateToken})
	case f.Memory.Token.Pending:
		return Step{} // rule token reads it
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase, t.RotatedAt = v1alpha1.TokenRolling, f.answered(f.Memory.Token.Rotated)
	})}
}

// continueRolling waits until every connector runs with the new token.
func continueRolling(f Facts) Step {
	switch {
	case f.Desired == nil || !f.Connectors.Current || !f.Connectors.RolledOut:
		return waitFor(rolloutCheck)
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.request(TrackTunnel, Step{Action: ListConnections})
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = v1alpha1.TokenDisconnecting })}
}

// disconnectRotated disconnects the connectors that connected with the old
// token, live ones included.
func disconnectRotated(f Facts) Step {
	if f.Memory.Remote.Connections.stale(f.Uptime) {
		return f.request(TrackTunnel, Step{Action: ListConnections})
	}
	since := f.Object.Status.Token.RotatedAt
	i := slices.IndexFunc(f.Memory.Remote.Connections.Connectors, func(c provider.Connector) bool { return c.ConnectedAt.Before(since.Time) })
	if i >= 0 {
		return f.request(TrackTunnel, Step{Action: Disconnect, Connector: f.Memory.Remote.Connections.Connectors[i].ID})
	}
	return Step{
		Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = "" }),
		Event: newEvent(EventTokenRotated, "The token of tunnel %s was rotated.", f.Object.Status.TunnelID),
	}
}

func (f Facts) tokenRecord(change func(*v1alpha1.TokenStatus)) *v1alpha1.TunnelStatus {
	return f.record(func(s *v1alpha1.TunnelStatus) { change(&s.Token) })
}

// answered is the wall clock's time of an Instant, rounded up to whole seconds: a
// connector that connected before it has the old token.
func (f Facts) answered(i Instant) *metav1.Time {
	t := metav1.NewTime(f.Clock.Add(time.Second - time.Nanosecond - i.since(f.Uptime)).Truncate(time.Second))
	return &t
}

// now is the wall clock as records hold it, in whole seconds.
func (f Facts) now() *metav1.Time {
	now := metav1.NewTime(f.Clock.Truncate(time.Second))
	return &now
}
