package tunnel

import (
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
		return Step{Action: Record, Event: f.adoption(), Record: f.record(func(s *v1alpha1.TunnelStatus) {
			s.Configuration = v1alpha1.ConfigurationRecord{Hash: f.Desired.Hash}
		})}
	}
	return nextRead(f)
}

// readConfiguration reads the remote configuration when that is due. A read that
// cannot be made now delays no write of a configuration that is known.
func readConfiguration(f Facts) Step {
	step := nextRead(f)
	if step.Ends() && f.Memory.Remote.Configuration.Known {
		return Step{}
	}
	return step
}

// nextRead reads the remote configuration when that is due, or waits until it is
// due and can be made.
func nextRead(f Facts) Step {
	remote := f.Memory.Remote.Configuration
	if remote.Known && f.Uptime < remote.ReadAgain {
		return waitFor(remote.ReadAgain - f.Uptime)
	}
	step := Step{Action: ReadConfiguration, Interval: f.driftInterval()}
	switch {
	case remote.Known:
		step.Priority = provider.PriorityDrift
	case f.probablyInEffect():
		step.Priority = provider.PriorityStart
	}
	if !remote.Settled {
		step.Unsettled = []string{f.Object.Status.Configuration.Late, f.Object.Status.Configuration.Hash}
	}
	return f.requestConfiguration(step)
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
	next := Step{Action: Configure, Hash: f.Desired.Hash, Interval: f.driftInterval(), Event: f.adoption()}
	previous := remote.Hash
	switch {
	case recorded.Contested:
		return f.waitForPerson(problem(ReasonContested, "The configuration of tunnel %s was changed %d times within %d minutes outside the controller, so the controller has stopped writing it. "+
			"Find the other writer, then pause the Gateway and resume it.", recorded.TunnelID, mostDrift, int(driftWindow.Minutes())))
	case f.wrote(remote):
	case recorded.Configuration.Hash == "":
		if step := takeOver(f, &next); step.Action != "" {
			return step
		}
	default:
		next.ExternalChange, next.Interval = remote.Version, min(next.Interval, driftCheck)
		if step := externalChange(f, &next); step.Action != "" {
			return step
		}
		previous = "" // the same change may come again, and must count again
	}
	next.Record = f.writing(previous)
	return f.paced(f.requestConfiguration(next))
}

// paced returns the step that writes the configuration, or the wait until it may
// be written.
func (f Facts) paced(step Step) Step {
	wait := f.Memory.Push.wait(f.Uptime)
	if wait == 0 || step.Action == None || step.Action == Wait && step.For >= wait {
		return step
	}
	w := waitFor(wait)
	if step.Ends() {
		w.Problem = step.Problem
	}
	return w
}

// wrote reports whether the controller wrote the remote configuration, or there
// is none.
func (f Facts) wrote(remote RemoteConfiguration) bool {
	return remote.Version == 0 || f.knows(remote.Hash) || slices.Contains(f.Memory.Late.Hashes, remote.Hash)
}

// takeOver decides about the configuration of a tunnel that the controller has
// never configured. It may be replaced when the tunnel has the name of its
// Gateway, or when takeover permits it.
func takeOver(f Facts, next *Step) Step {
	id := f.Object.Status.TunnelID
	switch {
	case !f.adopts():
		return Step{}
	case !f.Object.Spec.Existing.Takeover:
		return f.waitForPerson(problem(ReasonTakeoverRequired, "Tunnel %s has a configuration that this controller did not write. "+
			"Set tunnel.existing.takeover in the TunnelConfiguration of the GatewayClass to have it replaced.", id))
	default:
		next.Event = newEvent(EventTakenOver, "The configuration of tunnel %s is replaced, as tunnel.existing.takeover permits.", id)
		return Step{}
	}
}

// waitForPerson waits until the configuration is read again.
func (f Facts) waitForPerson(p *Problem) Step {
	step := nextRead(f)
	step.Problem = p
	return step
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

// externalChange counts an external change. It returns the step
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
			Event:  newEvent(EventDriftContested, "The configuration of tunnel %s was changed again outside the controller, which stops writing it. The last change: %s", f.Object.Status.TunnelID, differences),
		}
	}
	if !noticed {
		next.Event = newEvent(EventDriftRepaired, "The configuration of tunnel %s was changed outside the controller, which reverts the change: %s", f.Object.Status.TunnelID, differences)
	}
	return Step{}
}
