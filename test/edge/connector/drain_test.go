package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// pod is a running connector with an origin in its pod. The origin is handling a request
// that came through the tunnel, and responds when it is released.
type pod struct {
	*process
	cloudflare *cloudflare
	data       *httptest.Server
	release    chan struct{}
	answer     chan string // the body, or the error
}

// startPod starts a connector with the arguments, and an edge that notices changes after the
// lag.
func startPod(t *testing.T, arguments string, lag simulator.Lag) *pod {
	t.Helper()
	p := &pod{release: make(chan struct{}), answer: make(chan string, 1)}
	began := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/blocked" {
			return
		}
		close(began)
		select {
		case <-p.release:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(origin.Close)
	p.cloudflare = newCloudflareWith(t, simulator.Options{
		Lag: func() simulator.Lag { return lag },
		DialConnector: func(ctx context.Context, connector, network, _ string) (net.Conn, error) {
			if connector != "pod-1" {
				t.Errorf("the edge connects to the pod %q", connector)
			}
			return (&net.Dialer{}).DialContext(ctx, network, origin.Listener.Addr().String())
		},
	})
	p.cloudflare.SetConfiguration(p.cloudflare.tunnel, json.RawMessage(`{"ingress":[{"service":"http://127.0.0.1:10080"}]}`))
	p.data = httptest.NewServer(p.cloudflare.Tunnel(p.cloudflare.tunnel))
	t.Cleanup(p.data.Close)
	p.process = startInPod(t, p.cloudflare.edge, p.cloudflare.token(t), "pod-1", arguments)
	p.waitForLog(t, "connected as")
	go func() { p.answer <- p.get("/blocked") }()
	<-began
	return p
}

// get sends a request through the tunnel and returns the response body or the error.
func (p *pod) get(path string) string {
	response, err := http.Get(p.data.URL + path)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// withoutGracePeriod are the arguments for a connector that ends a second after SIGTERM.
var withoutGracePeriod = strings.Replace(deployedArguments, "30s", "0s", 1)

// signal sends SIGTERM and waits until the connector gets no new requests.
func (p *pod) signal(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(p.get("/"), "1033") {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}

func TestConnectorCompletesRequestsInFlight(t *testing.T) {
	t.Parallel()
	p := startPod(t, deployedArguments, simulator.Lag{})
	p.signal(t)
	p.wantReady(t, http.StatusServiceUnavailable, 0)
	close(p.release)
	if got := <-p.answer; got != "done" {
		t.Errorf("the request in flight was answered %q", got)
	}
	p.waitForEnd(t)
	p.cloudflare.wantReplicas(t)
}

func TestGracePeriodEndsRequestsInFlight(t *testing.T) {
	t.Parallel()
	p := startPod(t, withoutGracePeriod, simulator.Lag{})
	p.signal(t)
	p.waitForLog(t, "in flight at the end of the grace period")
	if got := <-p.answer; !strings.Contains(got, "the connector has disconnected") {
		t.Errorf("the request in flight was answered %q", got)
	}
	for range p.lines { // Wait must not be called before the last line is read
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the connector exited with %v", err)
	}
	p.cloudflare.edge.Close() // waits until the connection has ended
	p.cloudflare.wantReplicas(t)
}

func TestConnectorServesAfterItHasUnregistered(t *testing.T) {
	t.Parallel()
	p := startPod(t, deployedArguments, simulator.Lag{Unregistered: time.Hour})
	close(p.release)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for status := http.StatusOK; status != http.StatusServiceUnavailable; {
		response, err := http.Get(p.metrics + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		status = response.StatusCode
		_ = response.Body.Close()
	}
	if got := p.get("/"); got != "" {
		t.Errorf("a request after SIGTERM was answered %q", got)
	}
}

func TestRequestsFailIfTheLagExceedsTheGracePeriod(t *testing.T) {
	t.Parallel()
	p := startPod(t, withoutGracePeriod, simulator.Lag{Unregistered: time.Hour})
	close(p.release)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitForLog(t, "failed to unregister")
	for !strings.Contains(p.get("/"), "the connector has disconnected") {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}
