package tunnel

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// tokenInterval is how often the token is compared with the token at Cloudflare.
	// Running connectors do not notice that the token was replaced.
	tokenInterval = 24 * time.Hour
	// maxConnectionsAge is how old a list of connections may be when it is used for
	// decisions.
	maxConnectionsAge = 10 * time.Second
	// blockedRotationInterval is how often a blocked rotation is retried.
	blockedRotationInterval = time.Minute
	// rolloutInterval is how often a connector rollout is checked. Watch events usually
	// trigger a check earlier.
	rolloutInterval = 30 * time.Second
)

// ensureToken keeps the token Secret up to date with the tunnel's token.
func ensureToken(f Facts) Step {
	if f.Object.Status.TunnelID == "" {
		return Step{}
	}
	step := f.readToken()
	switch f.Token.State {
	case TokenNameConflict:
		secret := types.NamespacedName{Namespace: f.Object.Namespace, Name: ConnectorName(f.Name)}
		return blocked(problem(conditions.ReasonObjectTaken, "%s", Sentence(ObjectTaken(f.Object, "Secret", secret).Error())))
	case TokenUnknown:
		w := waitFor(minBackoff)
		w.Problem = problem(conditions.ReasonTokenFailed, "Failed to read Secret %s/%s with the tunnel token. Check the controller's permissions.", f.Object.Namespace, ConnectorName(f.Name))
		return w
	case TokenPresent:
		if !f.tokenReadDue() {
			return Step{}
		}
		if f.Object.Status.Token.Phase == "" {
			step.Priority = provider.PriorityDrift
		}
	default: // TokenMissing
	}
	return f.afterRotation(step)
}

// afterRotation reads a rotated token only once the recorded time of the rotation, a whole
// second, has passed: the connectors with the new token then connect later than that, and
// keep their connections.
func (f Facts) afterRotation(read Step) Step {
	if rotated := f.Memory.Token.Rotated; rotated.IsSet() {
		if remaining := f.recordedTime(rotated).Sub(f.Clock); remaining > 0 {
			return waitFor(remaining)
		}
	}
	return f.attemptCall(TrackToken, read)
}

// tokenReadDue reports whether the token must be read from Cloudflare although the Secret
// contains one.
func (f Facts) tokenReadDue() bool {
	check := f.Memory.Token
	if check.Suspect || check.Pending {
		return true
	}
	if !check.NextCheck.IsSet() {
		return f.Uptime >= tokenInterval-f.jitter(tokenInterval/2)
	}
	return f.Uptime >= check.NextCheck.at
}

// rotateToken rotates the token on demand and at the interval in the settings. Each
// phase is recorded and continues after a crash. If the controller has not configured
// the tunnel, it does not rotate the token, because the tunnel may be in use for
// another purpose.
func rotateToken(f Facts) Step {
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

// finishToken reads the token from a rotation that has begun, even while other changes
// are stopped: Cloudflare may accept only the new token from connectors that connect
// now.
func finishToken(f Facts) Step {
	check := f.Memory.Token
	if f.Object.Status.Token.Phase != v1alpha1.TokenRotating || f.Token.State == TokenNameConflict || !check.Pending && check.NextCheck.IsSet() {
		return Step{}
	}
	return f.afterRotation(f.readToken())
}

func (f Facts) readToken() Step {
	return Step{Action: ReadToken, ReadInterval: tokenInterval - f.jitter(tokenInterval/2)}
}

// startRotation starts a rotation that was requested or is due.
func startRotation(f Facts) Step {
	recorded := f.Object.Status.Token
	if recorded.RotatedAt == nil {
		return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.RotatedAt = f.now() })}
	}
	onDemand := f.rotationRequested()
	remaining, scheduled := f.untilScheduled()
	if !onDemand && (!scheduled || remaining > 0) {
		if scheduled {
			return waitFor(remaining)
		}
		return Step{}
	}
	if step := f.rotationBlocked(); step.Action != "" {
		return step
	}
	return f.attemptCall(TrackToken, Step{Action: RotateToken, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase = v1alpha1.TokenRotating
		if onDemand {
			t.Requested = f.Object.Annotations[v1alpha1.RotateTokenAnnotation]
		}
	})})
}

// rotationRequested reports whether the Tunnel's annotation requests a rotation.
func (f Facts) rotationRequested() bool {
	return f.newRequest(v1alpha1.RotateTokenAnnotation, f.Object.Status.Token.Requested) != ""
}

// untilScheduled returns the time until the next scheduled rotation, and whether rotation
// is scheduled. Only one Tunnel rotates at a time.
func (f Facts) untilScheduled() (time.Duration, bool) {
	if f.Desired == nil || f.Desired.TokenRotation == 0 || f.Object.Status.Token.RotatedAt == nil {
		return 0, false
	}
	const jitter = 10 // a tenth of the interval
	interval := f.Desired.TokenRotation + f.jitter(f.Desired.TokenRotation/jitter)
	remaining := interval - f.Clock.Sub(f.Object.Status.Token.RotatedAt.Time)
	if remaining <= 0 && f.OtherRotating {
		remaining = blockedRotationInterval
	}
	return remaining, true
}

// rotationBlocked returns the step that waits while the token cannot be rotated, or the
// zero Step.
func (f Facts) rotationBlocked() Step {
	cause := ""
	surplus, remaining := f.surplus()
	switch {
	case f.Desired == nil:
		cause = "the Gateway's settings are not valid; fix them"
	case !f.Desired.RunConnectors:
		cause = "connector.enabled is false, so the controller cannot replace the connectors"
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.attemptCall(TrackTunnel, Step{Action: ListConnections, Priority: provider.PriorityDrift})
	case surplus && remaining > 0:
		return waitFor(remaining)
	case surplus:
		cause = "connectors that this controller does not run are connected to the tunnel; stop them"
	default:
		return Step{}
	}
	w := waitFor(blockedRotationInterval)
	w.Problem = problem(conditions.ReasonRotationBlocked, "The controller cannot rotate the token: %s.", cause)
	return w
}

// surplus reports whether Cloudflare lists more live connectors than pods run, and for
// how long a stopped pod's connector can be the cause.
func (f Facts) surplus() (surplus bool, remaining time.Duration) {
	if f.connectedCount() <= f.Connectors.Pods {
		return false, 0
	}
	if f.Connectors.Pods == 0 {
		return true, 0
	}
	return true, max(f.Connectors.GracePeriod-f.Memory.SurplusSince.Since(f.Uptime), 0)
}

// stale reports whether the list is too old for decisions.
func (c RemoteConnections) stale(uptime time.Duration) bool {
	return !c.Read.IsSet() || c.Read.Since(uptime) > maxConnectionsAge
}

// continueRotating retries a rotation that got no response or that a previous process
// started, and waits until the new token is in the Secret. It waits before it retries,
// because a PATCH that Cloudflare applies after the retry would invalidate the token in
// the Secret.
func continueRotating(f Facts) Step {
	switch {
	case !f.Memory.Token.Rotated.IsSet():
		if remaining := provider.CallTimeout - f.Memory.Token.Unanswered.Since(f.Uptime); remaining > 0 {
			w := waitFor(remaining)
			w.Problem = f.Memory.Backoffs[TrackToken].Problem
			return w
		}
		return f.attemptCall(TrackToken, Step{Action: RotateToken})
	case f.Memory.Token.Pending:
		return Step{} // rule ensureToken reads the token
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) {
		t.Phase, t.RotatedAt = v1alpha1.TokenRolling, f.recordedTime(f.Memory.Token.Rotated)
	})}
}

// continueRolling waits until all connectors run with the new token.
func continueRolling(f Facts) Step {
	switch {
	case f.Desired == nil || !f.Connectors.Current || !f.Connectors.rolledOut():
		return waitFor(rolloutInterval)
	case f.Memory.Remote.Connections.stale(f.Uptime):
		return f.attemptCall(TrackTunnel, Step{Action: ListConnections})
	}
	return Step{Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = v1alpha1.TokenDisconnecting })}
}

// disconnectRotated disconnects the connectors that connected with the old token, including
// live connectors.
func disconnectRotated(f Facts) Step {
	if f.Memory.Remote.Connections.stale(f.Uptime) {
		return f.attemptCall(TrackTunnel, Step{Action: ListConnections})
	}
	since := f.Object.Status.Token.RotatedAt
	i := slices.IndexFunc(f.Memory.Remote.Connections.Connectors, func(c provider.Connector) bool { return c.ConnectedAt.Before(since.Time) })
	if i >= 0 {
		return f.attemptCall(TrackTunnel, Step{Action: Disconnect, Connector: f.Memory.Remote.Connections.Connectors[i].ID})
	}
	return Step{
		Action: Record, Record: f.tokenRecord(func(t *v1alpha1.TokenStatus) { t.Phase = "" }),
		Event: newEvent(conditions.EventTokenRotated, "The controller rotated the token of tunnel %s, and disconnected the connectors with the old token.", f.Object.Status.TunnelID),
	}
}

func (f Facts) tokenRecord(change func(*v1alpha1.TokenStatus)) *v1alpha1.TunnelStatus {
	return f.statusWith(func(s *v1alpha1.TunnelStatus) { change(&s.Token) })
}

// recordedTime returns an Instant as wall clock time, rounded up to whole seconds: a
// connector that connected before it has the old token.
func (f Facts) recordedTime(i Instant) *metav1.Time {
	t := metav1.NewTime(f.Clock.Add(time.Second - time.Nanosecond - i.Since(f.Uptime)).Truncate(time.Second))
	return &t
}

// now returns the wall clock time in whole seconds, as in records.
func (f Facts) now() *metav1.Time {
	now := metav1.NewTime(f.Clock.Truncate(time.Second))
	return &now
}
