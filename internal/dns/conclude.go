package dns

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// maxDoublings limits how often the backoff doubles.
	maxDoublings = 9
	// refusalInterval is when a change that Cloudflare has refused is tried again.
	refusalInterval = 10 * time.Minute
)

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, s Step, r Result) Memory {
	if s.Ends() || s.Action == ConcludeAdoptions {
		return m
	}
	if r.Err != nil {
		return m.afterError(s, r)
	}
	m.failure.count, m.failure.until = 0, 0
	if s.Action == Apply || !m.failure.change {
		m.failure = failure{}
	}
	return m.afterSuccess(s, r)
}

func (m Memory) afterSuccess(s Step, r Result) Memory {
	switch s.Action {
	case ReadZone:
		m = m.withZones(s, r)
	case ReadUsage:
		m.usage = usageMemory{read: At(r.Uptime), next: r.Uptime + zoneInterval, quota: r.Usage.Quota}
	case ReadCertificates:
		m.hosts = hostsMemory{next: r.Uptime + zoneInterval, known: true, hosts: make(map[string]bool, len(r.Hosts))}
		for _, host := range r.Hosts {
			m.hosts.hosts[host] = true
		}
	case ReadRecords:
		m = m.withRead(s, r)
	case Apply:
		m = m.withBatch(s, r)
	default: // the other actions send no request
	}
	return m
}

// withZones returns the Memory after the zone was read. Another zone with the name has
// other records.
func (m Memory) withZones(s Step, r Result) Memory {
	before := m.zone
	m.zone = zoneMemory{read: At(r.Uptime), next: r.Uptime + zoneInterval, id: s.ID, found: slices.Clone(r.Zones)}
	if len(r.Zones) != 1 || r.Zones[0].Status != "active" {
		m.zone.next = r.Uptime + retryInterval
	}
	if len(before.found) != 1 || len(r.Zones) != 1 || before.found[0].ID != r.Zones[0].ID {
		m.records, m.usage, m.hosts = recordsMemory{unanswered: m.records.unanswered}, usageMemory{}, hostsMemory{}
		m.traces, m.refused, m.limit = nil, nil, 0
	}
	return m
}

func (m Memory) withRead(s Step, r Result) Memory {
	sent := At(r.Sent)
	m.records.answered, m.records.edits = At(r.Uptime), s.edits
	if s.extra {
		m.records.extra = sent
	}
	if len(s.Names) > 0 {
		m.records.view = m.records.view.with(s.Names, r.Records, sent)
		return m
	}
	m.records.view = newView(m.records.view, r.Records, sent)
	m.records.read, m.records.outdated = sent, false
	return m
}

// withBatch returns the Memory after a batch was applied.
func (m Memory) withBatch(s Step, r Result) Memory {
	m.records.edits = nil
	m.turns = afterTurns(m.turns, s.changes)
	if m.limit *= 2; m.limit >= provider.MaxBatch {
		m.limit = 0
	}
	if len(s.Batch.Deletes) > 0 {
		m.usage.full = Instant{}
	}
	changed := len(s.Batch.Patches) + len(s.Batch.Puts) + len(s.Batch.Creates)
	if len(r.Records) != changed || m.records.view == nil {
		m.records.outdated = true
		return m
	}
	m.records.view = m.records.view.applied(s.Batch, r.Records, At(r.Uptime))
	return m
}

// applied returns the view after a batch, which has changed and created the records.
func (v *view) applied(b provider.Batch, records []provider.Record, at Instant) *view {
	gone := map[provider.RecordID]bool{}
	for _, id := range b.Deletes {
		gone[id] = true
	}
	names := map[string]bool{}
	for _, r := range records {
		gone[r.ID] = true
		names[r.Name] = true
	}
	if len(gone) > len(b.Creates) { // a batch that only creates changes no known record
		for name, set := range v.sets {
			if slices.ContainsFunc(set.records, func(r provider.Record) bool { return gone[r.ID] }) {
				names[name] = true
			}
		}
	}
	after := slices.Clone(records)
	for name := range names {
		if set := v.set(name); set != nil {
			for _, r := range set.records {
				if !gone[r.ID] {
					after = append(after, r)
				}
			}
		}
	}
	return v.with(slices.Sorted(maps.Keys(names)), after, at)
}

// afterError returns the Memory after a failed request.
func (m Memory) afterError(s Step, r Result) Memory {
	switch {
	case errors.Is(r.Err, provider.ErrForbidden) && s.Action == ReadCertificates:
		m.hosts = hostsMemory{next: r.Uptime + zoneInterval} // the permission is optional
		return m
	case isForbidden(r.Err):
		return m.forbidden(s, r)
	case s.Action == Apply && isRefusal(r.Err):
		return m.afterRefusal(s, r)
	}
	limited := new(provider.RateLimitedError)
	if !errors.As(r.Err, &limited) {
		m = m.afterUnknown(s, r)
	}
	m.failure = m.failure.next(r)
	return m
}

// afterUnknown returns the Memory after an error that does not tell what has happened.
func (m Memory) afterUnknown(s Step, r Result) Memory {
	switch s.Action {
	case Apply:
		m.records.unanswered = At(r.Uptime + provider.CallTimeout)
		m.records.outdated = true
	case ReadUsage: // the quota is not necessary: Cloudflare reports when it is exceeded
		m.usage = usageMemory{read: At(r.Uptime), next: r.Uptime + retryInterval, full: m.usage.full}
	case ReadCertificates:
		m.hosts.next = r.Uptime + retryInterval
	case ReadRecords:
		m.records.outdated = true
	default: // the zone is still to be read
	}
	return m
}

// next returns the failure after another one, with a growing delay.
func (f failure) next(r Result) failure {
	wait := min(minBackoff<<f.count, maxBackoff)
	if requested, ok := provider.RetryAfter(r.Err); ok {
		wait = max(wait, requested)
	}
	limited := new(provider.RateLimitedError)
	if errors.As(r.Err, &limited) {
		wait = max(limited.RetryAfter, minBackoff)
	} else {
		f.count = min(f.count+1, maxDoublings)
	}
	f.until = r.Uptime + wait
	return f
}

func isForbidden(err error) bool {
	return errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized)
}

// forbidden returns the Memory after the API has rejected the token. Records that can be
// read are still reported.
func (m Memory) forbidden(s Step, r Result) Memory {
	f := failure{forbidden: forbiddenMessage(s.Action, r.Err)}
	if s.Action == Apply && !errors.Is(r.Err, provider.ErrUnauthorized) {
		f.change, f.retry = true, r.Uptime+retryInterval
	} else {
		f.until = r.Uptime + retryInterval
	}
	m.failure = f
	m.records.outdated = s.Action == ReadRecords
	return m
}

func forbiddenMessage(a Action, err error) string {
	if errors.Is(err, provider.ErrUnauthorized) {
		return "Cloudflare rejects the API token for DNS. Replace the token."
	}
	permission := map[Action]string{ReadZone: "Zone: Read", Apply: "DNS: Edit"}[a]
	return "the API token for DNS lacks the permission " + cmp.Or(permission, "DNS: Read") + " for the zone. Give the token the permission, or replace it."
}

// isRefusal reports whether Cloudflare has refused the batch because of a record.
func isRefusal(err error) bool {
	for _, e := range []error{provider.ErrRecordExists, provider.ErrRecordNotFound, provider.ErrQuotaExceeded, provider.ErrInvalidRecord} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// afterRefusal returns the Memory after Cloudflare has refused a batch. It reports only the
// first error, and not its operation: the next batch has half as many operations, until
// one operation is left.
func (m Memory) afterRefusal(s Step, r Result) Memory {
	invalid, quota := errors.Is(r.Err, provider.ErrInvalidRecord), errors.Is(r.Err, provider.ErrQuotaExceeded)
	m.records.outdated = !quota && !invalid
	if invalid && len(s.Batch.Puts) > 0 && !m.recreate {
		m.recreate = true
		return m
	}
	if len(s.Changes) > 1 {
		m.limit = len(s.Changes) / 2
		return m
	}
	m.limit = 1
	if quota {
		m.usage.full = At(r.Uptime)
		return m
	}
	refused := map[string]refusal{}
	maps.Copy(refused, m.refused)
	maps.DeleteFunc(refused, func(_ string, old refusal) bool { return old.until <= r.Uptime })
	for _, c := range s.Changes {
		_, repeated := refused[c.Name]
		refused[c.Name] = refusal{until: r.Uptime + refusalInterval, message: refusalMessage(r.Err), counts: repeated || invalid}
	}
	m.refused = refused
	return m
}

func refusalMessage(err error) string {
	switch {
	case errors.Is(err, provider.ErrRecordExists):
		return "Cloudflare refuses to create the record, because another one exists. Delete it, or exclude the hostname."
	case errors.Is(err, provider.ErrRecordNotFound):
		return "Cloudflare does not find the record to change. The controller tries again in ten minutes."
	default:
		return "Cloudflare rejects the record as invalid. The controller tries again in ten minutes."
	}
}
