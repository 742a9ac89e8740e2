package tunnel

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// maxUnacknowledged is how long a configuration change waits for Envoys: an Envoy that
// acknowledges nothing must not delay a change to Access settings.
const maxUnacknowledged = 2 * time.Second

// observeEnvoys returns the Memory with the time since which a connected Envoy lacks
// the routes that it needs before the configuration changes. An Envoy that is late, or
// that has rejected its routes, is not expected to get them.
func (f Facts) observeEnvoys(m Memory) Memory {
	e := f.Envoys
	switch {
	case !e.Unsettled && !f.isAddingEnvoy(), e.Connected == 0, e.Acknowledged, e.Late, e.Rejected != "":
		m.UnacknowledgedSince = Instant{}
	case !m.UnacknowledgedSince.IsSet():
		m.UnacknowledgedSince = At(f.Uptime)
	}
	return m
}

// isAddingEnvoy reports whether the data plane changes to Envoy.
func (f Facts) isAddingEnvoy() bool {
	return f.Object != nil && f.Object.Status.DataPlaneChange != nil && f.Object.Status.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy
}

// awaitEnvoys returns a wait for Envoys to acknowledge their routes, or the zero Step
// if none is expected to.
func (f Facts) awaitEnvoys() Step {
	since := f.Memory.UnacknowledgedSince
	if !since.IsSet() || since.Since(f.Uptime) >= maxUnacknowledged {
		return Step{}
	}
	step := waitFor(maxUnacknowledged - since.Since(f.Uptime))
	step.AwaitsEnvoys = true
	return step
}

// afterAcknowledgement returns the step, or a wait before it writes the configuration.
// For example, when Access settings move a hostname to another listener, both listeners
// in every Envoy must serve it first.
func (f Facts) afterAcknowledgement(step Step) Step {
	if step.Action != Configure || !f.Envoys.Unsettled {
		return step
	}
	if wait := f.awaitEnvoys(); wait.Action != "" {
		return wait
	}
	return step
}
