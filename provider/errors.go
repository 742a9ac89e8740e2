package provider

import (
	"errors"
	"fmt"
	"time"
)

// MaxRetryAfter is the maximum wait that an API response can cause. A Cloudflare API rate
// limit lasts five minutes, so if a longer wait is requested, the API or a proxy is
// wrong.
const MaxRetryAfter = 10 * time.Minute

// Errors that callers distinguish with errors.Is.
var (
	// ErrNotFound means that the tunnel, or the application of an [Access], does not exist,
	// or was deleted.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized means that the API rejects the API token, or that the token
	// lacks a permission. A retry succeeds only after an administrator has fixed the
	// token. (HTTP status 401 or 403. A [DNS] and an [Access] return [ErrForbidden] for
	// 403.)
	ErrUnauthorized = errors.New("the Cloudflare API rejected the API token")
	// ErrLocallyManaged means that the tunnel's connectors take their
	// configuration from a file and ignore the configuration in the API. (The API's
	// config_src, or source, is "local".)
	ErrLocallyManaged = errors.New("the tunnel is locally managed")
	// ErrNameExists means that a live tunnel in the account has the name. (API error code
	// 1013.)
	ErrNameExists = errors.New("a tunnel with this name already exists")
	// ErrConnected means that the tunnel cannot be deleted while Cloudflare lists
	// connections for it. (API error code 1022.)
	ErrConnected = errors.New("the tunnel has connections")
	// ErrRoutes means that the tunnel cannot be deleted while private network
	// routes point to it. (API error code 1023. Users have also reported it for
	// tunnels whose configuration enables warp-routing.)
	ErrRoutes = errors.New("the tunnel has private network routes")
)

// Errors of a [DNS] and of an [Access], which callers distinguish with errors.Is.
var (
	// ErrForbidden means that the API token lacks a permission for the zone or the account,
	// or that the zone does not exist: Cloudflare does not reveal which zones exist. Some
	// endpoints also return it for a token that was revoked. A retry succeeds only after an
	// administrator has fixed the token or the zone. (HTTP status 403.)
	ErrForbidden = errors.New("the API token lacks a permission for the zone or account, or the zone does not exist")
	// ErrRecordExists means that a record exists with the same name, which cannot share
	// the name with the new record. (API error codes 81053, 81054, 81056 and 81058; 81057
	// in older reports.)
	ErrRecordExists = errors.New("a DNS record with this name already exists")
	// ErrRecordNotFound means that a record to be changed or deleted does not exist. (API
	// error code 81044.)
	ErrRecordNotFound = errors.New("DNS record not found")
	// ErrQuotaExceeded means that the zone has as many records as it can have, or the
	// account as many applications. (API error code 81045, or a text about a maximum
	// number.)
	ErrQuotaExceeded = errors.New("the Cloudflare quota of DNS records or of applications is exceeded")
	// ErrApplicationExists means that an application exists for the hostname. (HTTP status
	// 409, API error code 11010.)
	ErrApplicationExists = errors.New("an application for this hostname already exists")
	// ErrApplicationChanged means that an application to be changed or deleted differs from
	// what was last read. Nothing was written.
	ErrApplicationChanged = errors.New("the application was changed since it was last read")
	// ErrTagNotFound means that a tag of an application does not exist.
	ErrTagNotFound = errors.New("a tag of the application does not exist")
	// ErrPolicyNotFound means that a reusable policy does not exist.
	ErrPolicyNotFound = errors.New("a policy of the application does not exist")
	// ErrNoZone means that the account has no zone for the hostname.
	ErrNoZone = errors.New("the account has no zone for the hostname")
	// ErrInvalidRecord means that the API rejects a record. The same batch is always
	// rejected. (API error code 1004, or a code from 9000 to 9999. 9313 means that the
	// comment is too long.)
	ErrInvalidRecord = errors.New("invalid DNS record")
)

// InvalidError means that the API or the connector rejects a configuration. The
// same configuration is always rejected.
type InvalidError struct {
	// Rule is the invalid ingress rule's index, or -1 when the error is not about one
	// rule.
	Rule int
	// Message describes the error.
	Message string
}

func (e *InvalidError) Error() string {
	if e.Rule < 0 {
		return "invalid configuration: " + e.Message
	}
	return fmt.Sprintf("invalid configuration: ingress rule %d: %s", e.Rule, e.Message)
}

// RateLimitedError means that a call was rejected before it changed anything: the API
// responded with status 429, or the API token's request budget is exhausted.
type RateLimitedError struct {
	// RetryAfter is the time to wait before the next attempt.
	RetryAfter time.Duration
	// Requested is the wait that the API requested, which is not limited to
	// [MaxRetryAfter]; zero if it requested none.
	Requested time.Duration
	// Budget is true when the API request budget is exhausted and no request was
	// sent. It is false after a 429, also for calls that are rejected without a
	// request until the wait that the 429 asked for is over.
	Budget bool
}

func (e *RateLimitedError) Error() string {
	if e.Budget {
		return fmt.Sprintf("Cloudflare API request budget exhausted; retry in %s", e.RetryAfter.Round(time.Second))
	}
	return fmt.Sprintf("Cloudflare API rate limit reached; retry in %s%s", e.RetryAfter.Round(time.Second), describeCap(e.Requested))
}

// describeCap returns a message suffix if the API requested a longer wait than
// [MaxRetryAfter], or "".
func describeCap(requested time.Duration) string {
	if requested <= MaxRetryAfter {
		return ""
	}
	return fmt.Sprintf(" (the API requested %s; the controller waits at most %s)", requested, MaxRetryAfter)
}

// UnavailableError is a temporary failure: no connection, an incomplete response, or a
// status of 500 or above. It is unknown whether a change was applied.
type UnavailableError struct {
	// Err is the cause.
	Err error
	// RetryAfter is the time to wait before the next attempt as the API asked for, or
	// zero. It is at most [MaxRetryAfter].
	RetryAfter time.Duration
	// Requested is the wait that the API requested, or zero.
	Requested time.Duration
}

func (e *UnavailableError) Error() string {
	return "Cloudflare API unavailable: " + e.Err.Error() + describeCap(e.Requested)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsTransient reports whether err is temporary: the same call may succeed later
// without any other change. It is true for a [*RateLimitedError] and an
// [*UnavailableError].
func IsTransient(err error) bool {
	var limited *RateLimitedError
	var unavailable *UnavailableError
	return errors.As(err, &limited) || errors.As(err, &unavailable)
}

// RetryAfter returns the time to wait before the next attempt, and whether err
// contains such a time.
func RetryAfter(err error) (time.Duration, bool) {
	var limited *RateLimitedError
	if errors.As(err, &limited) {
		return limited.RetryAfter, true
	}
	var unavailable *UnavailableError
	if errors.As(err, &unavailable) && unavailable.RetryAfter > 0 {
		return unavailable.RetryAfter, true
	}
	return 0, false
}
