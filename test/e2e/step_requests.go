package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// requestHTTPS waits until the first hostname responds by https.
func (s *scenario) requestHTTPS(ctx context.Context) (string, error) {
	got, err := s.awaitBackend(ctx, "https://"+s.host(webHost)+echoPath)
	if err != nil {
		return "", err
	}
	var received echo
	if err := json.Unmarshal([]byte(got.body), &received); err != nil {
		return "", fmt.Errorf("the answer is not the backend's: %w", err)
	}
	s.observe("protocol", got.proto)
	s.observe("headers of the response", headerNames(got.header)...)
	s.observe("headers of the request at the backend", received.Headers...)
	s.observe("protocol at the backend", received.Proto)
	if received.Scheme != "https" {
		return "", fmt.Errorf("the backend got X-Forwarded-Proto %q, want https", received.Scheme)
	}
	return fmt.Sprintf("%s, %s, with a valid certificate", s.host(webHost), got.proto), nil
}

// awaitBackend waits until the backend stable responds to the URL with 200. A new record
// and a new connector take some time to reach all of Cloudflare.
func (s *scenario) awaitBackend(ctx context.Context, url string) (got answer, err error) {
	err = s.await(ctx, "a response to "+url, func(ctx context.Context) error {
		if got, err = s.visitors.get(ctx, url); err != nil {
			return err
		}
		return checkBackend(got, stable)
	})
	return got, err
}

// checkBackend returns an error unless the backend responded with 200.
func checkBackend(got answer, backend string) error {
	if got.status != http.StatusOK {
		return errors.New(got.String())
	}
	if name := got.header.Get(backendHeader); name != backend {
		return fmt.Errorf("the backend %q responded, want %s", name, backend)
	}
	return nil
}

// requestSchemes requests both schemes of a hostname with two listeners, where http
// redirects, and of a hostname with one listener.
func (s *scenario) requestSchemes(ctx context.Context) (string, error) {
	edgeRedirects, err := s.requestRedirect(ctx)
	if err != nil {
		return "", err
	}
	if err := s.awaitScheme(ctx, "https"); err != nil {
		return "", err
	}
	if edgeRedirects {
		return "", skippedError("the edge redirects http to https before the tunnel: turn always_use_https off in the zone to test http")
	}
	if err := s.awaitScheme(ctx, "http"); err != nil {
		return "", err
	}
	return "the Gateway's redirect, and both schemes of one listener", nil
}

// requestRedirect requests the hostname with a redirect by http. It reports whether the edge
// redirects in place of the Gateway.
func (s *scenario) requestRedirect(ctx context.Context) (edge bool, err error) {
	url := "http://" + s.host(webHost) + echoPath
	want := strings.Replace(url, "http:", "https:", 1)
	var got answer
	err = s.await(ctx, "a redirect of "+url, func(ctx context.Context) error {
		if got, err = s.visitors.get(ctx, url); err != nil {
			return err
		}
		if got.header.Get("Location") != want {
			return fmt.Errorf("%s with Location %q, want a redirect to %s", got, got.header.Get("Location"), want)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	s.observe("status of http where the Gateway redirects", fmt.Sprint(got.status))
	switch got.status {
	case redirectStatus:
		return false, nil
	case http.StatusMovedPermanently:
		return true, nil
	}
	return false, fmt.Errorf("%s has status %d, want %d", url, got.status, redirectStatus)
}

// awaitScheme waits until the hostname with one listener responds by the scheme, and checks
// that the backend learns the scheme.
func (s *scenario) awaitScheme(ctx context.Context, scheme string) error {
	got, err := s.awaitBackend(ctx, scheme+"://"+s.host(plainHost)+echoPath)
	if err != nil {
		return err
	}
	var received echo
	if err := json.Unmarshal([]byte(got.body), &received); err != nil {
		return fmt.Errorf("the answer is not the backend's: %w", err)
	}
	s.observe("X-Forwarded-Proto of "+scheme, received.Scheme)
	if received.Scheme != scheme {
		return fmt.Errorf("by %s, the backend got X-Forwarded-Proto %q", scheme, received.Scheme)
	}
	return nil
}
