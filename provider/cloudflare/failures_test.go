package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// withEdge runs a test with a new edge and the fake clock from testing/synctest.
func withEdge(t *testing.T, test func(*testing.T, *edge)) {
	synctest.Test(t, func(t *testing.T) { test(t, newEdge(t)) })
}

func (e *edge) wantCount(t *testing.T, method, path string, want int) {
	t.Helper()
	if got := e.Count(method, path); got != want {
		t.Errorf("%d requests '%s %s', want %d", got, method, path, want)
	}
}

// advance advances the fake clock.
func advance(d time.Duration) { <-time.After(d) }

func wantElapsed(t *testing.T, since time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(since); got != want {
		t.Errorf("took %s, want %s", got, want)
	}
}

func wantRateLimited(t *testing.T, err error, want time.Duration) {
	t.Helper()
	limited, ok := errors.AsType[*provider.RateLimitedError](err)
	if !ok || limited.RetryAfter != want || limited.Budget {
		t.Errorf("got %v, want a RateLimitedError of the API with a wait of %s", err, want)
	}
}

func wantUnavailable(t *testing.T, err error, retryAfter time.Duration) {
	t.Helper()
	unavailable, ok := errors.AsType[*provider.UnavailableError](err)
	if !ok || unavailable.RetryAfter != retryAfter {
		t.Errorf("got %v, want an UnavailableError with a wait of %s", err, retryAfter)
	}
}

func TestCreateWithALostResponseCreatesOneTunnel(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Drop: simulator.DropAfterWrite, Times: 1})
		_, err := e.CreateTunnel(t.Context(), name)
		wantUnavailable(t, err, 0)
		tunnels := e.Server.Tunnels()
		if len(tunnels) != 1 || tunnels[0].ConfigSrc != "cloudflare" {
			t.Errorf("the account has tunnels %+v, want one with source cloudflare", tunnels)
		}
		e.wantCount(t, "", "", 1)
		if found, err := e.FindTunnel(t.Context(), name); err != nil || found.ID != provider.TunnelID(tunnels[0].ID) {
			t.Errorf("FindTunnel = %+v, %v, want the created tunnel", found, err)
		}
	})
}

func TestCreateAppliedLateReservesTheName(t *testing.T) {
	// A tunnel may appear after its creation failed and FindTunnel did not find it.
	withEdge(t, func(t *testing.T, e *edge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Drop: simulator.DropThenWrite, Latency: time.Minute, Times: 1})
		_, err := e.CreateTunnel(t.Context(), name)
		wantUnavailable(t, err, 0)
		if _, err := e.FindTunnel(t.Context(), name); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		advance(time.Minute + time.Second)
		_, err = e.CreateTunnel(t.Context(), name)
		if !errors.Is(err, provider.ErrNameExists) {
			t.Errorf("got %v, want ErrNameExists", err)
		}
	})
}

func TestCreateIsNotRetried(t *testing.T) {
	faults := map[string]simulator.Fault{
		"dropped before": {Drop: simulator.DropBeforeWrite},
		"unavailable":    {Status: http.StatusServiceUnavailable},
		"bad gateway":    {Status: http.StatusBadGateway, Body: "<html>"},
		"not JSON":       {Body: "<html>"},
	}
	for description, fault := range faults {
		t.Run(description, func(t *testing.T) {
			withEdge(t, func(t *testing.T, e *edge) {
				fault.Method, fault.Times = http.MethodPost, 1
				e.Inject(fault)
				_, err := e.CreateTunnel(t.Context(), name)
				wantUnavailable(t, err, 0)
				e.wantCount(t, "", "", 1)
				e.newTunnel(t)
			})
		})
	}
	t.Run("limited", func(t *testing.T) {
		withEdge(t, func(t *testing.T, e *edge) {
			e.Inject(simulator.Fault{
				Method: http.MethodPost, Status: http.StatusTooManyRequests, RetryAfter: time.Second, Times: 1,
			})
			_, err := e.CreateTunnel(t.Context(), name)
			wantRateLimited(t, err, time.Second)
			e.wantCount(t, "", "", 1)
		})
	})
}

func TestRotationWithALostResponseKeepsItsSecret(t *testing.T) {
	// A retry sends the same secret again, so that the token that is read after a successful
	// rotation does not depend on which request was applied last.
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		var tokens []provider.Token
		read := func(simulator.Request) {
			token, err := e.Token(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			tokens = append(tokens, token)
		}
		e.Inject(simulator.Fault{Method: http.MethodPatch, Before: read, After: read, Drop: simulator.DropAfterWrite, Times: 1})
		e.Inject(simulator.Fault{Method: http.MethodPatch, After: read, Times: 1})
		if err := e.Provider.RotateToken(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if string(tokens[0]) == string(tokens[1]) || string(tokens[1]) != string(tokens[2]) {
			t.Error("the retry did not send the secret of the first request")
		}
		e.wantCount(t, http.MethodPatch, "", 2)
	})
}

func TestRateLimitAppliesToAllProvidersWithAToken(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		other := e.newProvider(t, e.token)
		e.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second, Times: 1})

		start := time.Now()
		_, err := e.Configure(t.Context(), id, configuration("a"))
		wantRateLimited(t, err, 30*time.Second)
		wantElapsed(t, start, 0)

		advance(10 * time.Second)
		_, _, err = other.Configuration(t.Context(), id)
		wantRateLimited(t, err, 20*time.Second)
		_, err = e.CreateTunnel(t.Context(), name)
		wantRateLimited(t, err, 20*time.Second)
		if got := len(e.Requests()); got != 1 {
			t.Errorf("%d requests before the rate limit ended, want 1", got)
		}

		advance(18 * time.Second)
		if _, err = e.Configure(t.Context(), id, configuration("a")); err != nil {
			t.Error(err)
		}
		wantElapsed(t, start, 30*time.Second)
	})
}

func TestCappedRateLimitEndsAfterTenMinutes(t *testing.T) {
	// Every call that is rejected until then names the requested and the applied wait.
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 7 * 24 * time.Hour, Times: 1})
		_, err := e.Configure(t.Context(), id, configuration("a"))
		wantRateLimited(t, err, 10*time.Minute)
		advance(time.Minute)
		_, _, err = e.Configuration(t.Context(), id)
		wantRateLimited(t, err, 9*time.Minute)
		if !strings.Contains(err.Error(), "retry in 9m0s (the API requested 168h0m0s;") {
			t.Errorf("the error does not name the waits: %v", err)
		}
		advance(9 * time.Minute)
		if _, err = e.Configure(t.Context(), id, configuration("a")); err != nil {
			t.Error(err)
		}
	})
}

func TestRateLimitWithoutRetryAfterUsesTheDefaultWait(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusTooManyRequests})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, configuration("a"))
		wantRateLimited(t, err, defaultRetryAfter)
		wantElapsed(t, start, 0)
		_, _, err = e.newProvider(t, e.token).Configuration(t.Context(), id)
		wantRateLimited(t, err, defaultRetryAfter)
		e.wantCount(t, "", "", 1)
	})
}

func TestShortFailureIsRetried(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusBadGateway, Times: 2})
		if _, err := e.Configure(t.Context(), id, configuration("a")); err != nil {
			t.Error(err)
		}
		e.wantCount(t, http.MethodPut, configurationPath, 3)
		if _, version := e.StoredConfiguration(string(id)); version != 1 {
			t.Errorf("version = %d, want 1", version)
		}
	})
}

func TestLongFailureIsReportedSoon(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, configuration("a"))
		wantUnavailable(t, err, 0)
		if got := time.Since(start); got > maxWait {
			t.Errorf("took %s, want at most %s", got, maxWait)
		}
		e.wantCount(t, http.MethodPut, configurationPath, 5)
	})
}

func TestRetryWaitsAsLongAsAnUnavailableAPIRequires(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		fault := simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: time.Second, Times: 1}
		e.Inject(fault)
		start := time.Now()
		if _, _, err := e.Configuration(t.Context(), id); err != nil {
			t.Error(err)
		}
		wantElapsed(t, start, time.Second)

		fault.RetryAfter = 10 * time.Second
		e.Inject(fault)
		start = time.Now()
		_, _, err := e.Configuration(t.Context(), id)
		wantUnavailable(t, err, 10*time.Second)
		wantElapsed(t, start, 0)
	})
}

func TestDroppedWriteIsRetried(t *testing.T) {
	versions := map[simulator.Drop]provider.Version{simulator.DropBeforeWrite: 1, simulator.DropAfterWrite: 2}
	for drop, want := range versions {
		withEdge(t, func(t *testing.T, e *edge) {
			id := e.newTunnel(t)
			e.Inject(simulator.Fault{Method: http.MethodPut, Drop: drop, Times: 1})
			version, err := e.Configure(t.Context(), id, configuration("a"))
			if err != nil || version != want {
				t.Errorf("drop %d: got version %d and %v, want version %d", drop, version, err, want)
			}
		})
	}
}

func TestDroppedDeletionIsRetried(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Method: http.MethodDelete, Drop: simulator.DropAfterWrite, Times: 1})
		if err := e.DeleteTunnel(t.Context(), id); err != nil {
			t.Error(err)
		}
		if !e.Server.Tunnels()[0].Deleted {
			t.Error("the tunnel was not deleted")
		}
		e.wantCount(t, "", "", 2)
	})
}

func TestDeletionIsOneRequest(t *testing.T) {
	// DeleteTunnel sends one request and removes no connections.
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Connect(string(id), 1)
		e.Crash(string(id))
		if err := e.DeleteTunnel(t.Context(), id); !errors.Is(err, provider.ErrConnected) {
			t.Errorf("got %v, want ErrConnected", err)
		}
		e.wantCount(t, "", "", 1)
		advance(time.Hour) // Cloudflare no longer lists the connector
		if err := e.DeleteTunnel(t.Context(), id); err != nil {
			t.Error(err)
		}
		e.wantCount(t, "", "", 2)
	})
}

func TestCallTimesOut(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Latency: time.Hour})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, configuration("a"))
		wantUnavailable(t, err, 0)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("the error is the caller's deadline, want only an UnavailableError")
		}
		wantElapsed(t, start, provider.CallTimeout)
	})
}

func TestEndOfTheContextIsReported(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Latency: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Configure(ctx, id, configuration("a"))
		if !errors.Is(err, context.DeadlineExceeded) || provider.IsTransient(err) {
			t.Errorf("got %v, want the caller's deadline", err)
		}

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = e.Configure(ctx, id, configuration("a"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

func TestCancelEndsABackoff(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(minBackoff/2, cancel)
		start := time.Now()
		_, err := e.Configure(ctx, id, configuration("a"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		wantElapsed(t, start, minBackoff/2)
	})
}
