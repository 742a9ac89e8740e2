package provider

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound: the tunnel does not exist, or was deleted.
	ErrNotFound = errors.New("tunnel not found")
	// ErrUnauthorized: the API refuses the token, or the token lacks a
	// permission. Trying again helps only after somebody mends it.
	ErrUnauthorized = errors.New("the API token was refused")
	// ErrLocallyManaged: the tunnel's connectors take their configuration from a
	// file and ignore the one that the API holds. It is somebody else's, until
	// that person migrates it. (The API's config_src, or source, is "local".)
	ErrLocallyManaged = errors.New("the tunnel is locally managed")
	// ErrConnected: the tunnel cannot be deleted while connectors run.
	ErrConnected = errors.New("the tunnel still has running connectors")
)

// InvalidError is a document or a request that the API or the connector
// rejects. Sending the same again gives the same answer.
type InvalidError struct {
	// Rule is the index of the offending rule, or -1 when it is not one rule.
	Rule int
	// Message says what is wrong.
	Message string
}

func (e *InvalidError) Error() string {
	if e.Rule < 0 {
		return "invalid configuration: " + e.Message
	}
	return fmt.Sprintf("invalid configuration: ingress rule %d: %s", e.Rule, e.Message)
}

// RateLimitedError says that no call may be made for a while: the API
// answered 429, or the token's own budget is spent.
type RateLimitedError struct {
	// RetryAfter is how long to wait from now.
	RetryAfter time.Duration
	// Budget is true when the token's own budget is spent: the API has refused
	// nothing, and it is only a matter of waiting for one's turn. It is false
	// for a 429 of the API and while calls are held back after one.
	Budget bool
}

func (e *RateLimitedError) Error() string {
	if e.Budget {
		return fmt.Sprintf("waiting for a turn in the budget of API requests: try again in %s",
			e.RetryAfter.Round(time.Second))
	}
	return fmt.Sprintf("rate limited by the API: try again in %s", e.RetryAfter.Round(time.Second))
}

// UnavailableError is a failure that may pass by itself: no connection, an
// answer that broke off, a status of 500 and above. Whether a write was
// applied is not known.
type UnavailableError struct {
	// Err is what happened.
	Err error
	// RetryAfter is the wait that the API asked for, or zero.
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return "the API is unavailable: " + e.Err.Error() }

// Unwrap returns what happened.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsTransient reports whether trying again later may help although nobody
// changes anything.
func IsTransient(err error) bool {
	var limited *RateLimitedError
	var unavailable *UnavailableError
	return errors.As(err, &limited) || errors.As(err, &unavailable)
}

// RetryAfter returns the wait that err asks for, and whether it asks for one.
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
