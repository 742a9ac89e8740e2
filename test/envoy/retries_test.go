package envoy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestRetries counts the requests that a backend receives for one request of a client.
func TestRetries(t *testing.T) {
	b := start(t)
	for path, want := range map[string]struct {
		backend          string
		status, requests int
	}{
		"/codes":                 {"recovers", 200, 3},
		"/once":                  {"recovers", 503, 2},
		"/other-code":            {"recovers", 503, 1},
		"/without-retry":         {"recovers", 503, 1},
		"/without-codes":         {"recovers", 503, 1},
		"/reset-with-codes":      {"resets", 503, 3},
		"/reset-without-codes":   {"resets", 503, 1},
		"/timeout-with-codes":    {"wakes", 200, 2},
		"/timeout-without-codes": {"wakes", 504, 1},
		"/request-timeout":       {"slow", 504, 2},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(method+" "+path, func(t *testing.T) {
				r := parseRequest(method + " retries.example.com" + path)
				if method == "POST" {
					r.body = "once"
				}
				b.wantRequests(t, want.backend, r, want.status, want.requests)
			})
		}
	}
}

// wantRequests sends a request, and checks the status and how often the backend received it.
func (b *bed) wantRequests(t *testing.T, name string, r request, status, requests int) {
	t.Helper()
	backend := b.backends.byName[name]
	backend.takeAll()
	o := send(t, b.open, r.text())
	arrivals := backend.await(t)
	if len(arrivals) != requests || o.status != status {
		t.Errorf("the client got the status %d after %d requests to the backend, want %d after %d", o.status, len(arrivals), status, requests)
	}
	for i, a := range arrivals {
		if a.Body != r.body || a.Start != arrivals[0].Start {
			t.Errorf("request %d to the backend is %s with %d bytes, and the client's request has %d", i, a.Start, len(a.Body), len(r.body))
		}
	}
}

// TestLargeBodiesAreNotSentAgain shows the limit on the body of a request that Envoy repeats.
func TestLargeBodiesAreNotSentAgain(t *testing.T) {
	b := start(t)
	for size, want := range map[int]struct{ status, requests int }{
		500 << 10:  {200, 3},
		1100 << 10: {503, 1},
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := parseRequest("POST retries.example.com/codes")
			r.body = strings.Repeat("x", size)
			b.wantRequests(t, "recovers", r, want.status, want.requests)
		})
	}
}

// TestRetriesUseAnotherPod sends requests to Services with two pods. One of them fails, or
// refuses connections.
func TestRetriesUseAnotherPod(t *testing.T) {
	b := start(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	for path, want := range map[string]string{"/one-pod-fails": "200 half-fails", "/one-pod-refuses": "200 half"} {
		var clients errgroup.Group
		for range 8 { // fewer than the retry budget
			clients.Go(func() error {
				for range 50 {
					result, err := get(transport, b.open, "retries.example.com", path)
					if err != nil {
						return err
					}
					if result != want {
						return fmt.Errorf("%s: got %s, want %s", path, result, want)
					}
				}
				return nil
			})
		}
		if err := clients.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestRetriesHaveABudget sends many requests at once to a backend that then fails all of them.
// Envoy repeats at least 10 of them, and at most 20 %.
func TestRetriesHaveABudget(t *testing.T) {
	const requests = 100
	b := start(t)
	backend := b.backends.byName["overloaded"]
	first, repeated := make(chan struct{}), make(chan struct{})
	backend.takeAll()
	backend.waitBeforeAnswer(func(n int) {
		if n <= requests {
			<-first
		} else {
			<-repeated
		}
	})
	results := make(chan string, requests)
	transport := &http.Transport{MaxIdleConnsPerHost: requests}
	defer transport.CloseIdleConnections()
	for range requests {
		go func() {
			result, err := get(transport, b.open, "retries.example.com", "/overloaded")
			results <- fmt.Sprint(result, " ", err)
		}()
	}
	eventually(t, "the backend has all requests", func() bool { return backend.count() == requests })
	close(first)
	// Every request either has its answer or waits for the answer to its repetition.
	eventually(t, "Envoy has answered or repeated every request", func() bool { return len(results)+backend.count()-requests == requests })
	if n := backend.count() - requests; n < 10 || n > requests/5 {
		t.Errorf("Envoy repeated %d of %d requests at the same time, want 10 to %d", n, requests, requests/5)
	}
	close(repeated)
	for range requests {
		if result := <-results; result != "503 overloaded <nil>" {
			t.Errorf("got %s, want 503 from the backend", result)
		}
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // polls
		if time.Now().After(deadline) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}
