package controller

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// errGone: the Gateway does not exist any more, or was made anew.
var errGone = errors.New("the Gateway is gone")

// fault is why the last attempts failed, and when the next one is due. What
// happens to the Gateway in between is reported, but not tried.
type fault struct {
	count   int
	until   time.Time
	cause   string // without the wait, to notice another one
	message string
	// needsPerson: only a person can help. That is looked at in every pass, since
	// it costs no call to the API.
	needsPerson bool
	// document is the hash of the one that was refused; another one is tried at
	// once.
	document string
}

// wait returns how long the next attempt has to wait, given the hash of the
// document that is wanted now.
func (f *fault) wait(now time.Time, document string) time.Duration {
	if f.needsPerson || f.document != "" && f.document != document {
		return 0
	}
	return max(f.until.Sub(now), 0)
}

// attempt is what failed, in the words of messages, events and the log.
type attempt struct {
	outcome, event, action, log string
	document                    string // the hash of the document, of a push
}

// add notes a failed attempt and returns when the next one is due.
func (f *fault) add(err error, a attempt, now time.Time) time.Duration {
	f.cause = a.outcome + " " + explain(err)
	_, f.needsPerson = errors.AsType[personError](err)
	if f.needsPerson {
		f.message = f.cause
		return lastRetry
	}
	wait := f.backOff(err)
	f.until = now.Add(wait)
	f.message = tryAgain(f.cause, wait)
	f.document = ""
	if _, refused := errors.AsType[*provider.InvalidError](err); refused {
		f.document = a.document
	}
	return wait
}

// tryAgain adds to a cause when the next attempt is due.
func tryAgain(cause string, wait time.Duration) string {
	return fmt.Sprintf("%s It is tried again in %s.", cause, wait.Round(time.Second))
}

// backOff returns how long to wait before the next attempt. A limit is over
// when the API says so, not earlier and not later.
func (f *fault) backOff(err error) time.Duration {
	asked, _ := provider.RetryAfter(err)
	if _, limited := errors.AsType[*provider.RateLimitedError](err); limited {
		return asked
	}
	wait := lastRetry
	if f.count < 6 {
		wait = min(firstRetry<<f.count, lastRetry)
	}
	f.count++
	return max(wait, asked)
}

// explain says what happened, in words that stay the same from one attempt to
// the next, and what to do where a person has to act. Details are in the log
// and in the event.
func explain(err error) string {
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	_, unavailable := errors.AsType[*provider.UnavailableError](err)
	switch {
	case errors.Is(err, provider.ErrUnauthorized):
		return "Cloudflare refuses the API token; it needs the permission Cloudflare Tunnel: Edit of the account."
	case limited:
		return "Cloudflare's API admits no more requests for a while."
	case unavailable:
		return "Cloudflare's API cannot be reached, or does not answer as it should."
	default:
		return capitalise(err.Error()) + "."
	}
}

// ofProvider says how the results of calls show in the metrics as errors; those
// that are not in it are told from the errors.
var ofProvider = map[metrics.Result]metrics.ErrorKind{
	metrics.ResultUnauthorized: metrics.ErrorUnauthorized,
	metrics.ResultRateLimited:  metrics.ErrorRateLimited,
	metrics.ResultDeferred:     metrics.ErrorRateLimited,
	metrics.ResultUnavailable:  metrics.ErrorUnavailable,
	metrics.ResultInvalid:      metrics.ErrorInvalid,
	metrics.ResultConnected:    metrics.ErrorConnected,
	metrics.ResultNotFound:     metrics.ErrorNotFound,
	metrics.ResultLocal:        metrics.ErrorLocal,
}

// errorKinds says how our own errors show in the metrics.
var errorKinds = []struct {
	kind metrics.ErrorKind
	is   func(error) bool
}{
	{metrics.ErrorNotFound, isA[*missingError]},
	{metrics.ErrorLocal, isA[*localError]},
	{metrics.ErrorCredentials, isA[*credentialsError]},
	{metrics.ErrorDriftFight, isA[*contestedError]},
	{metrics.ErrorForeignDocument, isA[*foreignError]},
	{metrics.ErrorTunnelConflict, func(err error) bool {
		return isA[*takenError](err) || isA[*strangerError](err) || isA[*otherTunnelError](err) || isA[*accountError](err)
	}},
	{metrics.ErrorObjectTaken, func(err error) bool { return isA[*secretTakenError](err) || isA[*objectTakenError](err) }},
	{metrics.ErrorHeld, isA[*heldError]},
	{metrics.ErrorDeletion, func(err error) bool { return isA[*policyError](err) || isA[*pausedError](err) }},
	// Whatever keeps Cloudflare from being reached is a [provider.UnavailableError],
	// so that any other URL is one of the API server.
	{metrics.ErrorKubernetes, func(err error) bool { return isA[*apierrors.StatusError](err) || isA[*url.Error](err) }},
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func errorKind(err error) metrics.ErrorKind {
	if kind, ok := ofProvider[metrics.ResultOf(err)]; ok {
		return kind
	}
	for _, known := range errorKinds {
		if known.is(err) {
			return known.kind
		}
	}
	return metrics.ErrorOther
}

func capitalise(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// personError is an error that ends only when a person does something.
type personError interface {
	error
	askPerson()
}

func (*foreignError) askPerson()     {}
func (*contestedError) askPerson()   {}
func (*strangerError) askPerson()    {}
func (*accountError) askPerson()     {}
func (*otherTunnelError) askPerson() {}
func (*missingError) askPerson()     {}
func (*localError) askPerson()       {}
func (*heldError) askPerson()        {}
func (*policyError) askPerson()      {}
func (*pausedError) askPerson()      {}
func (*credentialsError) askPerson() {}
func (*secretTakenError) askPerson() {}

// accountError: the Gateway's tunnel is in an account that is not ours now.
type accountError struct{ recorded, configured string }

func (e *accountError) Error() string {
	return fmt.Sprintf("the Gateway's tunnel is in account %s, but the controller is configured for account %s; "+
		"configure the former, or take the annotation %s off the Gateway to get a tunnel in the latter", e.recorded, e.configured, state.RecordAnnotation)
}

// heldError: another controller has not let go of the Gateway yet.
type heldError struct{ controller gatewayv1.GatewayController }

func (e *heldError) Error() string {
	return fmt.Sprintf("controller %s still holds the Gateway's tunnel, as the annotation %s says, and has to let go first; "+
		"if it is gone for good, remove that annotation and the finalizer %s", e.controller, state.RecordAnnotation, state.Finalizer)
}

// failed notes a failed attempt in the fault and tells of each cause once. It
// returns the message, and when the next attempt is due.
func (ts *tunnels) failed(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, err error, f *fault, a attempt) (string, time.Duration) {
	t.happened.failures = append(t.happened.failures, err)
	before := *f
	wait := f.add(err, a, ts.now())
	if f.message != before.message {
		logFault(ctx, err, a.log, t.record.Tunnel, wait)
	}
	if f.cause != before.cause {
		ts.event(g, corev1.EventTypeWarning, a.event, a.action, fmt.Sprintf("%s (%v)", f.message, err))
	}
	return f.message, wait
}

// logFault logs as an error what somebody has to look at, and a failure that may
// pass by itself as information.
func logFault(ctx context.Context, err error, message string, tunnel provider.TunnelID, again time.Duration) {
	logger := log.FromContext(ctx).WithValues("tunnel", tunnel, "again", again.String())
	if provider.IsTransient(err) {
		logger.Info(message, "cause", err.Error())
		return
	}
	logger.Error(err, message)
}
