package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// API error codes.
const (
	codeNameExists = 1013 // a live tunnel has the name
	codeConnected  = 1022 // the tunnel has connections
	codeRoutes     = 1023 // the tunnel has private network routes
	codeNoSuchPath = 7003 // the request path is unknown; this does not mean that the tunnel is gone
)

// responseError is an error response from the API. It contains the API's message but not
// the client's error, because that includes the request and thus the token in its header.
type responseError struct {
	status  int
	codes   []int64
	texts   []string // the API's messages
	message string
	class   error // an error from package provider, or nil
}

func (e *responseError) Error() string {
	if e.class == nil {
		return e.message
	}
	return e.class.Error() + ": " + e.message
}

func (e *responseError) Unwrap() error { return e.class }

func hasCode(err error, code int64) bool {
	e, ok := errors.AsType[*responseError](err)
	return ok && slices.Contains(e.codes, code)
}

// translate returns the error from package provider for a call that failed. resp is the
// call's last response, or nil; err is the client's error.
func (c *connection) translate(ctx context.Context, resp *http.Response, err error) error {
	if limited, ok := errors.AsType[*provider.RateLimitedError](err); ok {
		return limited
	}
	if resp == nil || ctx.Err() != nil {
		return c.noResponse(ctx, err)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		return &provider.RateLimitedError{RetryAfter: retryAfter(resp), Requested: requestedWait(resp)}
	}
	envelope, ok := errors.AsType[*zero_trust.Error](err)
	if !ok || len(envelope.Errors) == 0 {
		// Without the API's envelope, the response comes from a proxy or is
		// incomplete. Its status does not describe the tunnel.
		return &provider.UnavailableError{
			Err:        fmt.Errorf("%s: the response is incomplete or not from the Cloudflare API", describe(resp)),
			RetryAfter: retryAfter(resp), Requested: requestedWait(resp),
		}
	}
	return c.errorResponse(resp, envelope)
}

// noResponse returns the error for a call without a complete response.
func (c *connection) noResponse(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return &provider.UnavailableError{Err: errTimeout}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	// The error is reduced to its text because a transport may include the request in
	// its error.
	return &provider.UnavailableError{Err: errors.New(c.redact(err.Error()))}
}

// errorResponse returns the error for an error response from the API.
func (c *connection) errorResponse(resp *http.Response, envelope *zero_trust.Error) error {
	e := &responseError{status: resp.StatusCode}
	parts := []string{describe(resp)}
	for _, entry := range envelope.Errors {
		e.codes = append(e.codes, entry.Code)
		text := c.redact(entry.Message)
		e.texts = append(e.texts, text)
		parts = append(parts, fmt.Sprintf("%s (code %d)", text, entry.Code))
	}
	e.message = strings.Join(parts, ": ")
	switch {
	case e.status >= http.StatusInternalServerError:
		return &provider.UnavailableError{Err: e, RetryAfter: retryAfter(resp), Requested: requestedWait(resp)}
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		e.class = provider.ErrUnauthorized
	case e.status == http.StatusNotFound && !slices.Contains(e.codes, codeNoSuchPath):
		e.class = provider.ErrNotFound
	}
	return e
}

// describe returns the request's method and path and the response status.
func describe(resp *http.Response) string {
	return fmt.Sprintf("%s %s: %d %s",
		resp.Request.Method, resp.Request.URL.Path, resp.StatusCode, http.StatusText(resp.StatusCode))
}

// unexpected returns the error for a success response with unexpected content.
func unexpected(problem string) error {
	return &provider.UnavailableError{Err: errors.New("unexpected API response: " + problem)}
}
