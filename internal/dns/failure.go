package dns

import (
	"cmp"
	"errors"
	"maps"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// refusalInterval is when a change that Cloudflare has refused is tried again.
	refusalInterval = 10 * time.Minute
)

// afterError returns the Memory after a failed request.
func (m Memory) afterError(s Step, r Result) Memory {
	switch {
	case errors.Is(r.Err, provider.ErrForbidden) && s.Action == ReadCertificates:
		m.hosts = hostsMemory{next: r.Uptime + zoneInterval} // the permission is optional
		return m
	case pacing.IsForbidden(r.Err):
		return m.forbidden(s, r)
	case s.Action == Apply && isRefusal(r.Err):
		return m.afterRefusal(s, r)
	}
	limited := new(provider.RateLimitedError)
	if !errors.As(r.Err, &limited) {
		m = m.afterUnknown(s, r)
	}
	m.failure = m.failure.Next(r.Err, r.Uptime)
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

// forbidden returns the Memory after the API has rejected the token. Records that can be
// read are still reported.
func (m Memory) forbidden(s Step, r Result) Memory {
	m.failure = pacing.Rejected(forbiddenMessage(s.Action, r.Err), r.Err, s.Action == Apply, r.Uptime)
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
	m.limit, m.turns = 1, afterTurns(m.turns, s.changes)
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
		return "Cloudflare cannot find the record to change. The controller tries again in ten minutes."
	default:
		return "Cloudflare rejects the record as invalid. The controller tries again in ten minutes."
	}
}
