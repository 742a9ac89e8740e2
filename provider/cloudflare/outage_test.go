package cloudflare

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// While the API does not respond, the calls for many Gateways do not occupy all workers,
// which also publish routes for Gateways with Envoy.
func TestCallsWithoutAnAnswerLeaveWorkersFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting atomic.Int64
		start, isUp := time.Now(), false
		p := newProvider(t, Options{AccountID: account, APIToken: "token", Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			if isUp {
				return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
			}
			waiting.Add(1)
			defer waiting.Add(-1)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		read := func() error {
			_, err := p.Tunnels(provider.WithPriority(t.Context(), provider.PriorityStart))
			return err
		}
		const workers = 4
		var running sync.WaitGroup
		for range workers {
			running.Go(func() {
				for time.Since(start) < time.Minute {
					wantUnavailable(t, read(), 0)
					advance(time.Second)
				}
			})
		}
		advance(provider.CallTimeout / 2)
		for range 4 {
			advance(provider.CallTimeout)
			if got := waiting.Load(); got > maxWaiting {
				t.Errorf("%d calls wait for an answer after %s, want at most %d", got, time.Since(start), maxWaiting)
			}
		}
		running.Wait()
		isUp = true
		for range 3 {
			if err := read(); err != nil {
				t.Errorf("after the outage: %v", err)
			}
		}
	})
}

// With many Gateways, retries would use up the API request budget during an outage.
func TestCallsAreNotRetriedDuringAnOutage(t *testing.T) {
	for name, fault := range map[string]simulator.Fault{
		"server errors": {Status: http.StatusServiceUnavailable}, "closed connections": {Drop: simulator.DropBeforeWrite},
	} {
		t.Run(name, func(t *testing.T) {
			withEdge(t, func(t *testing.T, e *edge) {
				attempts := func() int {
					e.ResetRequests()
					_, err := e.FindTunnel(t.Context(), name)
					wantUnavailable(t, err, 0)
					return e.Count("", "")
				}
				e.Inject(fault)
				if got := attempts(); got < 2 {
					t.Errorf("the first call made %d attempts, want retries", got)
				}
				for range maxFailed {
					_ = attempts()
					advance(time.Minute)
				}
				if got := attempts(); got != 1 {
					t.Errorf("a later call made %d attempts, want 1", got)
				}
				e.ClearFaults()
				e.newTunnel(t)
				fault.Times = 1
				e.Inject(fault)
				if _, err := e.FindTunnel(t.Context(), "another"); !errors.Is(err, provider.ErrNotFound) {
					t.Errorf("after the outage, a call is not retried: %v", err)
				}
			})
		})
	}
}
