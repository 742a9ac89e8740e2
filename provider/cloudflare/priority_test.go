package cloudflare

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestBudgetUsesThePriorityOfTheCall(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		drift := provider.WithPriority(t.Context(), provider.PriorityDrift)
		if _, _, err := e.Configuration(drift, id); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, _, err := e.newProvider(t, e.token).Configuration(drift, id)
		wantSlot(t, err, time.Second)
		wantElapsed(t, start, 0)
		e.wantCount(t, http.MethodGet, configurationPath, 1)
		if _, err := e.Configure(t.Context(), id, configuration("a")); err != nil {
			t.Error(err)
		}
		wantElapsed(t, start, 0)
	})
}

func TestReadsAtStartAndForDriftAreNotRetried(t *testing.T) {
	// A retry would occupy a worker, and an exhausted budget would replace the first error.
	for _, p := range []provider.Priority{provider.PriorityStart, provider.PriorityDrift} {
		withEdge(t, func(t *testing.T, e *edge) {
			id := e.newTunnel(t)
			e.Inject(simulator.Fault{Status: http.StatusBadGateway, Times: 1})
			start := time.Now()
			ctx := provider.WithPriority(t.Context(), p)
			_, _, err := e.Configuration(ctx, id)
			wantUnavailable(t, err, 0)
			e.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second, Times: 1})
			_, _, err = e.Configuration(provider.WithPriority(t.Context(), provider.PriorityStart), id)
			wantRateLimited(t, err, time.Second)
			wantElapsed(t, start, 0)
			e.wantCount(t, http.MethodGet, configurationPath, 2)
		})
	}
}

func TestListOfSeveralPagesIsNotInterrupted(t *testing.T) {
	// If every page in a list needed a slot behind other calls, a list with several pages
	// would never be complete.
	pages := 0
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) {
			pages++
			tunnel := fmt.Sprintf(`{"id":"%d","name":"a"}`, pages)
			if pages > 4 {
				tunnel = ""
			}
			return jsonResponse(http.StatusOK,
				fmt.Sprintf(`{"success":true,"result":[%s],"result_info":{"per_page":1}}`, tunnel)), nil
		}),
	})
	drift := provider.WithPriority(t.Context(), provider.PriorityDrift)
	if got, err := p.Tunnels(drift); err != nil || len(got) != 4 {
		t.Errorf("got %d tunnels and %v, want 4", len(got), err)
	}
	if _, err := p.Tunnels(drift); err == nil {
		t.Error("a second list succeeded, want a RateLimitedError")
	}
}

// retryAfterOf returns the result of retryAfter for a status and a Retry-After header.
func retryAfterOf(status int, header string) time.Duration {
	return retryAfter(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {header}}})
}

func TestRetryAfterHeaderDeterminesTheWait(t *testing.T) {
	tests := map[string]struct {
		status int
		header string
		want   time.Duration
	}{
		"seconds":                {http.StatusTooManyRequests, "7", 7 * time.Second},
		"no header":              {http.StatusTooManyRequests, "", defaultRetryAfter},
		"not a number":           {http.StatusTooManyRequests, "soon", defaultRetryAfter},
		"negative":               {http.StatusTooManyRequests, "-604800", defaultRetryAfter},
		"a date in the past":     {http.StatusTooManyRequests, "Fri, 31 Dec 1999 23:59:59 GMT", defaultRetryAfter},
		"unavailable, negative":  {http.StatusServiceUnavailable, "-1", 0},
		"zero":                   {http.StatusTooManyRequests, "0", defaultRetryAfter},
		"unavailable":            {http.StatusServiceUnavailable, "7", 7 * time.Second},
		"unavailable, no header": {http.StatusServiceUnavailable, "", 0},
		"another status":         {http.StatusBadGateway, "7", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := retryAfterOf(test.status, test.header); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	deadline := time.Now().Add(90 * time.Second).UTC()
	got := retryAfterOf(http.StatusTooManyRequests, deadline.Format(http.TimeFormat))
	if got%time.Second != 0 || got < 88*time.Second || got > 90*time.Second {
		t.Errorf("a wait until %s: got %s", deadline, got)
	}
}

func TestRequestedWaitIsCapped(t *testing.T) {
	for name, header := range map[string]string{
		"a week":                 "604800",
		"overflow":               "9223372037",
		"overflow to short":      "18446744074",
		"not a 64-bit number":    "99999999999999999999",
		"a date":                 time.Now().Add(7 * 24 * time.Hour).UTC().Format(http.TimeFormat),
		"a date in 7,000 years":  "Fri, 31 Dec 9999 23:59:59 GMT",
		"a date in RFC 850 form": time.Now().Add(7 * 24 * time.Hour).UTC().Format(time.RFC850),
	} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			if got := retryAfterOf(status, header); got != 10*time.Minute {
				t.Errorf("%s, status %d: got %s, want ten minutes", name, status, got)
			}
		}
	}
}
