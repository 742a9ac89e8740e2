package dns

import "github.com/tunnel-gateway/tunnel-gateway/internal/ownership"

// trace returns the traces after the Facts were gathered. They begin when this process has
// first seen the records: a previous process may have known more.
func (s *situation) trace() map[string]trace {
	traces := make(map[string]trace, s.view.marked)
	for _, name := range s.names() {
		target, ok := s.heldTarget(name)
		if !ok {
			continue
		}
		before := s.Memory.traces[name]
		if before.target != target {
			before = trace{target: target}
		}
		traces[name] = s.continueTrace(name, before)
	}
	return traces
}

// heldTarget returns where the record of the hostname leads, if a Gateway can hold the
// hostname through it: the record has a valid mark, or there is none and a wildcard leads
// to a Gateway. For a wildcard, the target is that of a Gateway that holds the hostname, or
// did when the trace began.
func (s *situation) heldTarget(name string) (string, bool) {
	own := s.view.set(name)
	if own != nil {
		r, _ := own.address()
		return target(r), own.marked
	}
	wildcard := s.view.set(s.view.wildcard(name, s.Zone))
	if _, ok := wildcard.address(); !ok {
		return "", false
	}
	leads, _ := s.view.leads(wildcard, s.Zone)
	holder := s.byTarget[leads]
	if holder == nil {
		return leads, s.Memory.traces[name].target == leads && leads != ""
	}
	_, holds := s.claimOf(name, holder)
	return leads, holds || s.Memory.traces[name].target == leads
}

// continueTrace returns the trace of a record that leads to the same target as before.
func (s *situation) continueTrace(name string, t trace) trace {
	holder := s.byTarget[t.target]
	if holder != nil {
		if c, holds := s.claimOf(name, holder); holds {
			return trace{target: t.target, namespace: c.hostname.Namespace}
		}
	}
	if !s.GatewaysKnown || !s.manages() || holder != nil && s.keeps(name, holder) {
		return trace{target: t.target, namespace: t.namespace}
	}
	if !t.unheld.IsSet() {
		t.unheld = At(s.Uptime)
	}
	switch {
	case s.wanted(name):
		t.unwanted = Instant{}
	case !t.unwanted.IsSet():
		t.unwanted = At(s.Uptime)
	}
	return t
}

// keeps reports whether the Gateway's state keeps its records although it does not want
// the hostname. Only a missing permission removes a record of a Gateway that is not
// accepted.
func (s *situation) keeps(name string, p *party) bool {
	switch p.State {
	case ownership.Unknown, ownership.Frozen:
		return true
	case ownership.Rejected:
		for _, c := range s.claims[name] {
			if c.party == p {
				return false // not permitted: otherwise the Gateway holds it
			}
		}
		return true
	default: // Accepted, Departed, Retiring
		return false
	}
}
