package cloudflare

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	// maxRetries is never reached: the backoffs exceed maxWait first.
	maxRetries = 100
)

// retryMode states whether a request may be retried.
type retryMode bool

const (
	// idempotent requests may be retried after a failure.
	idempotent retryMode = true
	// sendOnce requests are never retried.
	sendOnce retryMode = false
)

// connection sends the requests with one API token.
type connection struct {
	transport http.RoundTripper
	client    *Client
	budgetKey tokenHash // the API token whose budget the requests use
	// outage limits the requests in progress. Nil means the budget's, which all
	// connections with the same budget share.
	outage *outage
	// redact removes the API token from a text. It is a function because fmt would print
	// the token in a field with any other type.
	redact func(string) string
}

// call makes one API call. It passes send the options that make the client use a new
// exchange for the request, and converts send's error to an error from package provider.
func (c *connection) call(
	ctx context.Context, mode retryMode, send func(options ...option.RequestOption) error,
) error {
	budget := c.client.budget(c.budgetKey)
	x := &exchange{
		transport: c.transport,
		budget:    budget,
		outage:    cmp.Or(c.outage, &budget.outage),
		deadline:  time.Now().Add(maxWait),
		mode:      mode,
	}
	var resp *http.Response
	err := send(option.WithHTTPClient(x.client()), option.WithResponseInto(&resp))
	if err == nil {
		return nil
	}
	err = c.translate(ctx, resp, err)
	if limited, ok := errors.AsType[*provider.RateLimitedError](err); ok && x.maybeApplied {
		// The rate limit rejected only the last attempt. An earlier attempt may have
		// been applied.
		return &provider.UnavailableError{Err: errors.New(err.Error()), RetryAfter: limited.RetryAfter}
	}
	return err
}

// exchange sends the request for one API call and its retries.
type exchange struct {
	transport    http.RoundTripper
	budget       *budget
	outage       *outage
	deadline     time.Time // for all waits
	mode         retryMode
	attempts     int
	backoff      time.Duration // before the next attempt
	maybeApplied bool          // it is unknown whether an attempt was applied
}

// client returns an HTTP client for this exchange. The client follows no redirects:
// the API has none, and the token must not be sent to another server.
func (x *exchange) client() *http.Client {
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	retrying := retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: x, CheckRedirect: noRedirects},
		RetryMax:     maxRetries,
		CheckRetry:   x.checkRetry,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return x.backoff },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	client := retrying.StandardClient()
	client.CheckRedirect = noRedirects
	return client
}

// RoundTrip sends one attempt after it has acquired a request from the budget.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	x.attempts++
	if err := x.outage.begin(); err != nil {
		return nil, notSent(req, err)
	}
	if err := x.budget.acquire(req.Context(), x.deadline); err != nil {
		x.outage.end(time.Time{}, false, err)
		return nil, notSent(req, err)
	}
	sent := time.Now()
	resp, err := x.transport.RoundTrip(req)
	failed := err != nil || resp.StatusCode >= http.StatusInternalServerError
	x.outage.end(sent, failed, err)
	x.maybeApplied = x.maybeApplied || failed
	if err != nil {
		return nil, err
	}
	resp.Request = req // error messages need it, and not every transport sets it
	if resp.StatusCode == http.StatusTooManyRequests {
		x.budget.block(requestedWait(resp))
	}
	return resp, nil
}

// notSent closes the request body, as RoundTrip must, and returns the error.
func notSent(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close() // nothing was read
	}
	return err
}

// checkRetry reports whether to retry the request, and sets the backoff.
func (x *exchange) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	retry, _ := retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	if !retry || !x.mayRetry(ctx, err) {
		return false, nil // nil: the client returns this attempt's response or error
	}
	x.backoff = max(retryAfter(resp),
		retryablehttp.DefaultBackoff(minBackoff, maxBackoff, x.attempts-1, nil))
	return time.Now().Add(x.backoff).Before(x.deadline), nil
}

// mayRetry reports whether another attempt is safe, and whether the priority, the budget and
// the state of the API allow it.
func (x *exchange) mayRetry(ctx context.Context, err error) bool {
	if _, quota := quotaOf(ctx); !quota.waits {
		return false
	}
	_, limited := errors.AsType[*provider.RateLimitedError](err)
	return x.mode == idempotent && !limited && !errors.Is(err, errUnanswered) && x.outage.permitsRetries()
}

// defaultRetryAfter is the wait after a 429 response without a valid Retry-After header.
const defaultRetryAfter = 30 * time.Second

// retryAfter returns the wait after a response with status 429 or 503, in whole
// seconds, or zero. It is at most [provider.MaxRetryAfter]. resp may be nil.
func retryAfter(resp *http.Response) time.Duration {
	return min(requestedWait(resp), provider.MaxRetryAfter)
}

// requestedWait returns the wait that the API requests in a response with status 429 or
// 503, in whole seconds, or zero. resp may be nil.
func requestedWait(resp *http.Response) time.Duration {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	wait := parseRetryAfter(resp.Header.Get("Retry-After"))
	if wait == 0 && resp.StatusCode == http.StatusTooManyRequests {
		return defaultRetryAfter
	}
	return wait
}

// parseRetryAfter returns the duration in a Retry-After header, which is a number of
// seconds or a date, in whole seconds. It returns zero for an invalid value and for a
// date in the past, and the longest duration for a larger number.
func parseRetryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second))) * time.Second // #nosec G115 -- limited by min
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return wholeSeconds(min(max(time.Until(date), 0), math.MaxInt64-time.Second))
}
