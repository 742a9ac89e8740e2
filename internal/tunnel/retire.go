package tunnel

import (
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// unknownRetry is how often something of unknown state is read again.
	unknownRetry = 10 * time.Second
	// stopCheck is how often the pods of stopping connectors are looked at.
	stopCheck = 2 * time.Second
	// stopMargin is how much longer than its grace period a connector may take.
	stopMargin = time.Minute
	// freshTunnel is how old the answer about a tunnel may be to delete it.
	freshTunnel = 30 * time.Second
	// connectionsRetry is how often connections that prevent a deletion are listed.
	connectionsRetry = 30 * time.Second
)

// keep leaves everything as it is while the Gateway is missing for less than the
// retirement delay, or its state is unknown.
func keep(f Facts) Step {
	if step := finishToken(f); step.Action != "" && !step.Ends() {
		return step
	}
	w := waitFor(unknownRetry)
	w.Problem = problem(ReasonGatewayUnknown, "The API server does not say whether Gateway %s exists, so its tunnel is kept. "+
		"Check the controller's permissions, the CRDs of the Gateway API and the GatewayClass.", f.Name)
	if since := f.Memory.MissingSince; since.IsSet() {
		w = waitFor(f.retirementDelay() - since.since(f.Uptime))
		w.Problem = problem(ReasonGatewayMissing, "Gateway %s is gone. Its tunnel is kept for %s in case the Gateway returns.", f.Name, f.retirementDelay())
	}
	return w
}

// retire decides about the Tunnel of a Gateway that is gone for good. Each rule
// must be satisfied before the next one counts.
func retire(f Facts) Step {
	for _, r := range []rule{stayPaused, withdraw, stopConnectors, waitForPods, retain, leaveRivals, deleteTunnel} {
		if step := r(f); step.Action != "" {
			return step
		}
	}
	return Step{Action: DeleteObject}
}

func (f Facts) retains() bool { return f.Object.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain }

// stayPaused keeps the connectors of a Gateway that was paused when it was
// deleted, until an administrator decides.
func stayPaused(f Facts) Step {
	if !f.Object.Spec.Paused || f.retains() {
		return Step{}
	}
	return blocked(problem(ReasonPaused, "Gateway %s was deleted while it was paused, so its tunnel keeps serving. "+
		"Set spec.paused of Tunnel %s to false to delete the tunnel, or spec.deletionPolicy to Retain to keep it.", f.Name, f.Object.Name))
}

// withdraw removes the status entries on routes and ListenerSets. A failure
// delays nothing.
func withdraw(f Facts) Step {
	if f.Memory.StatusesWithdrawn || f.Memory.Backoffs[TrackStatuses].wait(f.Uptime, provider.PriorityChange) > 0 {
		return Step{}
	}
	step := Step{Action: WithdrawStatuses}
	if f.Memory.Backoffs[TrackStatuses].Failures == 0 {
		step.Event = newEvent(EventTunnelRetiring, "Gateway %s is gone, so Tunnel %s retires.", f.Name, f.Object.Name)
	}
	return step
}

// stopConnectors deletes what runs the connectors.
func stopConnectors(f Facts) Step {
	stopped := f.Memory.ConnectorsStopped
	switch {
	case stopped.IsSet() && !f.Connectors.Exist:
		return Step{}
	case stopped.IsSet() && stopped.since(f.Uptime) < stopCheck:
		return f.stopping()
	}
	return f.attempt(TrackConnectors, Step{Action: StopConnectors})
}

// stopping waits for connectors that stop.
func (f Facts) stopping() Step {
	w := waitFor(stopCheck)
	w.Problem = problem(ReasonConnectorsStopping, "The tunnel is deleted when its connectors have stopped; %d are left.", f.Connectors.Pods)
	return w
}

// waitForPods waits until the connectors have stopped. After their grace period
// and a margin, only the connections that Cloudflare reports count.
func waitForPods(f Facts) Step {
	if f.Connectors.Pods == 0 || f.Memory.ConnectorsStopped.since(f.Uptime) >= f.Connectors.GracePeriod+stopMargin {
		return Step{}
	}
	return f.stopping()
}

// retain keeps the tunnel at Cloudflare, and the object as its record.
func retain(f Facts) Step {
	switch left := f.Memory.Backoffs[TrackStatuses].wait(f.Uptime, provider.PriorityChange); {
	case !f.retains():
		return Step{}
	case f.adopts() && f.Object.Status.Configuration.Hash == "":
		return Step{Action: DeleteObject} // the tunnel never served this Gateway
	case !f.Memory.StatusesWithdrawn && left > 0:
		return waitFor(left)
	default:
		return Step{Action: None}
	}
}

// leaveRivals leaves a tunnel to the other Tunnels that use it or ask for it.
func leaveRivals(f Facts) Step {
	if len(f.contenders()) == 0 {
		return Step{}
	}
	return Step{Action: DeleteObject}
}

// deleteTunnel deletes the tunnel at Cloudflare, or makes sure that there is
// none. The zero Step means that there is none.
func deleteTunnel(f Facts) Step {
	status, remote := f.Object.Status, f.Memory.Remote
	switch {
	case remote.Tunnel.Presence == Absent && !f.createPending():
		return Step{}
	case f.adopts() && status.Configuration.Hash == "":
		return Step{} // the controller never changed anything of the tunnel
	case status.TunnelID == "":
		return f.findLeftover()
	case remote.Tunnel.Presence != Present || string(remote.Tunnel.ID) != status.TunnelID:
		return f.request(TrackTunnel, Step{Action: ReadTunnel, Priority: provider.PriorityDeletion})
	}
	if p := f.deletionProblem(); p != nil {
		return f.readAgain(p, connectionsRetry, provider.PriorityDeletion)
	}
	if step := f.clearConnections(); step.Action != "" {
		return step
	}
	return f.deleting(Step{Action: Delete, Event: newEvent(EventTunnelDeleted, "The controller deletes tunnel %s (%s).", remote.Tunnel.Name, status.TunnelID)})
}

// createPending reports whether a tunnel may have appeared since Cloudflare was
// asked, or may still appear.
func (f Facts) createPending() bool {
	return f.Object.Status.Creating && !f.Memory.Created.settled(f.Memory.Remote.Tunnel.Read)
}

// findLeftover finds the tunnel of a Gateway whose ID was not recorded.
func (f Facts) findLeftover() Step {
	found := f.Memory.Remote.Tunnel
	left := provider.CallTimeout - f.Memory.Created.since(f.Uptime)
	switch {
	case f.Object.Status.Creating && left > 0 && found.Presence != Present:
		return waitFor(left)
	case found.Presence == Present && found.Local:
		return Step{} // the controller creates no such tunnel, so it is another's
	case found.Presence == Present:
		step := f.recordTunnel()
		step.Event = nil
		return step
	}
	return f.request(TrackTunnel, Step{Action: FindByName, Priority: provider.PriorityDeletion})
}

// deletionProblem returns why the tunnel must not be deleted, or nil.
func (f Facts) deletionProblem() *Problem {
	found := f.Memory.Remote.Tunnel
	switch {
	case found.Local:
		return problem(ReasonLocallyManaged, "Tunnel %s is locally managed, so it is not deleted. "+
			"Set spec.deletionPolicy of Tunnel %s to Retain, or delete the tunnel in the Cloudflare dashboard.", found.ID, f.Object.Name)
	case strings.HasPrefix(found.Name, NamePrefix(f.Options.ClusterID)) && found.Name != f.Object.Spec.Name:
		return problem(ReasonNameReserved, "Tunnel %s has the name of another Gateway's tunnel, so it is not deleted. "+
			"Rename it, or set spec.deletionPolicy of Tunnel %s to Retain.", found.ID, f.Object.Name)
	}
	return nil
}

// clearConnections lists the connections and removes those of connectors that
// Cloudflare reports as no longer connected, one connector at a time. The
// controller's pods are gone, so a live connector is another's.
func (f Facts) clearConnections() Step {
	connections := f.Memory.Remote.Connections
	if connections.stale(f.Uptime) {
		return f.request(TrackTunnel, Step{Action: ListConnections, Priority: provider.PriorityDeletion})
	}
	if n := f.connected(); n > 0 {
		w := waitFor(connectionsRetry)
		if n <= f.Connectors.Pods {
			w.Problem = problem(ReasonConnectorsStopping, "The tunnel is deleted when its connectors have stopped; %d pods are left and %d connectors are connected. "+
				"Delete the pods if their node is gone.", f.Connectors.Pods, n)
			return w
		}
		w.Problem = problem(ReasonConnectorsConnected, "%d connectors are still connected to tunnel %s, although those of this controller have stopped, so the tunnel is not deleted. "+
			"Stop them, or set spec.deletionPolicy of Tunnel %s to Retain.", n, f.Object.Status.TunnelID, f.Object.Name)
		return w
	}
	if len(connections.Connectors) == 0 {
		return Step{}
	}
	return f.deleting(Step{Action: Disconnect, Connector: connections.Connectors[0].ID})
}

// deleting records that the deletion has begun, before the step. A tunnel that was
// read long ago is read again: it may have become locally managed, or got another
// name.
func (f Facts) deleting(step Step) Step {
	if f.Memory.Remote.Tunnel.Read.since(f.Uptime) > freshTunnel {
		return f.request(TrackTunnel, Step{Action: ReadTunnel, Priority: provider.PriorityDeletion})
	}
	step.Priority = provider.PriorityDeletion
	if !f.Object.Status.Deleting {
		step.Record = f.record(func(s *v1alpha1.TunnelStatus) { s.Deleting = true })
	}
	return f.request(TrackTunnel, step)
}

func deletionPending() *Problem {
	return problem(ReasonDeletionPending, "The tunnel of an earlier Gateway of this name is being deleted.")
}

// returned decides about a Gateway that has returned after the deletion of its
// tunnel had begun. When the delete has failed, one call timeout has passed since
// the last attempt and a live list shows the tunnel, the Tunnel resumes.
func returned(f Facts) Step {
	pending := deletionPending()
	found := f.Memory.Remote.Tunnel
	if found.Presence == Absent {
		return Step{Action: DeleteObject}
	}
	if left := provider.CallTimeout - f.Memory.Deleted.since(f.Uptime); left > 0 {
		w := waitFor(left)
		w.Problem = pending
		return w
	}
	if found.Presence == Present && f.Memory.Deleted.settled(found.Read) {
		return Step{
			Action: Record, Record: f.record(func(s *v1alpha1.TunnelStatus) { s.Deleting = false }),
			Event: newEvent(EventTunnelResumed, "Tunnel %s was not deleted and serves this Gateway again.", f.Object.Status.TunnelID),
		}
	}
	step := f.request(TrackTunnel, Step{Action: ReadTunnel})
	if step.Ends() && step.Problem == nil {
		step.Problem = pending
	}
	return step
}
