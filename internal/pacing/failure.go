// Package pacing decides when requests to the Cloudflare API follow failed ones. Packages dns
// and access use it for the requests about a zone and about an account.
package pacing

import (
	"errors"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// MaxCount limits the number of consecutive failures that is counted.
	MaxCount = 9
	// RetryInterval is when a request is sent again after the API token was rejected.
	RetryInterval = 10 * time.Minute
)

// Failure is what the last error means for the next request. The zero value means that there was
// none. All times are uptimes of the process.
type Failure struct {
	// count is the number of consecutive failed requests, at most MaxCount.
	count int
	// until is when the next request may be sent.
	until time.Duration
	// forbidden is why the API token cannot be used, as a message, or "".
	forbidden string
	// change reports whether only changes are forbidden, until retry.
	change bool
	retry  time.Duration
}

// Until returns the uptime at which the next request may be sent.
func (f Failure) Until() time.Duration { return f.until }

// Forbidden returns why the API token cannot be used, as a message, or "".
func (f Failure) Forbidden() string { return f.forbidden }

// ChangesForbiddenUntil returns when the next change may be sent, if the API token can only be used
// to read.
func (f Failure) ChangesForbiddenUntil() (retry time.Duration, forbidden bool) {
	return f.retry, f.change
}

// Next returns the failure after another error at the uptime, with a growing delay. Rate limits do
// not count as failures. An error that says when to retry delays the next request until then.
func (f Failure) Next(err error, uptime time.Duration) Failure {
	wait := Backoff(f.count)
	if requested, ok := provider.RetryAfter(err); ok {
		wait = max(wait, requested)
	}
	limited := new(provider.RateLimitedError)
	if errors.As(err, &limited) {
		wait = max(limited.RetryAfter, minBackoff)
	} else {
		f.count = min(f.count+1, MaxCount)
	}
	f.until = uptime + wait
	return f
}

// AtMost returns the failure with a delay that ends at the uptime or before.
func (f Failure) AtMost(uptime time.Duration) Failure {
	f.until = min(f.until, uptime)
	return f
}

// Counted returns the failure without its delay.
func (f Failure) Counted() Failure { return Failure{count: f.count} }

// AfterSuccess returns the failure to remember after a request has succeeded. If Cloudflare refuses
// changes with the API token, the failure remains, without a delay, until a change succeeds.
func (f Failure) AfterSuccess(isChange bool) Failure {
	if isChange || !f.change {
		return Failure{}
	}
	f.count, f.until = 0, 0
	return f
}

// Rejected returns the failure after Cloudflare has rejected the API token. message says why. If
// the token is valid and the request was a change, what can be read is still read.
func Rejected(message string, err error, isChange bool, uptime time.Duration) Failure {
	f := Failure{forbidden: message}
	if isChange && !errors.Is(err, provider.ErrUnauthorized) {
		f.change, f.retry = true, uptime+RetryInterval
	} else {
		f.until = uptime + RetryInterval
	}
	return f
}

// IsForbidden reports whether Cloudflare has rejected the API token.
func IsForbidden(err error) bool {
	return errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized)
}

// Backoff returns how long to wait after a failure that follows count other ones.
func Backoff(count int) time.Duration { return min(minBackoff<<min(count, MaxCount), maxBackoff) }
