package access

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, s Step, r Result) Memory {
	m = m.conclude(s, r)
	if provider.IsTransient(r.Err) || slices.ContainsFunc(r.Writes, func(w WriteResult) bool { return provider.IsTransient(w.Err) }) {
		m.blocked = max(m.failure.Until(), r.Uptime)
	}
	return m
}

func (m Memory) conclude(s Step, r Result) Memory {
	switch {
	case s.Ends() || s.Action == ConcludeAdoptions:
		return m
	case s.Action == Apply:
		return m.afterWrites(s, r)
	case r.Err != nil:
		return m.afterReadError(s, r)
	case s.Action == ReadPolicies:
		m.policies = policiesMemory{read: At(r.Sent), decisions: make(map[provider.AccessPolicyID]string, len(r.Policies))}
		for _, p := range r.Policies {
			m.policies.decisions[p.ID] = p.Decision
		}
	default:
		m = m.withList(r)
	}
	m.failure = m.failure.AfterSuccess(false)
	return m
}

// withList returns the Memory after the applications were listed.
func (m Memory) withList(r Result) Memory {
	all := make(map[provider.ApplicationID]*provider.Application, len(r.Applications))
	tags := map[string]bool{}
	maps.Copy(tags, m.tags)
	for i := range r.Applications {
		a := r.Applications[i]
		all[a.ID] = &a
		for _, tag := range a.Tags {
			if strings.HasPrefix(tag, tagPrefix) {
				tags[tag] = true
			}
		}
	}
	again := Instant{}
	if m.applications.all == nil {
		again = At(r.Sent + provider.CallTimeout)
	}
	m.applications = applicationsMemory{all: all, read: At(r.Sent), again: again}
	m.tags = tags
	m.unanswered = maps.Clone(m.unanswered)
	maps.DeleteFunc(m.unanswered, func(_ string, until time.Duration) bool { return until <= r.Sent })
	return m
}

// writer collects what becomes of the Memory after several writes.
type writer struct {
	Memory
	result Result
	// succeeded and lost count the writes.
	succeeded, lost int
}

// afterWrites returns the Memory after writes, each of which has its own result.
func (m Memory) afterWrites(s Step, r Result) Memory {
	if r.Err != nil || len(r.Writes) != len(s.Writes) {
		r.Writes = make([]WriteResult, len(s.Writes))
		for i := range r.Writes {
			r.Writes[i].Err = r.Err
		}
		m.applications.outdated = m.applications.outdated || r.Err == nil
	}
	w := &writer{Memory: m, result: r}
	w.failure = m.failure.Counted()
	w.applications.all = cloned(m.applications.all)
	w.tags, w.traces, w.refused = cloned(m.tags), cloned(m.traces), cloned(m.refused)
	w.changes, w.unanswered, w.adopted = cloned(m.changes), cloned(m.unanswered), cloned(m.adopted)
	for i := range s.Writes {
		var c *change
		if i < len(s.changes) {
			c = s.changes[i]
		}
		if err := r.Writes[i].Err; err != nil {
			w.failed(&s.Writes[i], c, err)
		} else {
			w.wrote(&s.Writes[i], c, r.Writes[i].Application)
		}
	}
	w.turns = afterTurns(m.turns, s.changes)
	return w.concluded()
}

// cloned returns a copy of the map that is not nil.
func cloned[K comparable, V any](from map[K]V) map[K]V {
	to := make(map[K]V, len(from))
	maps.Copy(to, from)
	return to
}

// wrote adds what a write has changed.
func (w *writer) wrote(write *Write, c *change, a provider.Application) {
	w.succeeded++
	if write.Operation == EnsureTag {
		w.tags[write.Tag] = true
		return
	}
	w.accept(write, a)
	w.count(c)
	w.applications.written = true
	t := w.traces[c.key]
	switch write.Operation {
	case Create:
		w.applications.all[a.ID] = &a
		t = t.wroteTo(&a)
	case Update:
		w.applications.all[a.ID] = &a
		t = t.updatedBy(c, w.result.Uptime).wroteTo(&a)
		if c.adopts {
			w.adopted[a.ID] = write.Last
		}
	case Revoke:
		t.revoked = true
	case Delete:
		delete(w.applications.all, write.Last.ID)
		w.full = Instant{}
		if c.spaced {
			t.updated = At(w.result.Uptime)
		}
	default: // EnsureTag changes no application
	}
	if write.Operation != Delete && write.Operation != Revoke && a.ID == "" {
		w.applications.outdated = true
		delete(w.applications.all, "")
	}
	w.traces[c.key] = t
}

// accept notes that Cloudflare has accepted the write. If it stores other fields than the
// controller has sent, an update would follow at once, and each could revoke the tokens.
func (w *writer) accept(write *Write, a provider.Application) {
	wanted := claim{spec: write.Spec, bypass: write.Spec.Bypass}
	if (write.Operation == Create || write.Operation == Update) && !wanted.matches(&owned{Application: &a}) {
		w.refuse(write.Hostname, refusal{reason: conditions.ReasonPending, message: "Cloudflare stores the application with other settings than the controller has sent. Report this as a bug."})
		r := w.refused[write.Hostname]
		r.until = w.result.Uptime + retryInterval
		w.refused[write.Hostname] = r
		return
	}
	delete(w.refused, write.Hostname)
}

// updatedBy returns the trace after an update.
func (t trace) updatedBy(c *change, uptime time.Duration) trace {
	if c.revokes {
		t.revoked = false
	}
	if c.repair {
		t.repairs = append(slices.Clone(t.repairs), uptime)
	}
	if c.counts {
		t.updated = At(uptime)
	}
	return t
}

// wroteTo returns the trace with the application as the controller has written it. The demand
// can have changed since, which is no external change.
func (t trace) wroteTo(a *provider.Application) trace {
	o := owned{Application: a}
	t.id, t.content = a.ID, o.content()
	return t
}

// count counts the change for its namespace.
func (w *writer) count(c *change) {
	if c.counts && c.namespace != "" {
		w.changes[c.namespace] = append(slices.Clone(recentChanges(w.changes[c.namespace], w.result.Uptime)), w.result.Uptime)
	}
}
