package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var errProcessEnded = errors.New("the process ended")

// crash ends the process at one of its requests to the API server or the Cloudflare
// API.
type crash struct {
	failAt  int  // index of the request at which the process ends
	applied bool // whether this request is executed

	mu       sync.Mutex // requests can be concurrent
	cancel   context.CancelFunc
	requests int // requests so far
	ended    bool
}

// request executes a request unless the process ends.
func (c *crash) request(do func() error) error {
	n, ended := c.next()
	switch {
	case ended:
		return errProcessEnded
	case n != c.failAt:
		return do()
	case c.applied:
		_ = do()
	}
	c.end()
	return errProcessEnded
}

// next returns the index of the next request, and whether the process has ended.
func (c *crash) next() (n int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = c.requests; !c.ended {
		c.requests++
	}
	return n, c.ended
}

// end ends the process.
func (c *crash) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.cancel()
}

// begin makes cancel end the next reconcile.
func (c *crash) begin(cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
}

// hasEnded reports whether the process has ended, once.
func (c *crash) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.ended
	c.ended = false
	return ended
}

// crashingProvider is a provider with calls at which the process can end.
type crashingProvider struct {
	provider.Provider
	crash *crash
}

// callWithResult executes a call that returns a result.
func callWithResult[R any](c *crash, do func() (R, error)) (result R, err error) {
	err = c.request(func() error {
		var callErr error
		result, callErr = do()
		return callErr
	})
	if err != nil {
		var zero R
		return zero, err
	}
	return result, nil
}

func (p crashingProvider) FindTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	return callWithResult(p.crash, func() (provider.Tunnel, error) { return p.Provider.FindTunnel(ctx, name) })
}

func (p crashingProvider) Tunnel(ctx context.Context, id provider.TunnelID) (provider.Tunnel, error) {
	return callWithResult(p.crash, func() (provider.Tunnel, error) { return p.Provider.Tunnel(ctx, id) })
}

func (p crashingProvider) CreateTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	return callWithResult(p.crash, func() (provider.Tunnel, error) { return p.Provider.CreateTunnel(ctx, name) })
}

func (p crashingProvider) Configuration(ctx context.Context, id provider.TunnelID) (configuration provider.Configuration, version provider.Version, err error) {
	err = p.crash.request(func() error {
		var callErr error
		configuration, version, callErr = p.Provider.Configuration(ctx, id)
		return callErr
	})
	return configuration, version, err
}

func (p crashingProvider) Configure(ctx context.Context, id provider.TunnelID, configuration provider.Configuration) (provider.Version, error) {
	return callWithResult(p.crash, func() (provider.Version, error) { return p.Provider.Configure(ctx, id, configuration) })
}

func (p crashingProvider) Token(ctx context.Context, id provider.TunnelID) (provider.Token, error) {
	return callWithResult(p.crash, func() (provider.Token, error) { return p.Provider.Token(ctx, id) })
}

func (p crashingProvider) RotateToken(ctx context.Context, id provider.TunnelID) error {
	return p.crash.request(func() error { return p.Provider.RotateToken(ctx, id) })
}

func (p crashingProvider) Connections(ctx context.Context, id provider.TunnelID) ([]provider.Connector, error) {
	return callWithResult(p.crash, func() ([]provider.Connector, error) { return p.Provider.Connections(ctx, id) })
}

func (p crashingProvider) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	return p.crash.request(func() error { return p.Provider.Disconnect(ctx, id, connector) })
}

func (p crashingProvider) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return p.crash.request(func() error { return p.Provider.DeleteTunnel(ctx, id) })
}

// crashHarness is a harness whose process ends once, at a chosen request.
type crashHarness struct {
	*harness
	*crash
}

func newCrashHarness(t *testing.T, at int, applied bool) *crashHarness {
	t.Helper()
	c := &crashHarness{harness: newConnectorHarness(t), crash: &crash{failAt: at, applied: applied}}
	c.injectError = func(write) (bool, error) {
		executed := false
		err := c.request(func() error { executed = true; return nil })
		return executed, err
	}
	c.start()
	return c
}

// start starts a controller process.
func (c *crashHarness) start() {
	c.restart()
	c.accounts.connect = func(string, string) (provider.Provider, error) { return crashingProvider{c.cloud, c.crash}, nil }
}

// reconcileUntil reconciles until the state is reached. It starts a new process when the
// process ends, and simulates the pods.
func (c *crashHarness) reconcileUntil(name string, reached func() bool) {
	c.t.Helper()
	for range 100 {
		ctx, cancel := context.WithCancel(c.t.Context())
		c.begin(cancel)
		result, err := c.Reconcile(ctx, c.key)
		cancel()
		if len(c.cloud.LiveTunnels()) > 1 {
			c.t.Fatalf("there are %d tunnels, want at most 1", len(c.cloud.LiveTunnels()))
		}
		switch {
		case c.hasEnded():
			c.start()
			continue
		case err != nil:
			c.t.Fatalf("reconcile until %s: %v", name, err)
		}
		c.runPods()
		if reached() {
			return
		}
		c.advance(max(result.RequeueAfter, time.Second))
	}
	c.t.Fatalf("not reached after 100 reconciles: %s; the Tunnel is %+v", name, c.tunnelObject())
}

// runPods replaces the pods if the Deployment has changed.
func (c *crashHarness) runPods() {
	switch d, pods := c.deployment(), c.pods(); {
	case d == nil && len(pods) > 0:
		c.stopPods()
	case d == nil:
	case len(pods) == 0 || pods[0].Annotations[connector.TokenVersionAnnotation] != d.Spec.Template.Annotations[connector.TokenVersionAnnotation]:
		c.rollOut()
	}
}

// isServing reports whether the Gateway is programmed in its current generation and its
// connectors run.
func (c *crashHarness) isServing() bool {
	g := c.gateway()
	for _, condition := range g.Status.Conditions {
		if condition.Type == string(gatewayv1.GatewayConditionProgrammed) {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == g.Generation && c.deployment() != nil && len(c.pods()) == 2
		}
	}
	return false
}

// runLifecycleScenario creates, changes and deletes the Gateway.
func runLifecycleScenario(c *crashHarness) {
	c.reconcileUntil("the Gateway is served", c.isServing)
	id := c.tunnelID()
	c.setHostname("b.example.com")
	c.reconcileUntil("the change is served", func() bool { return c.isServing() && c.servedHostname() == "b.example.com" })
	if c.tunnelID() != id {
		c.t.Error("the Gateway's tunnel was replaced")
	}
	c.delete(c.gateway())
	c.reconcileUntil("the Tunnel is deleted", func() bool { return c.tunnelObject() == nil })
	if remaining := c.cloud.LiveTunnels(); len(remaining) > 0 {
		c.t.Errorf("the tunnels %+v were not deleted", remaining)
	}
	c.collectGarbage()
	c.wantKinds()
}

// adoptAndRetain adopts a tunnel with takeover, and retains it.
func adoptAndRetain(c *crashHarness) {
	id := c.createUnmanagedTunnel("by hand")
	c.cloud.SetConfiguration(id, unmanagedConfiguration("old.example.com"))
	c.adopt(string(id), true)
	c.reconcileUntil("the Gateway is served", c.isServing)
	if c.tunnelID() != id || c.servedHostname() != "a.example.com" {
		c.t.Errorf("tunnel %s serves %s, want tunnel %s and a.example.com", c.tunnelID(), c.servedHostname(), id)
	}
	c.delete(c.gateway())
	c.reconcileUntil("the tunnel is retained", func() bool { return c.tunnelObject().Status.Phase == v1alpha1.TunnelRetained })
	if len(c.cloud.LiveTunnels()) != 1 || c.deployment() != nil {
		c.t.Errorf("the tunnels are %+v and the Deployment is %+v, want one tunnel and no Deployment", c.cloud.LiveTunnels(), c.deployment())
	}
}

// rotateOnDemand rotates the token for the Gateway's tunnel.
func rotateOnDemand(c *crashHarness) {
	c.reconcileUntil("the Gateway is served", c.isServing)
	before := c.token()
	c.requestRotation()
	c.reconcileUntil("the token is rotated", func() bool {
		recorded := c.tunnelObject().Status.Token
		return recorded.Requested != "" && recorded.Phase == ""
	})
	c.wantCurrentToken()
	if string(c.token()) == string(before) {
		c.t.Error("the token did not change")
	}
	connected, err := c.cloud.Connections(c.t.Context(), c.tunnelID())
	if err != nil || len(connected) != 2 || !c.isServing() {
		c.t.Errorf("the connectors are %+v, %v, want two", connected, err)
	}
}

func TestNextProcessFinishesInterruptedWork(t *testing.T) {
	// A process can end at any request. The next process finishes the work, never with more
	// than one tunnel and without an orphaned tunnel.
	for name, scenario := range map[string]struct {
		minRequests int // the scenario makes at least so many requests
		run         func(*crashHarness)
	}{
		"lifecycle": {25, runLifecycleScenario}, "adoption": {12, adoptAndRetain}, "rotation": {20, rotateOnDemand},
	} {
		for _, applied := range []bool{false, true} {
			requests := 0
			for failAt := 0; failAt <= requests && !t.Failed(); failAt++ {
				t.Run(fmt.Sprintf("%s, at request %d, applied %t", name, failAt, applied), func(t *testing.T) {
					c := newCrashHarness(t, failAt, applied)
					scenario.run(c)
					requests, _ = c.next()
				})
			}
			if requests < scenario.minRequests {
				t.Errorf("%s makes %d requests, want at least %d", name, requests, scenario.minRequests)
			}
		}
	}
}

// adopt makes the GatewayClass adopt an existing tunnel.
func (h *harness) adopt(id string, takeover bool) {
	h.t.Helper()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id, Takeover: ptr.To(takeover)}}
	})
}

// requestRotation requests a token rotation by annotation.
func (h *harness) requestRotation() {
	h.t.Helper()
	object := h.tunnelObject()
	h.change(object.Namespace, object.Name, object, func() { metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1alpha1.RotateTokenAnnotation, "1") })
}

// unmanagedConfiguration returns a configuration that the controller did not write.
func unmanagedConfiguration(hostname string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{{Hostname: hostname, Service: "http://web:80"}, {Service: "http_status:404"}}}
}
