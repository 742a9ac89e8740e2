package pacing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestDelayGrowsWithFailures(t *testing.T) {
	var f pacing.Failure
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		const now = time.Hour
		if f = f.Next(errors.New("down"), now); f.Until() != now+want*time.Second {
			t.Errorf("after %d failures, the delay is %s, want %ds", i+1, f.Until()-now, want)
		}
	}
}

func TestDelayFollowsTheResponse(t *testing.T) {
	failed := pacing.Failure{}.Next(errors.New("down"), 0)
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"a rate limit":                   {&provider.RateLimitedError{RetryAfter: time.Hour}, time.Hour},
		"a rate limit without a time":    {&provider.RateLimitedError{}, time.Second},
		"an outage for at least an hour": {&provider.UnavailableError{RetryAfter: time.Hour}, time.Hour},
		"an outage for at least 1 s":     {&provider.UnavailableError{RetryAfter: time.Second}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("list the records: %w", test.err)
			if got := failed.Next(err, time.Minute).Until() - time.Minute; got != test.want {
				t.Errorf("the delay is %s, want %s", got, test.want)
			}
		})
	}
	if got := failed.Next(nil, time.Minute).AtMost(61 * time.Second).Until(); got != 61*time.Second {
		t.Errorf("the delay ends at %s, want 61s", got)
	}
}

// A token that can only be used to read is not used for changes until it is time, or a change
// succeeds. No other request waits.
func TestRejectedTokens(t *testing.T) {
	const now = time.Minute
	for name, test := range map[string]struct {
		err               error
		isChange          bool
		until, retry      time.Duration
		afterRead, forbid bool
	}{
		"a change is forbidden":          {provider.ErrForbidden, true, 0, now + pacing.RetryInterval, true, true},
		"a read is forbidden":            {provider.ErrForbidden, false, now + pacing.RetryInterval, 0, false, false},
		"the token is not valid":         {provider.ErrUnauthorized, false, now + pacing.RetryInterval, 0, false, false},
		"a change with an invalid token": {provider.ErrUnauthorized, true, now + pacing.RetryInterval, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !pacing.IsForbidden(test.err) {
				t.Errorf("%v does not count as a rejection", test.err)
			}
			f := pacing.Rejected("replace it", test.err, test.isChange, now)
			if retry, forbidden := f.ChangesForbiddenUntil(); f.Until() != test.until || retry != test.retry || forbidden != test.forbid {
				t.Errorf("the next request is at %s and the next change at %s, forbidden: %t", f.Until(), retry, forbidden)
			}
			if remains := f.AfterSuccess(false).Forbidden() != ""; remains != test.afterRead {
				t.Errorf("after a read, the token counts as rejected: %t, want %t", remains, test.afterRead)
			}
			if f.AfterSuccess(true) != (pacing.Failure{}) {
				t.Error("after a change, the token counts as rejected")
			}
		})
	}
}
