package tunnel

import (
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// unknownRetry is how often an unknown state is read again.
	unknownRetry = 10 * time.Second
	// stopInterval is how often the pods are checked while connectors stop.
	stopInterval = 2 * time.Second
	// stopMargin is how long a connector may take to stop after its grace period.
	stopMargin = time.Minute
	// maxTunnelAge is how old the last read of a tunnel may be when it is deleted.
	maxTunnelAge = 30 * time.Second
	// connectionsRetry is how often connections that prevent a deletion are listed.
	connectionsRetry = 30 * time.Second
)

// waitForGateway changes nothing while the retirement delay has not passed, or while it
// is unknown whether the Gateway exists.
func waitForGateway(f Facts) Step {
	if step := finishToken(f); step.Action != "" && !step.Ends() {
		return step
	}
	w := waitFor(unknownRetry)
	w.Problem = problem(conditions.ReasonGatewayUnknown, "The controller cannot determine whether Gateway %s exists, so its tunnel keeps serving. "+
		"Check the controller's permissions, the Gateway API CRDs and the GatewayClass.", f.Name)
	if since := f.Memory.MissingSince; since.IsSet() {
		w = waitFor(f.retirementDelay() - since.Since(f.Uptime))
		w.Problem = problem(conditions.ReasonGatewayMissing, "Gateway %s is gone. Its tunnel keeps serving for %s in case the Gateway is created again.", f.Name, f.retirementDelay())
	}
	return w
}

// retire returns the next step for a Tunnel whose retirement delay has passed. The rules
// run in order: each must be satisfied before the next rule runs.
func retire(f Facts) Step {
	for _, r := range []rule{keepPaused, withdrawStatuses, stopConnectors, waitForPods, retain, releaseRecords, deleteTunnel, releaseApplications} {
		if step := r(f); step.Action != "" {
			return step
		}
	}
	return Step{Action: DeleteObject}
}

func (f Facts) retains() bool { return f.Object.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain }

// keepPaused keeps the connectors if the Gateway was deleted while it was paused, until
// an administrator changes the Tunnel's spec.
func keepPaused(f Facts) Step {
	if !f.Object.Spec.Paused || f.retains() {
		return Step{}
	}
	return blocked(problem(conditions.ReasonPaused, "Gateway %s was deleted while it was paused, so its tunnel keeps serving. "+
		"Set spec.paused of Tunnel %s to false to delete the tunnel, or spec.deletionPolicy to Retain to keep it.", f.Name, f.Object.Name))
}

// withdrawStatuses removes the status entries from routes and ListenerSets. A failure does
// not delay the other rules.
func withdrawStatuses(f Facts) Step {
	if f.Memory.StatusesWithdrawn || f.Memory.Backoffs[TrackStatuses].wait(f.Uptime, provider.PriorityChange) > 0 {
		return Step{}
	}
	step := Step{Action: WithdrawStatuses}
	if f.Memory.Backoffs[TrackStatuses].Failures == 0 {
		step.Event = newEvent(conditions.EventTunnelRetiring, "Gateway %s is gone, so Tunnel %s retires.", f.Name, f.Object.Name)
	}
	return step
}

// stopConnectors deletes the objects that run the connectors.
func stopConnectors(f Facts) Step {
	stopped := f.Memory.ConnectorsStopped
	switch {
	case stopped.IsSet() && !f.Connectors.Exist:
		return Step{}
	case stopped.IsSet() && stopped.Since(f.Uptime) < stopInterval:
		return f.waitForConnectors()
	}
	return f.attempt(TrackConnectors, Step{Action: StopConnectors})
}

// waitForConnectors waits for the connectors to stop.
func (f Facts) waitForConnectors() Step {
	w := waitFor(stopInterval)
	w.Problem = problem(conditions.ReasonConnectorsStopping, "The connectors are stopping (pods left: %d).", f.Connectors.Pods)
	return w
}

// waitForPods waits until the connectors have stopped. After their grace period and
// stopMargin, only the connections that Cloudflare lists are relevant.
func waitForPods(f Facts) Step {
	if f.Connectors.Pods == 0 || f.Memory.ConnectorsStopped.Since(f.Uptime) >= f.Connectors.GracePeriod+stopMargin {
		return Step{}
	}
	return f.waitForConnectors()
}

// retain keeps the tunnel at Cloudflare and the Tunnel object.
func retain(f Facts) Step {
	switch remaining := f.Memory.Backoffs[TrackStatuses].wait(f.Uptime, provider.PriorityChange); {
	case !f.retains():
		return Step{}
	case f.adopts() && f.Object.Status.Configuration.Hash == "":
		return Step{Action: DeleteObject} // the tunnel never served this Gateway
	case !f.Memory.StatusesWithdrawn && remaining > 0:
		return waitFor(remaining)
	default:
		return Step{Action: None}
	}
}

// deleteTunnel deletes the tunnel at Cloudflare. The zero Step means that there is no
// tunnel to delete.
func deleteTunnel(f Facts) Step {
	status, remote := f.Object.Status, f.Memory.Remote
	switch {
	case len(f.contenders()) > 0:
		return Step{} // other Tunnels record or request it
	case remote.Tunnel.Presence == Absent && !f.createPending():
		return Step{}
	case f.adopts() && status.Configuration.Hash == "":
		return Step{} // the controller never changed the tunnel
	case status.TunnelID == "":
		return f.findUnrecorded()
	case remote.Tunnel.Presence != Present || string(remote.Tunnel.ID) != status.TunnelID:
		return f.attemptCall(TrackTunnel, Step{Action: ReadTunnel, Priority: provider.PriorityDeletion})
	}
	if p := f.deletionProblem(); p != nil {
		return f.rereadTunnel(p, connectionsRetry, provider.PriorityDeletion)
	}
	if step := f.removeConnections(); step.Action != "" {
		return step
	}
	return f.withDeletionRecord(Step{Action: Delete, Event: newEvent(conditions.EventTunnelDeleted, "The controller deletes tunnel %s (%s).", remote.Tunnel.Name, status.TunnelID)})
}

// createPending reports whether a tunnel may have been created after the last read, or may
// still be created.
func (f Facts) createPending() bool {
	return f.Object.Status.Creating && !f.Memory.Created.settled(f.Memory.Remote.Tunnel.Read)
}

// findUnrecorded finds a Gateway's tunnel if its ID was not recorded.
func (f Facts) findUnrecorded() Step {
	found := f.Memory.Remote.Tunnel
	remaining := provider.CallTimeout - f.Memory.Created.Since(f.Uptime)
	switch {
	case f.Object.Status.Creating && remaining > 0 && found.Presence != Present:
		return waitFor(remaining)
	case found.Presence == Present && found.Local:
		return Step{} // this controller does not create locally managed tunnels
	case found.Presence == Present:
		step := f.recordTunnel()
		step.Event = nil
		return step
	}
	return f.attemptCall(TrackTunnel, Step{Action: FindByName, Priority: provider.PriorityDeletion})
}

// deletionProblem returns the problem that forbids deleting the tunnel, or nil.
func (f Facts) deletionProblem() *Problem {
	found := f.Memory.Remote.Tunnel
	switch {
	case found.Local:
		return problem(conditions.ReasonLocallyManaged, "Tunnel %s is locally managed, so the controller does not delete it. "+
			"Set spec.deletionPolicy of Tunnel %s to Retain, or delete the tunnel in the Cloudflare dashboard.", found.ID, f.Object.Name)
	case strings.HasPrefix(found.Name, NamePrefix(f.Options.ClusterID)) && found.Name != f.Object.Spec.Name:
		return problem(conditions.ReasonNameReserved, "Tunnel %s has the name of another Gateway's tunnel, so the controller does not delete it. "+
			"Rename the tunnel, or set spec.deletionPolicy of Tunnel %s to Retain.", found.ID, f.Object.Name)
	}
	return nil
}

// removeConnections lists the connectors and disconnects, one at a time, the connectors
// that Cloudflare lists as disconnected. If more connectors are connected than pods are
// left, this controller does not run all of them, and the deletion waits.
func (f Facts) removeConnections() Step {
	connections := f.Memory.Remote.Connections
	if connections.stale(f.Uptime) {
		return f.attemptCall(TrackTunnel, Step{Action: ListConnections, Priority: provider.PriorityDeletion})
	}
	if n := f.connectedCount(); n > 0 {
		w := waitFor(connectionsRetry)
		if n <= f.Connectors.Pods {
			w.Problem = problem(conditions.ReasonConnectorsStopping, "The connectors are stopping (pods left: %d, connected connectors: %d). "+
				"Delete the pods if their node is gone.", f.Connectors.Pods, n)
			return w
		}
		w.Problem = problem(conditions.ReasonConnectorsConnected, "Connectors that this controller does not run are connected to tunnel %s, so the controller cannot delete it (connected connectors: %d). "+
			"Stop those connectors, or set spec.deletionPolicy of Tunnel %s to Retain.", f.Object.Status.TunnelID, n, f.Object.Name)
		return w
	}
	if len(connections.Connectors) == 0 {
		return Step{}
	}
	return f.withDeletionRecord(Step{Action: Disconnect, Connector: connections.Connectors[0].ID})
}

// withDeletionRecord returns the step, with the record that the deletion has begun. If
// the last read of the tunnel is too old, it returns the step that reads the tunnel
// again: the tunnel may have become locally managed or have been renamed.
func (f Facts) withDeletionRecord(step Step) Step {
	if f.Memory.Remote.Tunnel.Read.Since(f.Uptime) > maxTunnelAge {
		return f.attemptCall(TrackTunnel, Step{Action: ReadTunnel, Priority: provider.PriorityDeletion})
	}
	step.Priority = provider.PriorityDeletion
	if !f.Object.Status.Deleting {
		step.Record = f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Deleting = true })
	}
	return f.attemptCall(TrackTunnel, step)
}

func deletionPending() *Problem {
	return problem(conditions.ReasonDeletionPending, "The controller is deleting the tunnel of a previous Gateway with this name.")
}

// resume returns the next step for a Gateway that has returned after the deletion of
// its tunnel had begun. The Tunnel resumes if the tunnel still exists one call timeout
// after the last attempt to delete it.
func resume(f Facts) Step {
	pending := deletionPending()
	found := f.Memory.Remote.Tunnel
	if found.Presence == Absent {
		return Step{Action: DeleteObject}
	}
	if remaining := provider.CallTimeout - f.Memory.Deleted.Since(f.Uptime); remaining > 0 {
		w := waitFor(remaining)
		w.Problem = pending
		return w
	}
	if found.Presence == Present && f.Memory.Deleted.settled(found.Read) {
		return Step{
			Action: Record, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Deleting = false }),
			Event: newEvent(conditions.EventTunnelResumed, "Tunnel %s was not deleted and serves this Gateway again.", f.Object.Status.TunnelID),
		}
	}
	step := f.attemptCall(TrackTunnel, Step{Action: ReadTunnel})
	if step.Ends() && step.Problem == nil {
		step.Problem = pending
	}
	return step
}
