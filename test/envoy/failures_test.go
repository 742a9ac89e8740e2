package envoy

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

func TestTimeouts(t *testing.T) {
	run(t, []row{
		{"GET failures.example.com/request", "504"},
		{"POST failures.example.com/request", "504"},
		{"GET failures.example.com/backend-request", "504"},
		{"GET failures.example.com/both", "504"},
		{"GET failures.example.com/zero-request", "504"},
		{"GET failures.example.com/in-time", "200 one GET /in-time"},
		{"GET failures.example.com/zero", "200 one GET /zero"},
	})
}

// TestTimedOutRequestsAreSentOnce shows that Envoy does not repeat a request whose time is over.
func TestTimedOutRequestsAreSentOnce(t *testing.T) {
	b := start(t)
	slow := b.backends.byName["slow"]
	for _, path := range []string{"/request", "/backend-request", "/both"} {
		slow.takeAll()
		if o := send(t, b.open, parseRequest("POST failures.example.com"+path).text()); o.status != 504 {
			t.Errorf("%s: status %d, want 504", path, o.status)
		}
		if n := len(slow.await(t)); n != 1 {
			t.Errorf("%s: the backend received %d requests, want 1", path, n)
		}
	}
}

// TestRoutesWithoutTimeouts reads the configuration, because Envoy's default is 15 seconds.
func TestRoutesWithoutTimeouts(t *testing.T) {
	b := start(t)
	for _, host := range envoy.Whole(envoy.ListenerOpen, envoy.Render(b.table).Routes).VirtualHosts {
		for _, route := range host.Routes {
			if action := route.GetRoute(); action != nil && action.Timeout == nil {
				t.Errorf("a route of %s has Envoy's default timeout: %v", host.Name, route)
			} else if action != nil && route.Match.GetPathSeparatedPrefix() == "/without-timeouts" && action.Timeout.AsDuration() != 0 {
				t.Errorf("a route without timeouts has the timeout %s", action.Timeout.AsDuration())
			}
		}
	}
}

func TestBackendsThatDoNotAnswer(t *testing.T) {
	run(t, []row{
		{"GET failures.example.com/refuses", "503"},
		{"POST failures.example.com/refuses", "503"},
		{"GET failures.example.com/resets", "503"},
		{"GET failures.example.com/without-pods", "503"},
	})
}

// TestNoRetryAfterAReset shows that a backend receives a request once, with any method.
func TestNoRetryAfterAReset(t *testing.T) {
	b := start(t)
	resets := b.backends.byName["resets"]
	for _, method := range []string{"POST", "GET", "PUT"} {
		resets.takeAll()
		r := parseRequest(method + " failures.example.com/resets")
		if method != "GET" {
			r.body = "once"
		}
		o := send(t, b.open, r.text())
		if n := len(resets.await(t)); n != 1 || o.status != 503 {
			t.Errorf("%s: the backend received %d requests, and the client the status %d; want 1 and 503", method, n, o.status)
		}
	}
}

// TestRetryAfterAFailedConnection sends requests to a headless Service. One of its two
// pods refuses connections. A retry never uses the pod that has just refused it, even
// while other connections use the pods in turn.
func TestRetryAfterAFailedConnection(t *testing.T) {
	b := start(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	var clients errgroup.Group
	for range 16 {
		clients.Go(func() error {
			for range 50 {
				result, err := get(transport, b.open, "failures.example.com", "/one-pod-refuses")
				if err != nil {
					return err
				}
				if result != "200 half" {
					return fmt.Errorf("got %s, want 200 from half", result)
				}
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
}
