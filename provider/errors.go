package provider

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound means that the tunnel does not exist, or was deleted.
	ErrNotFound = errors.New("tunnel not found")
	// ErrUnauthorized means that the API refuses the token, or that the token
	// lacks a permission. A retry helps only after a person has changed that.
	ErrUnauthorized = errors.New("the Cloudflare API refused the API token")
	// ErrLocallyManaged means that the tunnel's connectors take their
	// configuration from a file and ignore the one that the API holds. (The API's
	// config_src, or source, is "local".)
	ErrLocallyManaged = errors.New("the tunnel is locally managed")
	// ErrNameExists means that a live tunnel of the account has the name.
	ErrNameExists = errors.New("a tunnel with this name already exists")
	// ErrConnected means that the tunnel cannot be deleted while Cloudflare lists
	// connections of it. (The API's code 1022.)
	ErrConnected = errors.New("the tunnel has connections")
	// ErrRoutes means that the tunnel cannot be deleted while private network
	// routes point to it. (The API's code 1023. It has been reported for tunnels
	// whose configuration enables warp-routing, too.)
	ErrRoutes = errors.New("the tunnel has private network routes")
)

// InvalidError is a configuration that the API or the connector rejects. Sending
// the same one again gives the same answer.
type InvalidError struct {
	// Rule is the index of the invalid rule, or -1 when it is not one rule.
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

// RateLimitedError means that no call may be made for a while: the API answered
// 429, or the API token's own budget of requests is used up.
type RateLimitedError struct {
	// RetryAfter is how long to wait from now.
	RetryAfter time.Duration
	// Budget is true when the API token's own budget of requests is used up: the
	// API has refused nothing. It is false for a 429 of the API, and while calls
	// are held back after one.
	Budget bool
}

func (e *RateLimitedError) Error() string {
	if e.Budget {
		return fmt.Sprintf("budget of Cloudflare API requests used up; retry in %s", e.RetryAfter.Round(time.Second))
	}
	return fmt.Sprintf("Cloudflare API rate limit reached; retry in %s", e.RetryAfter.Round(time.Second))
}

// UnavailableError is a failure that may pass by itself: no connection, an
// answer that broke off, a status of 500 and above. Whether a change was applied
// is not known.
type UnavailableError struct {
	// Err is what happened.
	Err error
	// RetryAfter is the wait that the API asked for, or zero.
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return "Cloudflare API unavailable: " + e.Err.Error() }

// Unwrap returns what happened.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsTransient reports whether the same call may succeed later although nothing is
// changed in between.
func IsTransient(err error) bool {
	var limited *RateLimitedError
	var unavailable *UnavailableError
	return errors.As(err, &limited) || errors.As(err, &unavailable)
}

// RetryAfter returns how long err asks to wait, and whether it asks for a wait.
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
