package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// refreshInterval is the minimum time between two requested reconciles for a
	// Tunnel, so that a client that changes the annotation in a loop does not use up
	// the API request budget.
	refreshInterval = 10 * time.Second
	// maxRequestLength limits an annotation value that requests something. A longer
	// value does not fit in the status.
	maxRequestLength = 1024
)

// Refresh tracks the reconcile that [v1alpha1.ReconcileAnnotation] requests.
type Refresh struct {
	// Value is the last annotation value that this process has begun to handle; empty
	// for none.
	Value string
	// Started is when this process began to handle it.
	Started Instant
	// Configuration and Connections report whether the configuration and the connectors
	// must still be read. TokenCheck.Suspect reports the same for the token.
	Configuration, Connections bool
}

// newRequest returns an annotation value that requests something, or "" if the status
// records that value already or cannot record it.
func (f Facts) newRequest(annotation, recorded string) string {
	value := f.Object.Annotations[annotation]
	if value == recorded || len(value) > maxRequestLength {
		return ""
	}
	return value
}

// requestedRefresh returns the annotation value that requests a reconcile, or "".
func (f Facts) requestedRefresh() string {
	return f.newRequest(v1alpha1.ReconcileAnnotation, f.Object.Status.Reconciled)
}

// refreshDelay returns the time until this process may begin to handle the requested
// reconcile, and whether it must still begin.
func (f Facts) refreshDelay() (time.Duration, bool) {
	if f.Object == nil {
		return 0, false
	}
	last, value := f.Memory.Refresh, f.requestedRefresh()
	if value == "" || value == last.Value {
		return 0, false
	}
	if !last.Started.IsSet() {
		return 0, true
	}
	return max(refreshInterval-last.Started.Since(f.Uptime), 0), true
}

// startRefresh returns the Memory after a reconcile was requested. It ends all backoffs
// except for rate limits, and makes the tunnel, the configuration, the
// token and the connectors due to be read. Requests that Cloudflare may still apply are
// remembered.
func (m Memory) startRefresh(f Facts) Memory {
	if delay, requested := f.refreshDelay(); !requested || delay > 0 {
		return m
	}
	for track, b := range m.Backoffs {
		if !b.rateLimited() {
			m.Backoffs[track] = Backoff{}
		}
	}
	m.Refresh = Refresh{Value: f.requestedRefresh(), Started: At(f.Uptime), Configuration: true, Connections: true}
	m.Token.Suspect = true
	m.Remote.Tunnel, m.Remote.Configuration.NextRead, m.Remote.Connections.Read = RemoteTunnel{}, 0, Instant{}
	return m
}

// wakeForRefresh returns the step. If the step waits longer than until the requested
// reconcile may begin, it waits until then.
func (f Facts) wakeForRefresh(step Step) Step {
	delay, requested := f.refreshDelay()
	if !requested || delay == 0 || !step.Ends() || step.Action == Wait && step.Delay <= delay {
		return step
	}
	step.Action, step.Delay = Wait, delay
	return step
}

// refreshConnections lists the connectors if a requested reconcile needs the list.
func refreshConnections(f Facts) Step {
	if !f.Memory.Refresh.Connections || f.Object.Status.TunnelID == "" {
		return Step{}
	}
	return f.attemptCall(TrackTunnel, Step{Action: ListConnections, Priority: provider.PriorityDrift})
}

// refreshed reports whether the requested reconcile is complete: everything was read
// and the desired configuration is in effect, or a user must act first. If the Gateway
// is gone, it is complete after the next attempt to continue the retirement.
func (f Facts) refreshed() bool {
	value := f.requestedRefresh()
	if value == "" || value != f.Memory.Refresh.Value || !Decide(f).Ends() {
		return false
	}
	if f.objectProblem() != nil {
		return true
	}
	switch f.lifecycle() {
	case lifecycleServing:
		return f.servingRefreshed()
	case lifecycleMissing, lifecycleRetiring:
		return true
	default: // lifecycleUnknown, lifecycleReturned: the next state decides what to read
		return false
	}
}

// servingRefreshed is refreshed for a Gateway that exists.
func (f Facts) servingRefreshed() bool {
	outstanding := f.Memory.Refresh
	if f.Object.Spec.Paused {
		return !f.readsWhilePaused() || !outstanding.Configuration && !outstanding.Connections
	}
	for _, r := range []rule{applySpec, recordGateway, claim, locate} {
		if step := r(f); step.Action != "" {
			return requiresAction(step)
		}
	}
	return f.configurationRefreshed() &&
		(!f.Memory.Token.Suspect && f.Token.State == TokenPresent || requiresAction(ensureToken(f))) &&
		(!outstanding.Connections || requiresAction(refreshConnections(f)))
}

// configurationRefreshed reports whether the configuration was read and is the desired one,
// or a user must act first.
func (f Facts) configurationRefreshed() bool {
	switch {
	case f.Desired == nil || f.Desired.Configuration == nil:
		return true // there is nothing to compare with
	case f.Memory.Refresh.Configuration:
		return requiresAction(nextRead(f))
	default:
		return f.inEffect() || requiresAction(applyConfiguration(f))
	}
}

// requiresAction reports whether the step waits for a user.
func requiresAction(step Step) bool {
	return step.Ends() && step.Problem != nil && step.Problem.RequiresAction
}
