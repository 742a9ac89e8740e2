package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// limited is what the provider returns after a 429 of the API.
func limited(wait time.Duration) error { return &provider.RateLimitedError{RetryAfter: wait} }

// A limit of the API is waited for as it asks, whatever is wanted meanwhile. It
// is no failure, it is told once, and nothing has to be read again.
func TestPushThatTheAPILimits(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.told()
	l.calls()
	l.cloud.Fail(fakeprovider.OpConfigure, limited(20*time.Second), limited(5*time.Minute))
	push, again := l.pass("b.example.com")
	want := gateway.Push{Message: "Cloudflare's API admits no more requests for a while. It is tried again in 20s."}
	if push != want || again != 20*time.Second {
		t.Errorf("the pass ended with %+v, again in %s", push, again)
	}
	l.wantCalls(fakeprovider.OpConfigure)
	l.clock = l.clock.Add(5 * time.Second)
	for _, hostname := range []string{"b.example.com", "c.example.com"} {
		if push, again := l.pass(hostname); push != want || again != 15*time.Second {
			t.Errorf("a pass for %s before its time ended with %+v, again in %s", hostname, push, again)
		}
	}
	l.wantCalls()

	l.clock = l.clock.Add(15 * time.Second)
	if push, again := l.pass("c.example.com"); push.State != gateway.PushOutstanding || again != 5*time.Minute {
		t.Errorf("limited again, the pass ended with %+v, again in %s", push, again)
	}
	l.clock = l.clock.Add(5 * time.Minute)
	l.calls()
	l.must("c.example.com")
	l.wantCalls(fakeprovider.OpConfigure)
	events := l.told()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning PushDelayed The tunnel keeps its last configuration. Cloudflare's API admits no more") {
		t.Errorf("events: %q", events)
	}

	l.cloud.Fail(fakeprovider.OpConfigure, limited(time.Second))
	l.pass("d.example.com")
	if events := l.told(); len(events) != 1 {
		t.Errorf("the next limit is told %d times: %q", len(events), events)
	}
}

// What is in effect stays so while it cannot be looked at, and nobody is told.
func TestLookThatTheAPILimits(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.told()
	l.clock = l.clock.Add(l.driftInterval)
	l.calls()
	l.cloud.Fail(fakeprovider.OpConfiguration, limited(40*time.Second))
	if push, again := l.pass("a.example.com"); push.State != gateway.PushSucceeded || again != 40*time.Second {
		t.Errorf("the pass ended with %+v, again in %s", push, again)
	}
	if events := l.told(); len(events) != 0 {
		t.Errorf("events: %q", events)
	}
	l.wantCalls(fakeprovider.OpConfiguration)
	l.must("a.example.com")
	l.wantCalls()
}

func TestFirstPushThatTheAPILimits(t *testing.T) {
	for name, op := range map[string]fakeprovider.Op{"the tunnel": fakeprovider.OpCreateTunnel, "the document": fakeprovider.OpConfigure} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.cloud.Fail(op, limited(7*time.Second))
			if push, again := l.pass("a.example.com"); push.State != gateway.PushOutstanding || again != 7*time.Second {
				t.Errorf("the pass ended with %+v, again in %s", push, again)
			}
			l.clock = l.clock.Add(7 * time.Second)
			l.must("a.example.com")
		})
	}
}

// A push that failed has not succeeded because its repetition is limited; but
// why it is not tried again at once is another reason now.
func TestFailedPushThatTheAPILimits(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.cloud.Fail(fakeprovider.OpConfigure, errDown, limited(3*time.Minute))
	_, again := l.pass("b.example.com")
	l.clock = l.clock.Add(again)
	push, again := l.pass("b.example.com")
	if push.State != gateway.PushFailed || !strings.Contains(push.Message, "admits no more") || again != 3*time.Minute {
		t.Errorf("the pass ended with %+v, again in %s", push, again)
	}
	l.clock = l.clock.Add(again)
	l.must("b.example.com")
}

// A limit is one of a token, and keeps no deletion from its first steps.
func TestLimitEnds(t *testing.T) {
	for name, end := range map[string]func(*life){
		"with another token": func(l *life) {
			l.accounts.flags.Token = "new"
			l.accounts.open = func(string, string) (provider.Provider, error) { return sameCloud{l.cloud}, nil }
			l.must("b.example.com")
		},
		"with the Gateway": func(l *life) {
			if problem, _ := l.release(); problem != "" {
				l.t.Errorf("the Gateway is not let go: %s", problem)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.must("a.example.com")
			l.cloud.Fail(fakeprovider.OpConfigure, limited(5*time.Minute))
			l.pass("b.example.com")
			end(l)
		})
	}
}
