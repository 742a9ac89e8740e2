package access

import (
	"errors"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// maxWriteBackoff limits the backoff of all writes, because the failing ones can be about
	// one hostname.
	maxWriteBackoff = 30 * time.Second
	// finalCount is after how many rejections a wildcard no longer waits for a hostname.
	finalCount = 3
	// retryInterval is when a request that Cloudflare has refused is tried again.
	retryInterval = 10 * time.Minute
)

// afterReadError returns the Memory after a list that failed.
func (m Memory) afterReadError(s Step, r Result) Memory {
	if pacing.IsForbidden(r.Err) {
		return m.forbidden(r.Err, r.Uptime, false)
	}
	m.applications.outdated = m.applications.outdated || s.Action == ReadApplications
	m.failure = m.failure.Next(r.Err, r.Uptime)
	return m
}

// forbidden returns the Memory after the API has rejected the token. change reports whether
// it was a write: what can be read is still reported.
func (m Memory) forbidden(err error, uptime time.Duration, change bool) Memory {
	message := "the API token for Access lacks the permission Access: Apps and Policies: Edit for the account. Give the token the permission, or replace it."
	if errors.Is(err, provider.ErrUnauthorized) {
		message = "Cloudflare rejects the API token for Access. Replace the token."
	}
	m.failure = pacing.Rejected(message, err, change, uptime)
	return m
}

// refused are the errors with which Cloudflare refuses a write because of the hostname, and
// what they mean.
var refused = []struct {
	err     error
	reason  conditions.Reason
	message string
}{
	{provider.ErrApplicationExists, conditions.ReasonApplicationExists, "Cloudflare refuses to create the application, because another one exists for the hostname. Remove that one, or use its AUD tag in an entry."},
	{provider.ErrPolicyNotFound, conditions.ReasonPolicyNotFound, "Cloudflare cannot find a policy of the application. Correct the IDs in spec.access.policies of the GatewayClass."},
	{provider.ErrNoZone, conditions.ReasonHostnameNotPermitted, "the Cloudflare account has no active zone for the hostname, so it can have no application. Add the zone, or use another hostname."},
	{provider.ErrQuotaExceeded, conditions.ReasonLimitExceeded, "the Cloudflare account has as many applications of Cloudflare Access as it can have. Remove applications or demands."},
}

// failed adds what a failed write means.
func (w *writer) failed(write *Write, c *change, err error) {
	limited := new(provider.RateLimitedError)
	switch {
	case pacing.IsForbidden(err):
		w.Memory = w.forbidden(err, w.result.Uptime, true)
		return
	case errors.As(err, &limited):
		w.failure = w.failure.Next(err, w.result.Uptime)
		return
	case errors.Is(err, provider.ErrNotFound), errors.Is(err, provider.ErrApplicationChanged):
		w.applications.outdated = true
		w.refuse(write.Hostname, refusal{reason: conditions.ReasonPending, message: changedSince})
		return
	case errors.Is(err, provider.ErrTagNotFound):
		for _, tag := range write.Spec.Tags {
			delete(w.tags, tag)
		}
		w.refuse(write.Hostname, refusal{reason: conditions.ReasonPending, message: "a tag of the application was deleted. The controller creates it again."})
		return
	}
	for _, r := range refused {
		if errors.Is(err, r.err) {
			w.afterRefusal(write.Hostname, refusal{reason: r.reason, message: r.message}, err)
			return
		}
	}
	w.lose(write, c, err)
}

const lost = "the last request to Cloudflare failed. The controller repeats it."

const changedSince = "the application has changed since the controller read it. The controller reads the applications again."

// afterRefusal adds that Cloudflare has refused the write.
func (w *writer) afterRefusal(hostname string, r refusal, err error) {
	switch {
	case errors.Is(err, provider.ErrApplicationExists):
		w.applications.outdated = true
		if w.refused[hostname].count == 0 {
			r.reason, r.message = conditions.ReasonPending, changedSince
			w.refuse(hostname, r)
			return
		}
	case errors.Is(err, provider.ErrPolicyNotFound):
		w.policies.outdated = true
	case errors.Is(err, provider.ErrQuotaExceeded):
		w.full = At(w.result.Uptime)
	}
	r.final = true
	w.refuse(hostname, r)
	r = w.refused[hostname]
	r.until = w.result.Uptime + retryInterval
	if errors.Is(err, provider.ErrPolicyNotFound) {
		r.until = w.result.Uptime + missingInterval
	}
	w.refused[hostname] = r
}

// refuse notes that the write is not repeated for a while. The first repetition is made at
// once, after a list.
func (w *writer) refuse(hostname string, r refusal) {
	r.count = min(w.refused[hostname].count+1, pacing.MaxCount)
	r.until = w.result.Uptime
	if r.count > 1 {
		r.until += pacing.Backoff(r.count)
	}
	w.refused[hostname] = r
}

// lose notes that Cloudflare may have applied the write, or may still do so. An error that is
// not temporary is about the hostname alone.
func (w *writer) lose(write *Write, c *change, err error) {
	r := refusal{reason: conditions.ReasonPending, message: lost}
	r.count = min(w.refused[write.Hostname].count+1, pacing.MaxCount)
	r.until = w.result.Uptime + pacing.Backoff(r.count-1)
	if unavailable := new(provider.UnavailableError); errors.As(err, &unavailable) {
		w.lost++
	} else {
		r.message = "Cloudflare rejects the application. The log of the controller has the error. The controller repeats the request."
		r.final = r.count >= finalCount
	}
	w.refused[write.Hostname] = r
	if write.Operation == EnsureTag || write.Operation == Revoke {
		return // a repetition changes nothing
	}
	w.unanswered[write.Hostname] = w.result.Uptime + provider.CallTimeout
	w.count(c)
	if c.revokes { // tokens that were issued since the last revocation can be affected
		t := w.traces[c.key]
		t.revoked = false
		w.traces[c.key] = t
	}
}

// concluded returns the Memory after all writes. While none succeeds, requests to the account
// wait.
func (w *writer) concluded() Memory {
	m := w.Memory
	switch {
	case m.failure.Forbidden() != "" || m.failure.Until() > w.result.Uptime:
	case w.lost > 0 && w.succeeded == 0:
		m.failure = m.failure.Next(nil, w.result.Uptime).AtMost(w.result.Uptime + maxWriteBackoff)
	default:
		m.failure = pacing.Failure{}
	}
	return m
}
