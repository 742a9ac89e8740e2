package cloudflare

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Calls that share one turn end although many of them are under way: after their
// turn has come, none is turned away half-way, to begin again from the start.
func TestManyThingsOfSeveralRequests(t *testing.T) {
	const size = 100
	for name, test := range map[string]struct {
		requests int
		call     func(context.Context, *Provider, int) error
	}{
		"deletions": {1, func(ctx context.Context, p *Provider, _ int) error {
			return p.DeleteTunnel(provider.WithPriority(ctx, provider.PriorityDeletion), someID)
		}},
		"searches with a deletion each": {2, func(ctx context.Context, p *Provider, i int) error {
			ctx = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDeletion), 2)
			if _, err := p.FindTunnel(ctx, fmt.Sprint("tunnel-", i)); !errors.Is(err, provider.ErrNotFound) {
				return err
			}
			return p.DeleteTunnel(ctx, someID)
		}},
		"creations": {2, func(ctx context.Context, p *Provider, i int) error {
			ctx = provider.WithReservation(ctx, 2)
			if _, err := p.FindTunnel(ctx, fmt.Sprint("tunnel-", i)); !errors.Is(err, provider.ErrNotFound) {
				return err
			}
			_, err := p.CreateTunnel(ctx, fmt.Sprint("tunnel-", i))
			return err
		}},
	} {
		for _, workers := range []int{4, 32} {
			t.Run(fmt.Sprintf("%s by %d workers", name, workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var sent atomic.Int64
					p := newProvider(t, Options{AccountID: account, APIToken: rand.Text(), Transport: answering(func(r *http.Request) (*http.Response, error) {
						sent.Add(1)
						if r.URL.Query().Has("per_page") {
							return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
						}
						return jsonResponse(http.StatusOK, `{"success":true,"result":{"id":"`+string(someID)+`","name":"a"}}`), nil
					})})
					began := time.Now()
					work(t, workers, size, func(i int) error { return test.call(t.Context(), p, i) })
					if got, want := sent.Load(), int64(size*test.requests); got != want {
						t.Errorf("%d requests, want %d", got, want)
					}
					ideal := time.Duration(size*test.requests-requestBurst) * requestInterval
					if took := time.Since(began); took > ideal*3/2 {
						t.Errorf("it took %s, at the rate it is %s", took, ideal)
					}
				})
			})
		}
	}
}

// However many deletions are under way at once, and however long their requests
// take, a change finds its reserve.
func TestChangesAmongDeletions(t *testing.T) {
	const latency, jobs = 200 * time.Millisecond, 100
	for _, workers := range []int{4, 32} {
		t.Run(fmt.Sprintf("by %d workers", workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProvider(t, Options{AccountID: account, APIToken: rand.Text(), Transport: answering(func(r *http.Request) (*http.Response, error) {
					pass(latency)
					if r.URL.Query().Has("per_page") {
						return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
					}
					return jsonResponse(http.StatusOK, `{"success":true,"result":{"id":"`+string(someID)+`","name":"a","config":{"ingress":[]},"version":1}}`), nil
				})})
				var deletions sync.WaitGroup
				deletions.Go(func() {
					work(t, workers, jobs, func(i int) error {
						ctx := provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityDeletion), 3)
						if _, err := p.FindTunnel(ctx, fmt.Sprint("tunnel-", i)); !errors.Is(err, provider.ErrNotFound) {
							return err
						}
						return p.DeleteTunnel(ctx, someID)
					})
				})
				for range 30 {
					pass(time.Second)
					asked := time.Now()
					if _, _, err := p.Configuration(t.Context(), someID); err != nil {
						t.Errorf("a change is turned away: %v", err)
					}
					if waited := time.Since(asked) - latency; waited > 0 {
						t.Errorf("a change waits for %s", waited)
					}
				}
				deletions.Wait()
			})
		})
	}
}

// work has so many workers do every job, again when it says so.
func work(t *testing.T, workers, jobs int, do func(int) error) {
	var running sync.WaitGroup
	free := make(chan struct{}, workers)
	end := time.Now().Add(time.Hour)
	for i := range jobs {
		running.Go(func() {
			for {
				free <- struct{}{}
				err := do(i)
				<-free
				if err == nil {
					return
				}
				wait, ok := provider.RetryAfter(err)
				if !ok || time.Now().After(end) {
					t.Errorf("job %d: %v", i, err)
					return
				}
				pass(wait)
			}
		})
	}
	running.Wait()
}

// A write whose answer was lost may have been applied, whatever its repetition
// met.
func TestLostWriteThatIsLimitedThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		p := newProvider(t, Options{AccountID: account, APIToken: rand.Text(), Transport: answering(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				return nil, errors.New("connection reset by peer")
			}
			resp := jsonResponse(http.StatusTooManyRequests, `{"success":false,"errors":[{"code":971,"message":"slow down"}]}`)
			resp.Header.Set("Retry-After", "60")
			return resp, nil
		})})
		_, err := p.Configure(t.Context(), someID, document("a"))
		unavailable, ok := errors.AsType[*provider.UnavailableError](err)
		if !ok || unavailable.RetryAfter != time.Minute {
			t.Errorf("got %v, want an UnavailableError that asks for a minute", err)
		}
		if _, limited := errors.AsType[*provider.RateLimitedError](err); limited {
			t.Error("it passes for a write that was not made")
		}
	})
}
