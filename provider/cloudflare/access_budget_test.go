package cloudflare

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// API paths as patterns for the simulator.
const (
	applicationsPath = "/accounts/*/access/apps"
	applicationPath  = "/accounts/*/access/apps/*"
	revokePath       = "/accounts/*/access/apps/*/revoke_tokens"
	tagsPath         = "/accounts/*/access/tags"
)

// accessEdge is a simulator, and an Access and a provider with one budget that call it over
// HTTP on in-memory connections.
type accessEdge struct {
	*simulator.Server
	*Access
	tunnels   *Provider
	dns       *DNS
	database  *access.Database
	transport http.RoundTripper
}

// withAccess runs a test with a new accessEdge and the fake clock from testing/synctest.
func withAccess(t *testing.T, test func(*testing.T, *accessEdge)) {
	synctest.Test(t, func(t *testing.T) {
		database := access.New(access.Options{})
		e := &accessEdge{
			Server:   simulator.New(simulator.Options{AccountID: account, Token: "account-token", Access: database}),
			database: database,
		}
		e.transport = serve(t, e.API())
		e.Restrict("access-token", simulator.Grant{Permissions: []simulator.Permission{simulator.AccessEdit}})
		o := Options{AccountID: account, APIToken: "account-token", BaseURL: baseURL, Transport: e.transport}
		var client Client
		e.tunnels = open(t, &client, o)
		e.dns = openDNS(t, &client, o, "")
		e.Access = openAccess(t, &client, o, "access-token")
		test(t, e)
	})
}

// applications returns a context whose calls the budget grants together.
func applications(t *testing.T, requests int) context.Context {
	return provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityAccess), requests)
}

// specOf returns a spec that needs no policies and tags.
func specOf(hostname string) provider.ApplicationSpec {
	return provider.ApplicationSpec{Hostname: hostname, Name: hostname, SessionDuration: time.Hour}
}

// new creates an application, and forgets the requests.
func (e *accessEdge) new(t *testing.T, hostname string) provider.Application {
	t.Helper()
	created, err := e.Create(applications(t, 1), specOf(hostname))
	if err != nil {
		t.Fatal(err)
	}
	e.ResetRequests()
	advance(time.Minute) // the budget is full again
	// A GET on a connection that was used before is repeated if the connection breaks.
	e.transport.(*http.Transport).CloseIdleConnections()
	return created
}

func (e *accessEdge) wantCount(t *testing.T, method, path string, want int) {
	t.Helper()
	if got := e.Count(method, path); got != want {
		t.Errorf("%d requests %s %s, want %d", got, method, path, want)
	}
}

func TestEightWritesAreSentAtOnce(t *testing.T) {
	// Each takes 300 ms: 400 applications are there in less than five minutes.
	withAccess(t, func(t *testing.T, e *accessEdge) {
		e.Inject(simulator.Fault{Latency: 300 * time.Millisecond})
		start := time.Now()
		for batch := range 50 {
			ctx := applications(t, 8)
			for {
				errs := make([]error, 8)
				var all sync.WaitGroup
				for i := range errs {
					all.Go(func() { _, errs[i] = e.Create(ctx, specOf(fmt.Sprintf("n%d.example.com", 8*batch+i))) })
				}
				all.Wait()
				wait, limited := provider.RetryAfter(errs[0])
				if !limited {
					break
				}
				advance(wait)
				ctx = applications(t, 8)
			}
		}
		if got := len(e.database.Applications(account)); got != 400 {
			t.Errorf("%d applications", got)
		}
		if took := time.Since(start); took > 4*time.Minute {
			t.Errorf("400 applications took %s", took)
		}
		e.wantCount(t, http.MethodPost, applicationsPath, 400)
	})
}

func TestAccessSendsAtMost600RequestsInFiveMinutes(t *testing.T) {
	for _, requests := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("%d at a time", requests), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, sent := &budget{}, 0
				for start := time.Now(); time.Since(start) < 5*time.Minute; advance(50 * time.Millisecond) {
					ctx := applications(t, requests)
					for range requests {
						if b.acquire(ctx, time.Now()) != nil {
							break
						}
						sent++
					}
				}
				if sent > 600+requests || sent < 590 {
					t.Errorf("%d requests in five minutes, want 600", sent)
				}
			})
		})
	}
}

func TestAccessIsBetweenTunnelsAndDNS(t *testing.T) {
	withAccess(t, func(t *testing.T, e *accessEdge) {
		// The context's priority does not matter.
		ctx := provider.WithPriority(t.Context(), provider.PriorityChange)
		if _, err := e.Applications(ctx); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := e.Policies(ctx)
		wantSlot(t, err, 500*time.Millisecond)
		_, err = e.Create(ctx, specOf("www.example.com"))
		wantSlot(t, err, time.Second)
		// DNS waits until the budget has what it leaves after the slots for other priorities.
		e.dns.client.budget(e.dns.budgetKey).drain(t, provider.PriorityStart)
		_, err = e.dns.Zones(t.Context(), "example.com", "")
		wantSlot(t, err, 17*requestInterval)
		if _, err := e.tunnels.Tunnels(t.Context()); err != nil {
			t.Errorf("Tunnels: %v", err)
		}
		wantElapsed(t, start, 0)
		e.wantCount(t, "", applicationsPath, 1)
	})
}

func TestRateLimitStopsTunnelsAndAccess(t *testing.T) {
	withAccess(t, func(t *testing.T, e *accessEdge) {
		e.Inject(simulator.Fault{Method: http.MethodPost, Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second, Times: 1})
		start := time.Now()
		_, err := e.Create(t.Context(), specOf("www.example.com"))
		wantRateLimited(t, err, 30*time.Second)
		_, err = e.Applications(t.Context())
		wantRateLimited(t, err, 30*time.Second)
		_, err = e.tunnels.Tunnels(t.Context())
		wantRateLimited(t, err, 30*time.Second)
		wantElapsed(t, start, 0)
		e.wantCount(t, "", "", 1)
		advance(30 * time.Second)
		if _, err := e.Create(t.Context(), specOf("www.example.com")); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestUnansweredAccessLeavesTunnelsAlone(t *testing.T) {
	withAccess(t, func(t *testing.T, e *accessEdge) {
		e.Inject(simulator.Fault{Path: applicationsPath, Latency: time.Hour})
		ctx := applications(t, 1)
		for range maxWaiting {
			_, err := e.Applications(ctx)
			wantUnavailable(t, err, 0)
		}
		var all sync.WaitGroup
		for range maxWaiting {
			all.Go(func() { _, _ = e.Applications(ctx) })
		}
		advance(time.Second) // these wait, so a further one is not sent
		start := time.Now()
		_, err := e.Applications(ctx)
		wantUnavailable(t, err, 0)
		if _, err := e.tunnels.Tunnels(t.Context()); err != nil {
			t.Errorf("Tunnels while Access does not respond: %v", err)
		}
		wantElapsed(t, start, 0)
		all.Wait()
		e.wantCount(t, http.MethodGet, applicationsPath, 2*maxWaiting)
	})
}
