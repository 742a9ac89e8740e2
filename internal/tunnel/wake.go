package tunnel

import "time"

// Pacing returns how long the next write of the configuration has to wait.
func (m Memory) Pacing(uptime time.Duration) time.Duration { return m.Push.wait(uptime) }

// MarkSuspect returns the Memory after an inventory has shown that the tunnel lost
// connectors, so that its token may have been replaced, or that it is missing.
func (m Memory) MarkSuspect(missing bool) Memory {
	m.Token.Suspect = true
	if missing {
		m.Remote.Configuration.ReadAgain = 0
	}
	return m
}
