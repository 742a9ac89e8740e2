package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// codeApplicationExists is the API's code for an application with the same hostname. For
// most other mistakes, the API has one code, 12130: "access.api.error.invalid_request", and
// only the text tells them apart. (Source: error messages in public repositories.)
const codeApplicationExists = 11010

// send makes one API call like [connection.call], and returns the errors of a
// [provider.Access].
func (a *Access) send(ctx context.Context, mode retryMode, call func(options ...option.RequestOption) error) error {
	err := a.call(ctx, mode, call)
	if e, ok := errors.AsType[*responseError](err); ok && e.status < http.StatusInternalServerError {
		e.class = accessClass(e)
	}
	return err
}

// accessClass returns the error of a [provider.Access] for an error response, or nil.
func accessClass(e *responseError) error {
	switch {
	case e.status == http.StatusUnauthorized:
		return provider.ErrUnauthorized
	case e.status == http.StatusForbidden:
		return provider.ErrForbidden
	case slices.Contains(e.codes, codeApplicationExists):
		return provider.ErrApplicationExists
	}
	for _, text := range e.texts {
		if class := classOfText(strings.ReplaceAll(strings.ToLower(text), "_", " ")); class != nil {
			return class
		}
	}
	return e.class
}

// classOfText returns the error for the text of an error, or nil. It accepts more texts than
// are known: if it does not recognize one, the error has no class, and callers try again.
func classOfText(text string) error {
	missing := contains(text, "does not exist", "do not exist", "not found", "unknown")
	switch {
	case contains(text, "application already exists", "belongs to another application"):
		return provider.ErrApplicationExists
	case missing && contains(text, "tag"):
		return provider.ErrTagNotFound
	case missing && contains(text, "policy", "policies"):
		return provider.ErrPolicyNotFound
	case contains(text, "does not belong to zone", "does not belong to a zone", "does not belong to any zone"):
		return provider.ErrNoZone
	case contains(text, "maximum number", "quota exceeded", "quota has been", "limit reached", "limit exceeded", "limit has been"):
		return provider.ErrQuotaExceeded
	}
	return nil
}

func contains(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// isRefused reports whether the API has refused a request for another reason than the token
// or the rate.
func isRefused(err error) bool {
	e, ok := errors.AsType[*responseError](err)
	return ok && e.status < http.StatusInternalServerError &&
		e.status != http.StatusUnauthorized && e.status != http.StatusForbidden
}
