package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// podsHost leads to the Service of a [podService].
const podsHost = "pods.example.com"

// podService is a Service whose pods answer with their index.
type podService struct {
	env       *environment
	slice     *discoveryv1.EndpointSlice
	endpoints []discoveryv1.Endpoint

	mu sync.Mutex
	// requests counts the requests, and connections has the connections, by pod.
	requests    []int
	connections []map[string]bool
}

func (env *environment) podService(count int) *podService {
	GinkgoHelper()
	s := &podService{env: env, requests: make([]int, count)}
	for i := range count {
		s.connections = append(s.connections, map[string]bool{})
		s.endpoints = append(s.endpoints, env.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.requests[i]++
			s.connections[i][r.RemoteAddr] = true
			s.mu.Unlock()
			_, _ = fmt.Fprintf(w, "pod %d", i)
		})))
	}
	s.slice = env.backendAt("pods", s.endpoints[0])
	s.setPods(s.endpoints...)
	route := env.route("pods", "pods", gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{podsHost}
	env.create(route)
	return s
}

func (s *podService) setPods(endpoints ...discoveryv1.Endpoint) {
	GinkgoHelper()
	update(s.slice, func(slice *discoveryv1.EndpointSlice) { slice.Endpoints = endpoints })
}

func (s *podService) visit() string { return s.env.visit("shared", podsHost, "/") }

func (s *podService) requestsOf(pod int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[pod]
}

// underLoad sends requests while f runs, and returns the answers that are not from a pod.
func (s *podService) underLoad(f func()) []string {
	GinkgoHelper()
	var done atomic.Bool
	var mu sync.Mutex
	var failures []string
	var visitors sync.WaitGroup
	for range 4 {
		visitors.Go(func() {
			defer GinkgoRecover()
			for !done.Load() {
				if answer := s.visit(); len(answer) < 4 || answer[:4] != "pod " {
					mu.Lock()
					failures = append(failures, answer)
					mu.Unlock()
				}
			}
		})
	}
	f()
	done.Store(true)
	visitors.Wait()
	return failures
}

// serveClusterIP answers on the ClusterIP of a Service without endpoints, where otherwise
// nothing listens.
func serveClusterIP(service *corev1.Service) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", net.JoinHostPort(service.Spec.ClusterIP, "80"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // #nosec G112 -- Envoy is the only client
		_, _ = io.WriteString(w, "ClusterIP")
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
}

var _ = Describe("with the data plane Envoy, the controller", envoyRollouts, func() {
	It("spreads HTTP/1 requests over the pods, and removes a pod without a failed request", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		s := env.podService(3)
		Eventually(s.visit).Should(HavePrefix("pod "))
		Expect(s.underLoad(func() {
			for pod := range 3 {
				Eventually(s.requestsOf).WithArguments(pod).Should(BeNumerically(">", 100))
			}
		})).To(BeEmpty())
		s.mu.Lock()
		for pod := range 3 {
			Expect(len(s.connections[pod])).To(BeNumerically("<", s.requests[pod]/2), "the connections to pod %d are kept alive", pod)
		}
		s.mu.Unlock()

		Expect(s.underLoad(func() {
			s.setPods(s.endpoints[:2]...)
			last := -1
			Eventually(func() bool {
				now := s.requestsOf(2)
				defer func() { last = now }()
				return now == last
			}).WithPolling(100 * time.Millisecond).Should(BeTrue())
			time.Sleep(300 * time.Millisecond) //nolint:forbidigo // requests meanwhile
			Expect(s.requestsOf(2)).To(Equal(last))
		})).To(BeEmpty())
	})

	It("returns 503 at once without a pod, and uses new pods in milliseconds", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		s := env.podService(2)
		Eventually(s.visit).Should(HavePrefix("pod "))
		var durations []time.Duration
		for range 10 {
			s.setPods()
			Eventually(s.env.visitConnectors).WithArguments("shared", podsHost, "/").Should(HaveEach("503"))
			start := time.Now()
			Expect(s.visit()).To(Equal("503"))
			Expect(time.Since(start)).To(BeNumerically("<", time.Second), "Envoy waits for no pod")
			s.setPods(s.endpoints[1])
			start = time.Now()
			Eventually(s.visit).WithPolling(time.Millisecond).Should(Equal("pod 1"))
			durations = append(durations, time.Since(start))
		}
		slices.Sort(durations)
		AddReportEntry(fmt.Sprintf("measured: a new pod gets requests %s (median), %s (maximum) after its EndpointSlice", durations[len(durations)/2], durations[len(durations)-1]))

		terminating := *s.endpoints[0].DeepCopy()
		terminating.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}
		s.setPods(terminating, s.endpoints[1])
		Consistently(s.visit, 500*time.Millisecond).Should(Equal("pod 1"))
		s.setPods(terminating)
		Eventually(s.visit).Should(Equal("pod 0"))
	})

	It("uses the ClusterIP for a Service that prefers near pods, and with backends Service", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		service, route := env.service("near"), env.route("near", "near", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"near.example.com"}
		env.create(service, route)
		serveClusterIP(service)
		visit := func() string { return env.visit("shared", "near.example.com", "/") }
		Eventually(visit).Should(Equal("503"), "the Service has no endpoints")

		update(service, func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		})
		Eventually(visit).Should(Equal("ClusterIP"))
		update(service, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = nil })
		Eventually(visit).Should(Equal("503"))
		update(service, func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} })
		Eventually(visit).Should(Equal("ClusterIP"))
		update(service, func(s *corev1.Service) { s.Annotations = nil })
		Eventually(visit).Should(Equal("503"))

		update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector.Envoy = &v1alpha1.EnvoyProxy{Backends: ptr.To(v1alpha1.BackendsService)}
		})
		Eventually(visit).Should(Equal("ClusterIP"))
	})
})
