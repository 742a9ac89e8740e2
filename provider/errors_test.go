package provider

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestTransientErrorsAreRecognized(t *testing.T) {
	tests := map[string]struct {
		err       error
		transient bool
		wait      time.Duration
		hasWait   bool
	}{
		"rate limited":            {&RateLimitedError{RetryAfter: 30 * time.Second}, true, 30 * time.Second, true},
		"unavailable":             {&UnavailableError{Err: io.ErrUnexpectedEOF}, true, 0, false},
		"unavailable with a wait": {&UnavailableError{Err: io.EOF, RetryAfter: time.Second}, true, time.Second, true},
		"invalid":                 {&InvalidError{Rule: 1, Message: "bad"}, false, 0, false},
		"not found":               {ErrNotFound, false, 0, false},
		"unauthorized":            {ErrUnauthorized, false, 0, false},
		"name exists":             {ErrNameExists, false, 0, false},
		"connected":               {ErrConnected, false, 0, false},
		"routes":                  {ErrRoutes, false, 0, false},
		"forbidden":               {ErrForbidden, false, 0, false},
		"record exists":           {ErrRecordExists, false, 0, false},
		"record not found":        {ErrRecordNotFound, false, 0, false},
		"quota exceeded":          {ErrQuotaExceeded, false, 0, false},
		"invalid record":          {ErrInvalidRecord, false, 0, false},
		"not an API error":        {errors.New("other"), false, 0, false},
		"no error":                {nil, false, 0, false},
		"wrapped rate limit":      {&UnavailableError{Err: &RateLimitedError{RetryAfter: time.Minute}}, true, time.Minute, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.err
			if err != nil {
				err = fmt.Errorf("configure tunnel: %w", err)
			}
			if got := IsTransient(err); got != test.transient {
				t.Errorf("IsTransient = %t, want %t", got, test.transient)
			}
			wait, ok := RetryAfter(err)
			if wait != test.wait || ok != test.hasWait {
				t.Errorf("RetryAfter = %s, %t, want %s, %t", wait, ok, test.wait, test.hasWait)
			}
		})
	}
}

func TestErrorMessagesNameTheCause(t *testing.T) {
	tests := map[string]error{
		"invalid configuration: no":                       &InvalidError{Rule: -1, Message: "no"},
		"invalid configuration: ingress rule 0: no":       &InvalidError{Rule: 0, Message: "no"},
		"Cloudflare API rate limit reached; retry in 30s": &RateLimitedError{RetryAfter: 30*time.Second - time.Millisecond},
		"Cloudflare API rate limit reached; retry in 10m0s (the API requested 168h0m0s; the controller waits at most 10m0s)": &RateLimitedError{RetryAfter: MaxRetryAfter, Requested: 7 * 24 * time.Hour},
		"Cloudflare API unavailable: EOF (the API requested 11m0s; the controller waits at most 10m0s)":                      &UnavailableError{Err: io.EOF, Requested: 11 * time.Minute},
		"Cloudflare API rate limit reached; retry in 5m0s":                                                                   &RateLimitedError{RetryAfter: 5 * time.Minute, Requested: 10 * time.Minute},
		"Cloudflare API request budget exhausted; retry in 2s":                                                               &RateLimitedError{RetryAfter: 2 * time.Second, Budget: true},
		"Cloudflare API unavailable: unexpected EOF":                                                                         &UnavailableError{Err: io.ErrUnexpectedEOF},
		"create tunnel: Cloudflare API unavailable: connection reset":                                                        fmt.Errorf("create tunnel: %w", &UnavailableError{Err: errors.New("connection reset")}),
	}
	for want, err := range tests {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !errors.Is(&UnavailableError{Err: io.EOF}, io.EOF) {
		t.Error("errors.Is does not find the cause of an UnavailableError")
	}
}
