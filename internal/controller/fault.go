package controller

import (
	"errors"
	"fmt"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

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
	// unattended: only a person can help. That is looked at in every pass, since
	// it costs no call to the API.
	unattended bool
}

// wait returns how long the next attempt has to wait.
func (f *fault) wait(now time.Time) time.Duration {
	if f.unattended {
		return 0
	}
	return max(f.until.Sub(now), 0)
}

// add notes a failed attempt and returns when the next one is due.
func (f *fault) add(err error, now time.Time) time.Duration {
	f.count++
	_, f.unattended = errors.AsType[personError](err)
	if f.unattended {
		f.message = explain(err) + " The tunnel keeps its last configuration."
		return lastRetry
	}
	wait := lastRetry
	if f.count < 7 {
		wait = min(firstRetry<<(f.count-1), lastRetry)
	}
	if asked, ok := provider.RetryAfter(err); ok {
		wait = max(wait, asked)
	}
	f.until = now.Add(wait)
	f.message = fmt.Sprintf("%s The tunnel keeps its last configuration. It is tried again in %s.", explain(err), wait.Round(time.Second))
	return wait
}

// personError is an error that ends only when a person does something.
type personError interface {
	error
	askPerson()
}

func (*foreignError) askPerson() {}
func (*accountError) askPerson() {}
func (*heldError) askPerson()    {}

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

// heldError: another controller has not let go of the Gateway yet.
type heldError struct{ controller gatewayv1.GatewayController }

func (e *heldError) Error() string {
	return fmt.Sprintf("controller %s still holds the Gateway's tunnel, as the annotation %s says; it has to let go first",
		e.controller, state.RecordAnnotation)
}
