package controller

import (
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// warningInterval is the minimum time between two events with the same reason about the
// warnings of a Gateway, because tenants can change the message.
const warningInterval = 5 * time.Minute

// reportedWarnings contains, by reason, the last events about the warnings of a Gateway.
type reportedWarnings map[conditions.EventReason]reportedWarning

type reportedWarning struct {
	message string // empty when the warning has ended
	uptime  time.Duration
}

// emitWarnings emits an event for each warning of the Gateway whose message is new.
func (l *lifecycle) emitWarnings(g *gatewayv1.Gateway, m *managedTunnel, warnings []gateway.Warning) {
	uptime, current := l.clock.uptime(), map[conditions.EventReason]bool{}
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
		l.notify.emitWarning(g, w)
	}
	for reason, last := range m.warnings {
		if !current[reason] {
			m.warnings[reason] = reportedWarning{uptime: last.uptime}
		}
	}
}
