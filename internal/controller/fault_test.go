package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	push    = attempt{outcome: "The tunnel keeps its last configuration.", document: "wanted"}
	errDown = &provider.UnavailableError{Err: errors.New("connection refused")}
)

func TestFaultBacksOff(t *testing.T) {
	var f fault
	var got []time.Duration
	for range 9 {
		got = append(got, f.add(errDown, push, noon)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}, got); diff != "" {
		t.Errorf("waits in seconds differ (-want +got):\n%s", diff)
	}
}

func TestFaultWaitsAsLongAsTheAPIAsks(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"asked for more":         {&provider.RateLimitedError{RetryAfter: 5 * time.Minute}, 5 * time.Minute},
		"asked for less":         {&provider.UnavailableError{Err: errDown, RetryAfter: time.Millisecond}, time.Second},
		"asked while down":       {&provider.UnavailableError{Err: errDown, RetryAfter: 7 * time.Second}, 7 * time.Second},
		"asked in a wrapped one": {fmt.Errorf("configuring: %w", &provider.RateLimitedError{RetryAfter: 9 * time.Second}), 9 * time.Second},
		"not asked":              {errDown, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var f fault
			if got := f.add(test.err, push, noon); got != test.want {
				t.Errorf("add = %s, want %s", got, test.want)
			}
			for after, want := range map[time.Duration]time.Duration{
				0: test.want, test.want / 2: test.want - test.want/2, test.want: 0, test.want + time.Hour: 0,
			} {
				if got := f.wait(noon.Add(after), "wanted"); got != want {
					t.Errorf("after %s it waits %s, want %s", after, got, want)
				}
			}
			if want := fmt.Sprintf("It is tried again in %s.", test.want); !strings.Contains(f.message, want) {
				t.Errorf("message %q does not say %q", f.message, want)
			}
		})
	}
}

// A limit is over when the API says so, however often something failed before.
func TestFaultWaitsNoLongerThanALimit(t *testing.T) {
	var f fault
	for range 6 {
		f.add(errDown, push, noon)
	}
	if got := f.add(&provider.RateLimitedError{RetryAfter: 3 * time.Second}, push, noon); got != 3*time.Second {
		t.Errorf("add = %s, want 3s", got)
	}
}

// Where a person has to act, the message says what to do, and every pass looks
// whether it is done.
func TestFaultThatOnlyAPersonMends(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"a foreign document": {&foreignError{tunnel: "t-1"}, []string{"t-1", `tunnelgateway.dev/takeover: "true"`}},
		"another account":    {&accountError{recorded: "old", configured: "new"}, []string{"account old", "account new"}},
		"another controller": {&heldError{controller: "example.com/other"}, []string{"example.com/other", "tunnelgateway.dev/tunnel"}},
		"wrapped":            {fmt.Errorf("claiming: %w", &accountError{recorded: "old", configured: "new"}), []string{"account old"}},
	} {
		t.Run(name, func(t *testing.T) {
			var f fault
			f.add(errDown, push, noon)
			if got := f.add(test.err, push, noon); got != time.Minute {
				t.Errorf("add = %s, want 1m", got)
			}
			if got := f.wait(noon, "wanted"); got != 0 {
				t.Errorf("wait = %s, want none", got)
			}
			for _, want := range append(test.want, "The tunnel keeps its last configuration.") {
				if !strings.Contains(f.message, want) {
					t.Errorf("message %q does not say %q", f.message, want)
				}
			}
			if strings.Contains(f.message, "tried again") {
				t.Errorf("message %q promises a time", f.message)
			}
			f.add(errDown, push, noon)
			if f.wait(noon, "wanted") == 0 {
				t.Error("an API that is down afterwards is not waited for")
			}
		})
	}
}

func TestFaultExplains(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a token that is refused": {
			fmt.Errorf("reading: %w", provider.ErrUnauthorized),
			"Cloudflare refuses the API token; it needs the permission Cloudflare Tunnel: Edit of the account.",
		},
		"an API that is down": {errDown, "Cloudflare's API cannot be reached, or does not answer as it should."},
		"an API that asks to wait": {
			&provider.RateLimitedError{RetryAfter: time.Minute}, "Cloudflare's API admits no more requests for a while.",
		},
		"anything else": {errors.New("no such thing"), "No such thing."},
	} {
		if got := explain(test.err); got != test.want {
			t.Errorf("%s: explain = %q, want %q", name, got, test.want)
		}
	}
}

// A document that was refused is not sent again before its time, but another
// one is sent at once.
func TestFaultOfARefusedDocument(t *testing.T) {
	var f fault
	f.add(&provider.InvalidError{Rule: 1, Message: "bad"}, push, noon)
	if f.wait(noon, "wanted") == 0 {
		t.Error("the same document is sent again at once")
	}
	if got := f.wait(noon, "mended"); got != 0 {
		t.Errorf("another document waits %s", got)
	}
}
