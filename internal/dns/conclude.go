package dns

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, s Step, r Result) Memory {
	if s.Ends() || s.Action == ConcludeAdoptions {
		return m
	}
	if r.Err != nil {
		m = m.afterError(s, r)
		if provider.IsTransient(r.Err) {
			m.blocked = max(m.failure.Until(), r.Uptime)
		}
		return m
	}
	m.failure = m.failure.AfterSuccess(s.Action == Apply)
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
