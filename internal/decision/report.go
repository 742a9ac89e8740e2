package decision

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Evidence holds what statuses report besides the decision: facts that do not follow from
// the Gateway's objects. A plan knows only the shared hostnames.
type Evidence struct {
	// Shared are the hostnames that other Gateways also serve.
	Shared gateway.Shared
	// Connectors is the connectors' state, and Envoys their Envoys' state; nil if they do
	// not exist or are not known.
	Connectors *gateway.Readiness
	Envoys     *gateway.Envoys
	// DNS is what the zones contain; nil if dns.mode is Off.
	DNS *gateway.DNS
}

// Outcome returns the outcome for the statuses. o is the outcome for the tunnel, whose record is t.
func (d *Decision) Outcome(t *v1alpha1.Tunnel, o tunnel.Outcome, e Evidence) gateway.Outcome {
	return gateway.Outcome{Push: d.push(t, o), Tunnel: o.Tunnel, Shared: e.Shared, Connectors: e.Connectors, Envoys: e.Envoys, DNS: e.DNS}
}

// push converts the outcome for the tunnel to the result of the last write.
func (d *Decision) push(t *v1alpha1.Tunnel, o tunnel.Outcome) gateway.Push {
	p := gateway.Push{Message: o.Message}
	problem := d.AccountProblem()
	switch {
	case d.Plane(t).Result.Rejected != nil:
		return gateway.Push{State: gateway.PushOutstanding}
	case problem != "":
		return gateway.Push{State: gateway.PushFailed, Message: problem}
	case o.State == tunnel.OutcomeInEffect:
		p.State = gateway.PushSucceeded
	case o.Reason == conditions.ReasonConfigurationThrottled:
		p.State = gateway.PushDelayed
	case o.State == tunnel.OutcomeFailed:
		p.State = gateway.PushFailed
		if o.Reason == conditions.ReasonSettingsNotApplied || o.Reason == conditions.ReasonNewerVersion {
			p.Reason = o.Reason
		}
	}
	return p
}

// Withdraw returns the report that resets the statuses of the ListenerSets and routes on
// a Gateway that is not served. If another controller manages the Gateway, the
// ListenerSets keep their statuses, which do not name the controller that wrote them.
func Withdraw(key gateway.Owner, s *gateway.Snapshot, managed bool) gateway.Report {
	report := gateway.ResetReport(key, s)
	if !managed {
		report.ListenerSets = nil
	}
	return report
}
