package cloudflare

import (
	"context"
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

func TestManyJobsOfSeveralRequestsFinish(t *testing.T) {
	// Jobs with a reservation finish although many of them run at the same time: once its
	// reservation is granted, a job is not rejected between two calls.
	const size = 100
	for name, test := range map[string]struct {
		requests int
		call     func(context.Context, *Provider, int) error
	}{
		"deletions": {1, func(ctx context.Context, p *Provider, _ int) error {
			return p.DeleteTunnel(provider.WithPriority(ctx, provider.PriorityDeletion), testID)
		}},
		"searches followed by a deletion": {2, func(ctx context.Context, p *Provider, i int) error {
			ctx = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDeletion), 2)
			if _, err := p.FindTunnel(ctx, fmt.Sprint("tunnel-", i)); !errors.Is(err, provider.ErrNotFound) {
				return err
			}
			return p.DeleteTunnel(ctx, testID)
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
					p := newProvider(t, Options{AccountID: account, APIToken: "token", Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
						sent.Add(1)
						if r.URL.Query().Has("per_page") {
							return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
						}
						return jsonResponse(http.StatusOK, `{"success":true,"result":{"id":"`+string(testID)+`","name":"a"}}`), nil
					})})
					start := time.Now()
					work(t, workers, size, func(i int) error { return test.call(t.Context(), p, i) })
					if got, want := sent.Load(), int64(size*test.requests); got != want {
						t.Errorf("%d requests, want %d", got, want)
					}
					ideal := time.Duration(size*test.requests-requestBurst) * requestInterval
					if elapsed := time.Since(start); elapsed > ideal*3/2 {
						t.Errorf("took %s, want about %s", elapsed, ideal)
					}
				})
			})
		}
	}
}

func TestChangesDoNotWaitForDeletions(t *testing.T) {
	// A change finds its reserve, however many deletions are in progress and however long
	// their requests take.
	const latency, jobs = 200 * time.Millisecond, 100
	for _, workers := range []int{4, 32} {
		t.Run(fmt.Sprintf("by %d workers", workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProvider(t, Options{AccountID: account, APIToken: "token", Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
					advance(latency)
					if r.URL.Query().Has("per_page") {
						return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
					}
					return jsonResponse(http.StatusOK, `{"success":true,"result":{"id":"`+string(testID)+`","name":"a","config":{"ingress":[]},"version":1}}`), nil
				})})
				var deletions sync.WaitGroup
				deletions.Go(func() {
					work(t, workers, jobs, func(i int) error {
						ctx := provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityDeletion), 3)
						if _, err := p.FindTunnel(ctx, fmt.Sprint("tunnel-", i)); !errors.Is(err, provider.ErrNotFound) {
							return err
						}
						return p.DeleteTunnel(ctx, testID)
					})
				})
				for range 30 {
					advance(time.Second)
					start := time.Now()
					if _, _, err := p.Configuration(t.Context(), testID); err != nil {
						t.Errorf("a change was rejected: %v", err)
					}
					if waited := time.Since(start) - latency; waited > 0 {
						t.Errorf("a change waited %s", waited)
					}
				}
				deletions.Wait()
			})
		})
	}
}

// work runs every job on one of the workers, and retries a job that returns an error with
// a wait.
func work(t *testing.T, workers, jobs int, do func(int) error) {
	var running sync.WaitGroup
	slots := make(chan struct{}, workers)
	end := time.Now().Add(time.Hour)
	for i := range jobs {
		running.Go(func() {
			for {
				slots <- struct{}{}
				err := do(i)
				<-slots
				if err == nil {
					return
				}
				wait, ok := provider.RetryAfter(err)
				if !ok || time.Now().After(end) {
					t.Errorf("job %d: %v", i, err)
					return
				}
				advance(wait)
			}
		})
	}
	running.Wait()
}

func TestRateLimitAfterALostResponseIsUnavailable(t *testing.T) {
	// A write whose response was lost may have been applied, even if its retry reached the
	// rate limit.
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		p := newProvider(t, Options{AccountID: account, APIToken: "token", Transport: transportFunc(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				return nil, errors.New("connection reset by peer")
			}
			resp := jsonResponse(http.StatusTooManyRequests, `{"success":false,"errors":[{"code":971,"message":"slow down"}]}`)
			resp.Header.Set("Retry-After", "60")
			return resp, nil
		})})
		_, err := p.Configure(t.Context(), testID, configuration("a"))
		unavailable, ok := errors.AsType[*provider.UnavailableError](err)
		if !ok || unavailable.RetryAfter != time.Minute {
			t.Errorf("got %v, want an UnavailableError with a wait of one minute", err)
		}
		if _, limited := errors.AsType[*provider.RateLimitedError](err); limited {
			t.Error("the error is a RateLimitedError, which means that nothing was written")
		}
	})
}
