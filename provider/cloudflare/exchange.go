package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Second
	// mostRetries is never reached: the pauses use up the patience first.
	mostRetries = 100
)

// repetition says whether a request may be sent again.
type repetition bool

const (
	// idempotent requests may be sent again when they fail.
	idempotent repetition = true
	// once is for requests that are sent once, whatever the answer.
	once repetition = false
)

// call makes one API call. send is given the options that carry the request
// over an exchange of its own; its error becomes one of package provider.
func (p *Provider) call(
	ctx context.Context, repeat repetition, send func(options ...option.RequestOption) error,
) error {
	x := &exchange{
		transport: p.transport,
		budget:    p.budget,
		latest:    time.Now().Add(patience),
		repeat:    repeat,
	}
	var resp *http.Response
	err := send(option.WithHTTPClient(x.client()), option.WithResponseInto(&resp))
	if err == nil {
		return nil
	}
	err = p.translate(ctx, resp, err)
	if limited, ok := errors.AsType[*provider.RateLimitedError](err); ok && x.unsure {
		// Only the last attempt is certain not to have been applied.
		return &provider.UnavailableError{Err: errors.New(err.Error()), RetryAfter: limited.RetryAfter}
	}
	return err
}

// exchange is one API call on the wire: a request and its retries, one after
// the other.
type exchange struct {
	transport http.RoundTripper
	budget    *budget
	latest    time.Time // no wait may last longer than this
	repeat    repetition
	attempts  int
	pause     time.Duration // before the next attempt
	unsure    bool          // whether an attempt was applied is not known
}

// client returns an HTTP client for this exchange. It follows no redirects:
// the API has none, and the token goes nowhere else.
func (x *exchange) client() *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	retrying := retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: x, CheckRedirect: stay},
		RetryMax:     mostRetries,
		CheckRetry:   x.checkRetry,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return x.pause },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	client := retrying.StandardClient()
	client.CheckRedirect = stay
	return client
}

// RoundTrip sends one attempt when the budget allows it.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	x.attempts++
	if err := x.budget.take(req.Context(), x.latest); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as RoundTrip must; nothing was read
		}
		return nil, err
	}
	resp, err := x.transport.RoundTrip(req)
	x.unsure = x.unsure || err != nil || resp.StatusCode >= http.StatusInternalServerError
	if err != nil {
		return nil, err
	}
	resp.Request = req // errors name it, and not every transport sets it
	if resp.StatusCode == http.StatusTooManyRequests {
		x.budget.hold(retryAfter(resp))
	}
	return resp, nil
}

// checkRetry decides about a further attempt and the pause before it.
func (x *exchange) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	again, _ := retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	if !again || !x.mayRepeat(ctx, err) {
		return false, nil // what came of this attempt is the answer
	}
	x.pause = max(retryAfter(resp),
		retryablehttp.DefaultBackoff(shortestPause, longestPause, x.attempts-1, nil))
	return time.Now().Add(x.pause).Before(x.latest), nil
}

// mayRepeat reports whether another attempt is harmless and useful.
func (x *exchange) mayRepeat(ctx context.Context, err error) bool {
	if _, terms := termsOf(ctx); !terms.patient {
		return false
	}
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	return x.repeat == idempotent && !limited
}

// unstatedLimit is how long to stay away after a 429 that does not say.
const unstatedLimit = 30 * time.Second

// retryAfter returns the wait, in whole seconds, that the API asks for with a
// status of 429 or 503, or zero. resp may be nil.
func retryAfter(resp *http.Response) time.Duration {
	wait := wholeSeconds(retryablehttp.DefaultBackoff(0, 0, 0, resp))
	if wait == 0 && resp != nil && resp.StatusCode == http.StatusTooManyRequests {
		return unstatedLimit
	}
	return wait
}
