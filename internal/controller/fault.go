package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// fault is why the last attempts failed, and when the next one is due. What
// happens to the Gateway in between is reported, but not tried.
type fault struct {
	count   int
	until   time.Time
	message string
	foreign bool // a user's permission is missing
}

// wait returns how long the next attempt has to wait.
func (f *fault) wait(now time.Time) time.Duration {
	return max(f.until.Sub(now), 0)
}

// add notes a failed attempt and returns when the next one is due.
func (f *fault) add(err error, now time.Time) time.Duration {
	wait := lastRetry
	if f.count < 6 {
		wait = min(firstRetry<<f.count, lastRetry)
	}
	if asked, ok := provider.RetryAfter(err); ok {
		wait = max(wait, asked)
	}
	f.count++
	f.until = now.Add(wait)
	f.message = fmt.Sprintf("%s The tunnel keeps its last configuration. It is tried again in %s.", explain(err), wait.Round(time.Second))
	var foreign *foreignError
	f.foreign = errors.As(err, &foreign)
	return wait
}

// explain says what happened and, where a person has to act, what to do.
func explain(err error) string {
	if errors.Is(err, provider.ErrUnauthorized) {
		return fmt.Sprintf("Cloudflare refused: %v. Check the API token: it needs the permission Cloudflare Tunnel: Edit of the account.", err)
	}
	return fmt.Sprintf("The tunnel is not up to date: %v.", err)
}

// foreignError: the tunnel holds a document that we did not write, and nobody
// has permitted to replace it.
type foreignError struct{ tunnel provider.TunnelID }

func (e *foreignError) Error() string {
	return fmt.Sprintf("tunnel %s was not made by this controller and holds a configuration that it did not write; "+
		"set the annotation %s: \"true\" on the Gateway to have it replaced", e.tunnel, state.TakeoverAnnotation)
}

// accountError: the Gateway's tunnel is in an account that is not ours now.
type accountError struct{ recorded, configured string }

func (e *accountError) Error() string {
	return fmt.Sprintf("the Gateway's tunnel is in account %s, but the controller is configured for account %s; "+
		"configure the former, or delete the Gateway and make it again", e.recorded, e.configured)
}
