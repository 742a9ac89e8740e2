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

// Error codes of the API.
const (
	codeNameExists = 1013 // a live tunnel has the name
	codeConnected  = 1022 // the tunnel has connections
	codeRouted     = 1023 // the tunnel has private network routes
	codeNoRoute    = 7003 // the API has no such path, which says nothing about the tunnel
)

// refusal is an answer by which the API declines a request. It has the words
// of the API and not the client's error, which carries the request with the
// token in its header.
type refusal struct {
	status  int
	codes   []int64
	message string
	kind    error // of package provider, or nil
}

func (r *refusal) Error() string {
	if r.kind == nil {
		return r.message
	}
	return r.kind.Error() + ": " + r.message
}

func (r *refusal) Unwrap() error { return r.kind }

func isRefusal(err error, code int64) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && slices.Contains(r.codes, code)
}

// translate says with the errors of package provider what became of a call
// that failed. resp is its last response, or nil; err is the client's error.
func (p *Provider) translate(ctx context.Context, resp *http.Response, err error) error {
	if limited, ok := errors.AsType[*provider.RateLimitedError](err); ok {
		return limited
	}
	if resp == nil || ctx.Err() != nil {
		return p.interrupted(ctx, err)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		return &provider.RateLimitedError{RetryAfter: retryAfter(resp)}
	}
	said, isAnswer := errors.AsType[*zero_trust.Error](err)
	if !isAnswer || len(said.Errors) == 0 {
		// Not the API's envelope: something on the way answered, or the answer
		// broke off. Its status says nothing about tunnels.
		return &provider.UnavailableError{
			Err:        fmt.Errorf("%s: not an answer of the API", describe(resp)),
			RetryAfter: retryAfter(resp),
		}
	}
	return p.declined(resp, said)
}

// interrupted is for a call without a whole answer.
func (p *Provider) interrupted(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return &provider.UnavailableError{Err: errNoAnswer}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	// Only the text goes on: a transport may put the request into its error.
	return &provider.UnavailableError{Err: errors.New(p.redact(err.Error()))}
}

// declined is for an answer of the API that is not a success.
func (p *Provider) declined(resp *http.Response, said *zero_trust.Error) error {
	r := &refusal{status: resp.StatusCode}
	words := []string{describe(resp)}
	for _, e := range said.Errors {
		r.codes = append(r.codes, e.Code)
		words = append(words, fmt.Sprintf("%s (code %d)", p.redact(e.Message), e.Code))
	}
	r.message = strings.Join(words, ": ")
	switch {
	case r.status >= http.StatusInternalServerError:
		return &provider.UnavailableError{Err: r, RetryAfter: retryAfter(resp)}
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		r.kind = provider.ErrUnauthorized
	case r.status == http.StatusNotFound && !slices.Contains(r.codes, codeNoRoute):
		r.kind = provider.ErrNotFound
	}
	return r
}

// describe names the request and the status of its answer.
func describe(resp *http.Response) string {
	return fmt.Sprintf("%s %s: %d %s",
		resp.Request.Method, resp.Request.URL.Path, resp.StatusCode, http.StatusText(resp.StatusCode))
}

// unexpected is for a success that lacks what it should bring.
func unexpected(what string) error {
	return &provider.UnavailableError{Err: errors.New("the API's answer has " + what)}
}
