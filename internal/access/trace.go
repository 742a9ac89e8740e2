package access

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
)

// Observe returns the Memory after the Facts were gathered. The controller calls it before
// each [Decide], [NewReport] and [Plan]: they need the Memory that it returns.
//
// It notices since when applications are not demanded, and since when hostnames have their
// reasons.
func Observe(f Facts) Memory {
	m := f.Memory
	if m.token != f.TokenVersion {
		if m.token != "" {
			m.blocked = f.Uptime
		}
		m.token, m.failure, m.refused = f.TokenVersion, pacing.Failure{}, nil
	}
	if !m.started.IsSet() {
		m.started = At(f.Uptime)
	}
	f.Memory = m
	s := newSituation(f)
	if s.manages() {
		m.traces = s.trace()
		m.changes, m.refused = s.currentChanges(), s.currentRefusals()
	} else {
		m.traces = interrupted(m.traces)
	}
	s.Memory = m
	m.reasons = s.trackReasons()
	return m
}

// trace returns the traces after the Facts were gathered. They begin when this process has
// first seen the applications: a previous process may have known more.
func (s *situation) trace() map[string]trace {
	traces := make(map[string]trace, len(s.remote.owned))
	for key, t := range s.Memory.traces {
		if t.updated.IsSet() && s.Uptime < t.updated.at+updateInterval {
			traces[key] = trace{updated: t.updated}
		}
	}
	for _, o := range s.remote.owned {
		t := s.Memory.traces[o.key()]
		if t.id != o.ID {
			t = trace{id: o.ID, updated: t.updated}
		}
		traces[o.key()] = s.continueTrace(o, t)
	}
	return traces
}

// interrupted returns the traces without their delays. Nothing ends while the controller
// manages no applications.
func interrupted(before map[string]trace) map[string]trace {
	traces := make(map[string]trace, len(before))
	for key, t := range before {
		t.unheld, t.unwanted = Instant{}, Instant{}
		traces[key] = t
	}
	return traces
}

// continueTrace returns the trace of the same application as before.
func (s *situation) continueTrace(o *owned, t trace) trace {
	d := decision{name: o.name, app: o}
	if o.name != "" {
		d = s.decide(o.name)
	}
	t.revoked = t.revoked && o.revoke
	t.repairs = s.recentRepairs(t)
	matches := d.target != nil && d.target.matches(o)
	t.calm = since(t.calm, o.contested && matches, s.Uptime)
	if matches {
		t.content = o.content()
	}
	return s.continueEnd(o, t)
}

// continueEnd returns the trace with who holds the application, and since when it is not held
// and not wanted.
func (s *situation) continueEnd(o *owned, t trace) trace {
	var held *claim
	if o.holder != nil {
		held = s.claimOf(o.name, o.holder)
	}
	if held != nil {
		t.namespace = held.demand.Namespace
	}
	isHeld := held != nil && held.isLive()
	ends := s.GatewaysKnown && !isHeld && !s.isKept(o, o.name)
	if departed := o.holder != nil && o.holder.State == ownership.Departed; departed != t.departed {
		t.departed, t.unheld = departed, Instant{} // a retained Tunnel keeps its applications for the whole delay
	}
	t.unheld = since(t.unheld, ends, s.Uptime)
	t.unwanted = since(t.unwanted, ends && !s.isDemanded(o.name), s.Uptime)
	return t
}

// since returns since when the condition holds.
func since(before Instant, holds bool, uptime time.Duration) Instant {
	switch {
	case !holds:
		return Instant{}
	case before.IsSet():
		return before
	}
	return At(uptime)
}

// currentChanges returns the changes that still count.
func (s *situation) currentChanges() map[string][]time.Duration {
	current := map[string][]time.Duration{}
	for namespace, changes := range s.Memory.changes {
		if recent := recentChanges(changes, s.Uptime); len(recent) > 0 {
			current[namespace] = recent
		}
	}
	return current
}

// currentRefusals returns the refusals about hostnames that still matter.
func (s *situation) currentRefusals() map[string]refusal {
	current := map[string]refusal{}
	for hostname, r := range s.Memory.refused {
		if s.Uptime < r.until || len(s.claims[hostname]) > 0 || len(s.remote.byDomain[hostname]) > 0 {
			current[hostname] = r
		}
	}
	return current
}

// trackReasons returns since when the hostnames have their reasons.
func (s *situation) trackReasons() map[hostnameKey]reasonSince {
	reasons := map[hostnameKey]reasonSince{}
	for gateway, verdicts := range s.verdicts(s.agendaIfManaged()) {
		for hostname, v := range verdicts {
			if v.Reason == (conditions.Reason{}) {
				continue
			}
			key := hostnameKey{gateway.String(), hostname}
			at := reasonSince{v.Reason, s.Uptime}
			if before, ok := s.Memory.reasons[key]; ok && before.reason == v.Reason {
				at = before
			}
			reasons[key] = at
		}
	}
	return reasons
}
