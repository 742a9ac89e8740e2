package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// application is a Service with pods, whose EndpointSlice the specs change like Kubernetes does.
type application struct {
	env   *environment
	host  string
	slice *discoveryv1.EndpointSlice
	mu    sync.Mutex // held while the EndpointSlice changes
}

// appPod is a server of an application.
type appPod struct {
	*http.Server
	discoveryv1.Endpoint
}

// newAppPod starts a pod, which takes some milliseconds for each request.
func newAppPod() *appPod {
	GinkgoHelper()
	listener, endpoint := listenBackend()
	p := &appPod{Endpoint: endpoint}
	p.Server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // #nosec G112 -- Envoy is the only client
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the work for a request
		_, _ = w.Write([]byte("served"))
	})}
	go func() { _ = p.Serve(listener) }()
	DeferCleanup(p.Close)
	return p
}

// newApplication creates an application with pods, and a route to it.
func (env *environment) newApplication(name string, pods ...*appPod) *application {
	GinkgoHelper()
	a := &application{env: env, host: name + ".example.com"}
	a.slice = env.backendAt(name, pods[0].Endpoint, func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	route := env.route(name, name, gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(a.host)}
	env.create(route)
	a.change(func(s *discoveryv1.EndpointSlice) { s.Endpoints = endpointsOf(pods) })
	Eventually(env.visit).WithArguments("shared", a.host, "/").Should(Equal("served"))
	return a
}

func endpointsOf(pods []*appPod) []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	for _, p := range pods {
		all = append(all, p.Endpoint)
	}
	return all
}

func (a *application) change(f func(*discoveryv1.EndpointSlice)) {
	GinkgoHelper()
	a.mu.Lock()
	defer a.mu.Unlock()
	update(a.slice, f)
}

// roll replaces the pods one after the other. Like the kubelet, it runs the preStop hook of a pod
// and then ends its process, while the endpoint is terminating.
func (a *application) roll(pods []*appPod, preStop time.Duration, end func(*http.Server)) {
	GinkgoHelper()
	var stopping sync.WaitGroup
	for _, old := range pods {
		replacement := newAppPod()
		a.change(func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, replacement.Endpoint) })
		isOld := func(e discoveryv1.Endpoint) bool { return e.Addresses[0] == old.Addresses[0] }
		stopping.Go(func() {
			time.Sleep(preStop) //nolint:forbidigo // the hook
			end(old.Server)
		})
		stopping.Go(func() {
			defer GinkgoRecover()
			a.change(func(s *discoveryv1.EndpointSlice) {
				s.Endpoints[slices.IndexFunc(s.Endpoints, isOld)].Conditions = discoveryv1.EndpointConditions{
					Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true),
				}
			})
			time.Sleep(preStop + 100*time.Millisecond) //nolint:forbidigo // the kubelet reports the end later
			a.change(func(s *discoveryv1.EndpointSlice) { s.Endpoints = slices.DeleteFunc(s.Endpoints, isOld) })
		})
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // until Kubernetes replaces the next pod
	}
	stopping.Wait()
}

// underRequests sends requests during an action. It returns the number of requests, and the
// results of the failed requests.
func (a *application) underRequests(action func()) (sent int, failures []string) {
	GinkgoHelper()
	const visitors = 8
	ctx, stop := context.WithCancel(context.Background())
	tunnel := a.env.cloudflare.Tunnel(a.env.tunnel("shared"))
	var mu sync.Mutex
	var visiting sync.WaitGroup
	for i := range visitors {
		visiting.Go(func() {
			for ctx.Err() == nil {
				method := []string{http.MethodGet, http.MethodPost}[i%2]
				response := httptest.NewRecorder()
				tunnel.ServeHTTP(response, httptest.NewRequest(method, "http://"+a.host+"/", strings.NewReader("body")))
				mu.Lock()
				sent++
				if response.Code != http.StatusOK || response.Body.String() != "served" {
					failures = append(failures, fmt.Sprintf("%s: %d %s", method, response.Code, response.Body))
				}
				mu.Unlock()
				time.Sleep(5 * time.Millisecond) //nolint:forbidigo // between two requests
			}
		})
	}
	action()
	stop()
	visiting.Wait()
	return sent, failures
}

// serverShutdown ends a server like most frameworks do: requests in progress get their response,
// and idle connections close.
func serverShutdown(s *http.Server) { _ = s.Shutdown(context.Background()) }

// serverExit ends a server like a process without a handler for SIGTERM.
func serverExit(s *http.Server) { _ = s.Close() }

var _ = Describe("with the data plane Envoy, an application", envoyRollouts, func() {
	It("is updated without a lost request if its pods have a preStop hook", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		for name, c := range map[string]struct {
			preStop time.Duration
			end     func(*http.Server)
		}{
			"prestop":  {5 * time.Second, serverExit},
			"shutdown": {0, serverShutdown},
			"exit":     {0, serverExit},
		} {
			pods := []*appPod{newAppPod(), newAppPod(), newAppPod()}
			a := env.newApplication(name, pods...)
			sent, failures := a.underRequests(func() { a.roll(pods, c.preStop, c.end) })
			AddReportEntry(fmt.Sprintf("measured: a rolling update of 3 pods (%s) loses %d of %d requests", name, len(failures), sent))
			if c.preStop > 0 {
				Expect(failures).To(BeEmpty())
			}
			Expect(sent).To(BeNumerically(">", 10*len(failures)), name)
			Expect(env.visit("shared", a.host, "/")).To(Equal("served"), "the new pods serve")
		}
	})

	It("returns 503 while it has no pods, and serves again with the first pod", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		pod := newAppPod()
		a := env.newApplication("scaled", pod)
		visit := func() string { return env.visit("shared", a.host, "/") }
		var down, up []time.Duration
		for range 15 {
			a.change(func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
			down = append(down, elapsedUntil(visit, "503"))
			a.change(func(s *discoveryv1.EndpointSlice) { s.Endpoints = endpointsOf([]*appPod{pod}) })
			up = append(up, elapsedUntil(visit, "served"))
		}
		slices.Sort(down)
		slices.Sort(up)
		AddReportEntry(fmt.Sprintf("measured: 503 %s after the last pod is gone, served %s after the first pod is ready (median)", down[len(down)/2], up[len(up)/2]))
		Expect(up[len(up)/2]).To(BeNumerically("<", 2*time.Second))
	})
})

// elapsedUntil returns the time until a visit has the result.
func elapsedUntil(visit func() string, want string) time.Duration {
	GinkgoHelper()
	start := time.Now()
	Eventually(visit).WithPolling(time.Millisecond).Should(Equal(want))
	return time.Since(start)
}
