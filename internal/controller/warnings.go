package controller

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// warningInterval is the minimum time between two warning events with the same reason
// about a Gateway, because tenants can change the message.
const warningInterval = 5 * time.Minute

// reportedWarnings contains, by reason, the last warning events about a Gateway.
type reportedWarnings map[conditions.EventReason]reportedWarning

type reportedWarning struct {
	message string // empty when the warning has ended
	uptime  time.Duration
}

// emitWarnings emits an event for each warning about the Gateway whose message is new.
func (r *run) emitWarnings(warnings []gateway.Warning) {
	m, uptime, current := r.tunnel, r.process.clock.uptime(), map[conditions.EventReason]bool{}
	for _, w := range warnings {
		current[w.Reason] = true
		last, known := m.warnings[w.Reason]
		if w.Message == last.message || known && uptime < last.uptime+warningInterval {
			continue
		}
		if m.warnings == nil {
			m.warnings = reportedWarnings{}
		}
		m.warnings[w.Reason] = reportedWarning{w.Message, uptime}
		r.process.notify.emitWarning(r.gateway, w)
	}
	for reason, last := range m.warnings {
		if !current[reason] {
			m.warnings[reason] = reportedWarning{uptime: last.uptime}
		}
	}
}
