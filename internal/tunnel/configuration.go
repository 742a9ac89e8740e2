package tunnel

import (
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// applyConfiguration applies the desired configuration. While the data plane changes,
// this can be the configuration for the data plane that is not in effect yet. The
// controller reads the remote configuration after a start, after an error and at the
// drift interval, and writes it only if it differs.
func applyConfiguration(f Facts) Step {
	switch {
	case f.Desired == nil || f.Desired.Configuration == nil:
		return Step{}
	case f.hasOtherDataPlane():
		return waitFor(minBackoff) // the next reconcile builds the configuration again
	}
	if step := f.listBeforeSwitch(); step.Action == ListConnections {
		return step
	}
	f = f.withConfigurationToApply()
	if step := readConfiguration(f); step.Action != "" {
		return step
	}
	if f.Desired.RulesUnknown {
		return waitFor(f.rulesDelay())
	}
	remote := f.Memory.Remote.Configuration
	if remote.Hash != f.Desired.Hash {
		return replaceConfiguration(f)
	}
	if !f.hasWritten(f.Desired.Hash) {
		return Step{Action: Record, Event: f.adoptionEvent(), Record: f.statusWith(func(s *v1alpha1.TunnelStatus) {
			s.Configuration = v1alpha1.ConfigurationRecord{Hash: f.Desired.Hash}
		})}
	}
	return nextRead(f)
}

// rulesDelay returns the time until the rules in effect can be known. The controller decides
// again as soon as they are.
func (f Facts) rulesDelay() time.Duration {
	if f.Memory.KnowsRules() {
		return minBackoff
	}
	return max(f.Memory.Remote.Configuration.NextRead-f.Uptime, minBackoff)
}

// KnowsRules reports whether the rules in effect are those of the remote configuration, and no
// write that Cloudflare may still apply replaces them.
func (m Memory) KnowsRules() bool {
	remote := m.Remote.Configuration
	isOther := func(hash string) bool { return hash != remote.Hash }
	return remote.Known && remote.Hash != "" && (remote.Confirmed || !slices.ContainsFunc(m.LateWrites.Hashes, isOther))
}

// readConfiguration reads the remote configuration when it is due. A read that must wait
// does not delay a write if the remote configuration is known.
func readConfiguration(f Facts) Step {
	step := nextRead(f)
	if step.Ends() && f.Memory.Remote.Configuration.Known {
		return Step{}
	}
	return step
}

// nextRead reads the remote configuration when it is due, and waits otherwise.
func nextRead(f Facts) Step {
	remote := f.Memory.Remote.Configuration
	if remote.Known && f.Uptime < remote.NextRead {
		return waitFor(remote.NextRead - f.Uptime)
	}
	step := Step{Action: ReadConfiguration, ReadInterval: f.driftInterval()}
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

// requestConfiguration is attemptCall for TrackConfiguration. After a rejection, another
// configuration is tried without backoff.
func (f Facts) requestConfiguration(step Step) Step {
	if b := f.Memory.Backoffs[TrackConfiguration]; b.Hash != "" && b.Hash != f.Desired.Hash {
		f.Memory.Backoffs[TrackConfiguration] = Backoff{}
	}
	return f.attemptCall(TrackConfiguration, step)
}

func (f Facts) driftInterval() (interval time.Duration) {
	interval = f.Options.DriftInterval - f.jitter(f.Options.DriftInterval/5)
	if f.Memory.Drift.recent(f.Uptime) {
		interval = min(interval, contestedInterval)
	}
	return interval
}

// hasWritten reports whether the record contains the hash as written by the controller.
func (f Facts) hasWritten(hash string) bool {
	recorded := f.Object.Status.Configuration
	return hash != "" && (hash == recorded.Hash || hash == recorded.Previous)
}

// replaceConfiguration returns the step for a remote configuration that differs from the
// desired configuration.
func replaceConfiguration(f Facts) Step { return f.afterAcknowledgement(f.writeConfiguration()) }

// writeConfiguration returns the step that writes the desired configuration, or what it
// waits for.
func (f Facts) writeConfiguration() Step {
	remote, recorded := f.Memory.Remote.Configuration, f.Object.Status
	next := Step{Action: Configure, Hash: f.Desired.Hash, Configuration: f.Desired.Configuration, Limit: f.Desired.Updates, ReadInterval: f.driftInterval(), Event: f.adoptionEvent()}
	previous := remote.Hash
	switch {
	case recorded.Contested:
		return f.waitForUser(problem(conditions.ReasonContested, "External changes replaced the configuration of tunnel %s %d times within %d minutes, so the controller has stopped writing it. "+
			"Stop the other writer, then pause the Gateway and resume it.", recorded.TunnelID, contestedChanges, int(driftWindow.Minutes())))
	case f.hasWrittenRemote(remote):
	case recorded.Configuration.Hash == "":
		if step := takeOver(f, &next); step.Action != "" {
			return step
		}
	default:
		next.ExternalChange, next.ReadInterval = remote.Version, min(next.ReadInterval, contestedInterval)
		if step := handleExternalChange(f, &next); step.Action != "" {
			return step
		}
		previous = "" // the same external change must count again if it is repeated
	}
	next.Record = f.configurationRecord(next.Hash, previous)
	revocation, wait := f.revocation(next, previous)
	if wait == 0 {
		return revocation
	}
	step := f.withPacing(f.requestConfiguration(next))
	if step.Action == Wait && wait > 0 {
		step.Delay = min(step.Delay, wait)
	}
	return step
}

// hasWrittenRemote reports whether the controller wrote the remote configuration, or the
// tunnel was never configured.
func (f Facts) hasWrittenRemote(remote RemoteConfiguration) bool {
	return remote.Version == 0 || f.hasWritten(remote.Hash) || slices.Contains(f.Memory.LateWrites.Hashes, remote.Hash)
}

// takeOver checks whether the controller may replace the configuration of a tunnel that
// it has never configured: the tunnel must have the name that the Gateway's tunnel
// would get, or the settings must permit takeover.
func takeOver(f Facts, next *Step) Step {
	id := f.Object.Status.TunnelID
	switch {
	case !f.adopts():
		return Step{}
	case !f.Object.Spec.Existing.Takeover:
		return f.waitForUser(problem(conditions.ReasonTakeoverRequired, "Tunnel %s has a configuration that this controller did not write. "+
			"Set tunnel.existing.takeover in the GatewayClass's TunnelConfiguration to let the controller replace it.", id))
	default:
		next.Event = newEvent(conditions.EventTakenOver, "The controller replaces the configuration of tunnel %s, because tunnel.existing.takeover permits it.", id)
		return Step{}
	}
}

// waitForUser waits with the problem until the configuration is due to be read again.
func (f Facts) waitForUser(p *Problem) Step {
	step := nextRead(f)
	step.Problem = p
	return step
}

// configurationRecord returns the record to write before the configuration with the
// hash, or nil if the record is already up to date.
func (f Facts) configurationRecord(hash, previous string) *v1alpha1.TunnelStatus {
	record := v1alpha1.ConfigurationRecord{Hash: hash, Previous: previous, Late: f.Memory.LateWrites.last(f.Uptime)}
	if f.Object.Status.Configuration == record {
		return nil
	}
	return f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Configuration = record })
}

// handleExternalChange counts an external change. If there are too many, it returns the
// step that records the configuration as contested. Otherwise it adds an event to next,
// the step that reverts the change.
func handleExternalChange(f Facts, next *Step) Step {
	remote := f.Memory.Remote.Configuration
	reported := len(f.Memory.Drift.Times) > 0 && f.Memory.Drift.Version == remote.Version
	differences := strings.Join(provider.Differences(remote.Configuration, *f.Desired.Configuration), "; ")
	if len(f.Memory.Drift.add(f.Uptime, remote.Version).Times) >= contestedChanges && !reported {
		return Step{
			Action: Record, ExternalChange: remote.Version,
			Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.Contested = true }),
			Event:  newEvent(conditions.EventDriftContested, "External changes keep replacing the configuration of tunnel %s, so the controller stops writing it. Last change: %s", f.Object.Status.TunnelID, differences),
		}
	}
	if !reported {
		next.Event = newEvent(conditions.EventDriftRepaired, "The controller reverts an external change to the configuration of tunnel %s: %s", f.Object.Status.TunnelID, differences)
	}
	return Step{}
}
