package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// inEdge runs a test under a clock that moves only while everybody waits.
func inEdge(t *testing.T, test func(*testing.T, *edge)) {
	synctest.Test(t, func(t *testing.T) { test(t, newEdge(t)) })
}

func (e *edge) wantCount(t *testing.T, method, path string, want int) {
	t.Helper()
	if got := e.Count(method, path); got != want {
		t.Errorf("%d requests %s %s, want %d", got, method, path, want)
	}
}

// pass moves the fake clock on.
func pass(d time.Duration) { <-time.After(d) }

func wantElapsed(t *testing.T, since time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(since); got != want {
		t.Errorf("took %s, want %s", got, want)
	}
}

func wantLimited(t *testing.T, err error, want time.Duration) {
	t.Helper()
	limited, ok := errors.AsType[*provider.RateLimitedError](err)
	if !ok || limited.RetryAfter != want || limited.Budget {
		t.Errorf("got %v, want to be limited by the API for %s", err, want)
	}
}

func wantUnavailable(t *testing.T, err error, retryAfter time.Duration) {
	t.Helper()
	unavailable, ok := errors.AsType[*provider.UnavailableError](err)
	if !ok || unavailable.RetryAfter != retryAfter {
		t.Errorf("got %v, want an UnavailableError for %s", err, retryAfter)
	}
}

func TestCreateWhoseAnswerIsLost(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Drop: simulator.DropAfterWrite, Times: 1})
		_, err := e.CreateTunnel(t.Context(), name)
		wantUnavailable(t, err, 0)
		tunnels := e.Server.Tunnels()
		if len(tunnels) != 1 || tunnels[0].ConfigSrc != "cloudflare" {
			t.Errorf("the account has %+v", tunnels)
		}
		e.wantCount(t, "", "", 1)
		if found, err := e.FindTunnel(t.Context(), name); err != nil || found.ID != provider.TunnelID(tunnels[0].ID) {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// A tunnel may appear after its creation has failed, and after a look for it.
func TestCreateThatArrivesLate(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Drop: simulator.DropThenWrite, Latency: time.Minute, Times: 1})
		_, err := e.CreateTunnel(t.Context(), name)
		wantUnavailable(t, err, 0)
		if _, err := e.FindTunnel(t.Context(), name); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		pass(time.Minute + time.Second)
		_, err = e.CreateTunnel(t.Context(), name)
		if !errors.Is(err, provider.ErrNameExists) {
			t.Errorf("got %v, want ErrNameExists", err)
		}
	})
}

func TestCreateIsNotRepeated(t *testing.T) {
	faults := map[string]simulator.Fault{
		"dropped before": {Drop: simulator.DropBeforeWrite},
		"unavailable":    {Status: http.StatusServiceUnavailable},
		"bad gateway":    {Status: http.StatusBadGateway, Body: "<html>"},
		"not JSON":       {Body: "<html>"},
	}
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			inEdge(t, func(t *testing.T, e *edge) {
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
		inEdge(t, func(t *testing.T, e *edge) {
			e.Inject(simulator.Fault{
				Method: http.MethodPost, Status: http.StatusTooManyRequests, RetryAfter: time.Second, Times: 1,
			})
			_, err := e.CreateTunnel(t.Context(), name)
			wantLimited(t, err, time.Second)
			e.wantCount(t, "", "", 1)
		})
	})
}

// The secret of a rotation whose answer was lost is sent again, so that the token
// that is read after a success is the one of the last request.
func TestRotationWhoseAnswerIsLost(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
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
			t.Error("the second request did not have the secret of the first")
		}
		e.wantCount(t, http.MethodPatch, "", 2)
	})
}

func TestLimitBeyondPatience(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		other := e.newProvider(t, e.token)
		e.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second, Times: 1})

		start := time.Now()
		_, err := e.Configure(t.Context(), id, document("a"))
		wantLimited(t, err, 30*time.Second)
		wantElapsed(t, start, 0)

		pass(10 * time.Second)
		_, _, err = other.Configuration(t.Context(), id)
		wantLimited(t, err, 20*time.Second)
		_, err = e.CreateTunnel(t.Context(), name)
		wantLimited(t, err, 20*time.Second)
		if got := len(e.Requests()); got != 1 {
			t.Errorf("%d requests during the limit, want 1", got)
		}

		pass(18 * time.Second)
		if _, err = e.Configure(t.Context(), id, document("a")); err != nil {
			t.Error(err)
		}
		wantElapsed(t, start, 30*time.Second)
	})
}

func TestLimitWithoutAWord(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusTooManyRequests})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, document("a"))
		wantLimited(t, err, unstatedLimit)
		wantElapsed(t, start, 0)
		_, _, err = e.newProvider(t, e.token).Configuration(t.Context(), id)
		wantLimited(t, err, unstatedLimit)
		e.wantCount(t, "", "", 1)
	})
}

func TestShortFailureIsRetried(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusBadGateway, Times: 2})
		if _, err := e.Configure(t.Context(), id, document("a")); err != nil {
			t.Error(err)
		}
		e.wantCount(t, http.MethodPut, configurationPath, 3)
		if _, version := e.StoredConfiguration(string(id)); version != 1 {
			t.Errorf("version = %d, want 1", version)
		}
	})
}

func TestLongFailureEndsSoon(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, document("a"))
		wantUnavailable(t, err, 0)
		if got := time.Since(start); got > patience {
			t.Errorf("took %s", got)
		}
		e.wantCount(t, http.MethodPut, configurationPath, 5)
	})
}

func TestUnavailableForAWhile(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
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

func TestDroppedWrite(t *testing.T) {
	versions := map[simulator.Drop]provider.Version{simulator.DropBeforeWrite: 1, simulator.DropAfterWrite: 2}
	for drop, want := range versions {
		inEdge(t, func(t *testing.T, e *edge) {
			id := e.newTunnel(t)
			e.Inject(simulator.Fault{Method: http.MethodPut, Drop: drop, Times: 1})
			version, err := e.Configure(t.Context(), id, document("a"))
			if err != nil || version != want {
				t.Errorf("drop %d: got version %d and %v, want version %d", drop, version, err, want)
			}
		})
	}
}

func TestDroppedDeletion(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Method: http.MethodDelete, Drop: simulator.DropAfterWrite, Times: 1})
		if err := e.DeleteTunnel(t.Context(), id); err != nil {
			t.Error(err)
		}
		if !e.Server.Tunnels()[0].Deleted {
			t.Error("the tunnel is still there")
		}
		e.wantCount(t, "", "", 2)
	})
}

// A deletion is one request, and removes no connections.
func TestDeletionIsOneRequest(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Connect(string(id), 1)
		e.Crash(string(id))
		if err := e.DeleteTunnel(t.Context(), id); !errors.Is(err, provider.ErrConnected) {
			t.Errorf("got %v, want ErrConnected", err)
		}
		e.wantCount(t, "", "", 1)
		pass(time.Hour) // by then Cloudflare has forgotten the connector
		if err := e.DeleteTunnel(t.Context(), id); err != nil {
			t.Error(err)
		}
		e.wantCount(t, "", "", 2)
	})
}

func TestNoAnswer(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Latency: time.Hour})
		start := time.Now()
		_, err := e.Configure(t.Context(), id, document("a"))
		wantUnavailable(t, err, 0)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("looks as if the caller's time was over")
		}
		wantElapsed(t, start, provider.CallTimeout)
	})
}

func TestCallerGivesUp(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Latency: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Configure(ctx, id, document("a"))
		if !errors.Is(err, context.DeadlineExceeded) || provider.IsTransient(err) {
			t.Errorf("got %v, want the caller's deadline", err)
		}

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = e.Configure(ctx, id, document("a"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

func TestCancelDuringAPause(t *testing.T) {
	inEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(shortestPause/2, cancel)
		start := time.Now()
		_, err := e.Configure(ctx, id, document("a"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		wantElapsed(t, start, shortestPause/2)
	})
}
