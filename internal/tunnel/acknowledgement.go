package tunnel

import "time"

// maxUnacknowledged is the time for which a write of the configuration waits for Envoys: an
// Envoy that acknowledges nothing must not delay a change of Access.
const maxUnacknowledged = 2 * time.Second

// observeEnvoys returns the Memory with the time since which a connected Envoy lacks the routes
// that it needs before the configuration changes.
func (m Memory) observeEnvoys(e Envoys, uptime time.Duration) Memory {
	switch {
	case !e.Unsettled || e.Connected == 0 || e.Acknowledged:
		m.UnacknowledgedSince = Instant{}
	case !m.UnacknowledgedSince.IsSet():
		m.UnacknowledgedSince = At(uptime)
	}
	return m
}

// afterAcknowledgement returns the step, or a wait before it writes the configuration. The write
// changes the listener of hostnames, so both listeners of every Envoy must serve them first.
func (f Facts) afterAcknowledgement(step Step) Step {
	since := f.Memory.UnacknowledgedSince
	if step.Action != Configure || !since.IsSet() || since.Since(f.Uptime) >= maxUnacknowledged {
		return step
	}
	w := waitFor(maxUnacknowledged - since.Since(f.Uptime))
	w.AwaitsEnvoys = true
	return w
}
