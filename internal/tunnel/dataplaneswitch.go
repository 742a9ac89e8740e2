package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// switchConfiguration replaces the configuration for the data plane in effect with the
// one for the other data plane. The rule applyConfiguration writes it.
func (f Facts) switchConfiguration() progress {
	switch {
	case f.Desired.Configuration == nil:
		return progress{message: "The data plane change continues when the Gateway is accepted."}
	case f.isOutdated():
		return f.waitForBuild()
	case f.switchReversed():
		return f.reverseSwitch()
	case !f.isRemote(f.Desired.Other.Hash):
		if p := f.untilSwitch(); p.step.Action != "" {
			return p
		}
		return f.waitForWrite()
	case f.Object.Status.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy:
		return progress{step: f.recordChange(v1alpha1.DataPlaneEnvoy, nil, f.completed(v1alpha1.DataPlaneEnvoy))}
	}
	if p := f.untilConfirmed(); p.step.Action != "" {
		return p
	}
	return progress{step: f.continueWith(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy)}
}

// switchReversed reports whether the configuration must no longer change to the other
// data plane: the settings ask for the data plane in effect, the routes now exceed the
// limits of ingress rules, or a backup restored the data plane in effect.
func (f Facts) switchReversed() bool {
	to := f.Object.Status.DataPlaneChange.To
	return to != f.Desired.DataPlane || to == RecordedDataPlane(f.Object) || f.Desired.Other.Excess != ""
}

// reverseSwitch ends a change while the configuration switches. Envoy is removed only
// when no write can still lead the configuration to Envoy.
func (f Facts) reverseSwitch() progress {
	recorded := RecordedDataPlane(f.Object)
	switch {
	case !f.isRemote(f.Desired.Hash):
		return f.waitForWrite()
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

// waitForWrite waits until the rule applyConfiguration has written the configuration.
func (f Facts) waitForWrite() progress {
	message := "The controller replaces the tunnel configuration."
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
	p := progress{message: "The controller waits until Cloudflare can no longer apply an earlier configuration write."}
	if late := f.Memory.LateWrites; late.pending(f.Uptime) {
		p.step = waitFor(late.Settled.at - f.Uptime)
	} else {
		p.step = f.requestConfiguration(Step{Action: ReadConfiguration, ReadInterval: f.driftInterval()})
	}
	return p
}

// isSwitching reports whether the configuration for the other data plane must replace
// the one for the data plane in effect.
func (f Facts) isSwitching() bool {
	change := f.Object.Status.DataPlaneChange
	return change != nil && change.Phase == v1alpha1.DataPlaneSwitching && f.Desired.Other != nil && !f.switchReversed()
}

// untilSwitch returns what the switch waits for: the configuration may lead to Envoy
// only when every connector can use Envoy. The zero value means that the configuration
// can be written.
func (f Facts) untilSwitch() progress {
	if f.Object.Status.DataPlaneChange.To != v1alpha1.DataPlaneEnvoy || f.isRemote(f.Desired.Other.Hash) {
		return progress{}
	}
	return f.untilReady()
}

// listBeforeSwitch lists the tunnel's connectors if only that list is missing to switch
// the configuration to Envoy. Otherwise a route change would write the configuration
// for the data plane in effect, and spend the [UpdateLimit] token that the switch waits
// for.
func (f Facts) listBeforeSwitch() Step {
	if !f.isSwitching() {
		return Step{}
	}
	return f.untilSwitch().step
}

// withConfigurationToApply returns the facts with the configuration that the tunnel
// must have now.
func (f Facts) withConfigurationToApply() Facts {
	if !f.isSwitching() || f.untilSwitch().step.Action != "" {
		return f
	}
	desired := *f.Desired
	desired.Configuration, desired.Hash = desired.Other.Configuration, desired.Other.Hash
	f.Desired = &desired
	return f
}
