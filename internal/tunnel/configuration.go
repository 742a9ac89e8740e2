package tunnel

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// configuration brings the desired configuration into effect. The remote one is
// read after a start, after an error and at a slow interval, and written only
// when it differs.
func configuration(f Facts) Step {
	if f.Desired == nil || f.Desired.Configuration == nil {
		return Step{}
	}
	if step := readConfiguration(f); step.Action != "" {
		return step
	}
	remote := f.Memory.Remote.Configuration
	if remote.Hash != f.Desired.Hash {
		return replace(f)
	}
	if !f.knows(f.Desired.Hash) {
		return Step{Action: Record, Record: f.record(func(s *v1alpha1.TunnelStatus) {
			s.Configuration = v1alpha1.ConfigurationRecord{Hash: f.Desired.Hash}
		})}
	}
	return waitFor(remote.ReadAgain - f.Uptime)
}

// readConfiguration reads the remote configuration when that is due.
func readConfiguration(f Facts) Step {
	remote := f.Memory.Remote.Configuration
	if remote.Known && f.Uptime < remote.ReadAgain {
		return Step{}
	}
	step := Step{Action: ReadConfiguration, Interval: f.driftInterval()}
	switch {
	case remote.Known:
		step.Priority = provider.PriorityDrift
	case f.Object.Status.Configuration.Hash == f.Desired.Hash && !f.Memory.Late.pending(f.Uptime):
		step.Priority = provider.PriorityStart
	}
	if !remote.Settled {
		step.Unsettled = []string{f.Object.Status.Configuration.Late, f.Object.Status.Configuration.Hash}
	}
	next := f.requestConfiguration(step)
	if next.Ends() && remote.Known {
		return Step{} // nothing is known to have changed; the read can wait
	}
	return next
}

// requestConfiguration is request for the configuration's track: after a
// rejection another configuration is tried at once.
func (f Facts) requestConfiguration(step Step) Step {
	if b := f.Memory.Backoffs[TrackConfiguration]; b.Hash != "" && b.Hash != f.Desired.Hash {
		f.Memory.Backoffs[TrackConfiguration] = Backoff{}
	}
	return f.request(TrackConfiguration, step)
}

func (f Facts) driftInterval() (interval time.Duration) {
	interval = f.Options.DriftInterval - f.spread(f.Options.DriftInterval/5)
	if f.Memory.Drift.recent(f.Uptime) {
		interval = min(interval, driftCheck)
	}
	return interval
}

// knows reports whether the controller has written a configuration of that hash.
func (f Facts) knows(hash string) bool {
	recorded := f.Object.Status.Configuration
	return hash != "" && (hash == recorded.Hash || hash == recorded.Previous)
}

// replace decides about a remote configuration that is not the desired one.
func replace(f Facts) Step {
	remote, recorded := f.Memory.Remote.Configuration, f.Object.Status
	next := Step{Action: Configure, Hash: f.Desired.Hash, Interval: f.driftInterval()}
	previous := remote.Hash
	switch {
	case recorded.Contested:
		return f.waitForPerson(problem(ReasonContested, "Somebody else has changed the configuration of tunnel %s %d times within %d minutes, so the controller has stopped writing it. "+
			"Find the other writer, then pause the Gateway and resume it.", recorded.TunnelID, mostDrift, int(driftWindow.Minutes())))
	case remote.Version == 0 || f.knows(remote.Hash) || slices.Contains(f.Memory.Late.Hashes, remote.Hash):
	case f.adopts() && recorded.Configuration.Hash == "" && !f.Object.Spec.Existing.Takeover:
		return f.waitForPerson(problem(ReasonTakeoverRequired, "Tunnel %s has a configuration that this controller did not write. "+
			"Set tunnel.existing.takeover in the TunnelConfiguration of the GatewayClass to have it replaced.", recorded.TunnelID))
	case f.adopts() && recorded.Configuration.Hash == "":
		next.Event = &Event{Reason: EventTakenOver, Message: fmt.Sprintf("The configuration of tunnel %s is replaced, as tunnel.existing.takeover permits.", recorded.TunnelID)}
	case recorded.Configuration.Hash == "": // the tunnel was found by its name
	default:
		next.ExternalChange = remote.Version
		if step := externalChange(f, &next); step.Action != "" {
			return step
		}
		previous = "" // the same change may come again, and must count again
	}
	next.Record = f.writing(previous)
	if wait := f.Memory.Push.wait(f.Uptime); wait > 0 {
		return waitFor(wait)
	}
	return f.requestConfiguration(next)
}

// waitForPerson waits until the configuration is read again.
func (f Facts) waitForPerson(p *Problem) Step {
	w := waitFor(f.Memory.Remote.Configuration.ReadAgain - f.Uptime)
	w.Problem = p
	return w
}

// writing returns the record for the moment before the desired configuration is
// written, or nil when it says so already.
func (f Facts) writing(previous string) *v1alpha1.TunnelStatus {
	record := v1alpha1.ConfigurationRecord{Hash: f.Desired.Hash, Previous: previous, Late: f.Memory.Late.last(f.Uptime)}
	if f.Object.Status.Configuration == record {
		return nil
	}
	return f.record(func(s *v1alpha1.TunnelStatus) { s.Configuration = record })
}

// externalChange counts a change that somebody else made. It returns the step
// that stops writing when there are too many; otherwise it adds an event to the
// step that reverts the change.
func externalChange(f Facts, next *Step) Step {
	remote := f.Memory.Remote.Configuration
	noticed := len(f.Memory.Drift.Times) > 0 && f.Memory.Drift.Version == remote.Version
	differences := strings.Join(provider.Differences(remote.Configuration, *f.Desired.Configuration), "; ")
	if len(f.Memory.Drift.add(f.Uptime, remote.Version).Times) >= mostDrift && !noticed {
		return Step{
			Action: Record, ExternalChange: remote.Version,
			Record: f.record(func(s *v1alpha1.TunnelStatus) { s.Contested = true }),
			Event: &Event{Reason: EventDriftContested, Warning: true, Message: fmt.Sprintf(
				"Somebody else changed the configuration of tunnel %s again, and the controller stops writing it. The last change: %s", f.Object.Status.TunnelID, differences)},
		}
	}
	if !noticed {
		next.Event = &Event{Reason: EventDriftRepaired, Warning: true, Message: fmt.Sprintf(
			"Somebody else changed the configuration of tunnel %s; the controller reverts the change: %s", f.Object.Status.TunnelID, differences)}
	}
	return Step{}
}
