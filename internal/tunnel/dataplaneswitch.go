package tunnel

import "github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"

// switchConfiguration replaces the configuration of the data plane in effect by the
// configuration of the other data plane. The rule applyConfiguration writes it.
func (f Facts) switchConfiguration() progress {
	switch {
	case f.Desired.Configuration == nil:
		return progress{message: "The change of the data plane continues when the Gateway is accepted."}
	case f.isOutdated():
		return f.waitForBuild()
	case f.switchReversed():
		return f.reverseSwitch()
	case !f.isRemote(f.Desired.Other.Hash):
		return f.waitForSwitch()
	case f.Object.Status.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy:
		return progress{step: f.recordChange(v1alpha1.DataPlaneEnvoy, nil, f.completed(v1alpha1.DataPlaneEnvoy))}
	}
	if p := f.untilConfirmed(); p.step.Action != "" {
		return p
	}
	return progress{step: f.continueWith(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy)}
}

// switchReversed reports whether the configuration must no longer change to the other data plane:
// the settings ask for the data plane in effect, the routes now exceed the limits of ingress
// rules, or a backup restored the data plane in effect.
func (f Facts) switchReversed() bool {
	to := f.Object.Status.DataPlaneChange.To
	return to != f.Desired.DataPlane || to == RecordedDataPlane(f.Object) || f.Desired.Other.Excess != ""
}

// reverseSwitch ends a change while the configuration switches. Envoy is removed only when no
// write can still lead the configuration to Envoy.
func (f Facts) reverseSwitch() progress {
	recorded := RecordedDataPlane(f.Object)
	switch {
	case !f.isRemote(f.Desired.Hash):
		return f.waitForSwitch()
	case recorded == v1alpha1.DataPlaneEnvoy:
		return progress{step: f.recordChange(recorded, nil, f.reversed())}
	}
	if p := f.untilConfirmed(); p.step.Action != "" {
		return p
	}
	return progress{step: f.startPhase(recorded, v1alpha1.DataPlaneRemovingEnvoy, f.reversed())}
}

// isRemote reports whether the remote configuration is known and has the hash.
func (f Facts) isRemote(hash string) bool {
	remote := f.Memory.Remote.Configuration
	return remote.Known && remote.Hash == hash
}

// waitForSwitch waits until the rule applyConfiguration has written the configuration.
func (f Facts) waitForSwitch() progress {
	if f.mayLeadToEnvoy() {
		if p := f.untilReady(); p.step.Action != "" {
			return p
		}
	}
	message := "The controller replaces the configuration of the tunnel."
	if step := applyConfiguration(f); step.Ends() && step.Problem != nil {
		message = f.withRetryTime(step.Problem).Message
	}
	return progress{step: waitFor(rolloutInterval), message: message}
}

// untilConfirmed waits until Cloudflare can no longer apply an earlier write, and reads the
// configuration again.
func (f Facts) untilConfirmed() progress {
	if f.Memory.Remote.Configuration.Confirmed {
		return progress{}
	}
	p := progress{message: "The controller waits until Cloudflare can no longer apply an earlier write of the configuration."}
	if late := f.Memory.LateWrites; late.pending(f.Uptime) {
		p.step = waitFor(late.Settled.at - f.Uptime)
	} else {
		p.step = f.requestConfiguration(Step{Action: ReadConfiguration, ReadInterval: f.driftInterval()})
	}
	return p
}

// mayLeadToEnvoy reports whether the change switches the configuration to Envoy.
func (f Facts) mayLeadToEnvoy() bool {
	change := f.Object.Status.DataPlaneChange
	return change.To == v1alpha1.DataPlaneEnvoy && f.Desired.DataPlane == v1alpha1.DataPlaneEnvoy
}

// switches reports whether the configuration of the other data plane must be written now.
func (f Facts) switches() bool {
	change := f.Object.Status.DataPlaneChange
	switch {
	case change == nil || change.Phase != v1alpha1.DataPlaneSwitching || f.Desired.Other == nil || f.switchReversed():
		return false
	case change.To == v1alpha1.DataPlaneEnvoy:
		return f.isRemote(f.Desired.Other.Hash) || f.untilReady().step.Action == ""
	default:
		return true
	}
}

// listBeforeSwitch lists the connectors of the tunnel if only that is missing to switch the
// configuration to Envoy. Otherwise a change of routes would write the configuration of the
// data plane in effect, and spend the token of [UpdateLimit] that the switch waits for.
func (f Facts) listBeforeSwitch() Step {
	change := f.Object.Status.DataPlaneChange
	if change == nil || change.Phase != v1alpha1.DataPlaneSwitching || f.Desired.Other == nil || f.switchReversed() ||
		!f.mayLeadToEnvoy() || f.isRemote(f.Desired.Other.Hash) {
		return Step{}
	}
	return f.untilReady().step
}

// withConfigurationToApply returns the facts with the configuration that the tunnel must have now.
func (f Facts) withConfigurationToApply() Facts {
	if !f.switches() {
		return f
	}
	desired := *f.Desired
	desired.Configuration, desired.Hash = desired.Other.Configuration, desired.Other.Hash
	f.Desired = &desired
	return f
}
