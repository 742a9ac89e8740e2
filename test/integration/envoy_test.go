package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// serveWithEnvoy creates the Gateway "shared" with the hostname, which covers
// a.example.com, the Services "one" and "two", and a route to "one". It returns when the
// Service responds to a request for a.example.com.
func (env *environment) serveWithEnvoy(hostname string) (*gatewayv1.Gateway, *gatewayv1.HTTPRoute) {
	GinkgoHelper()
	g, route := env.gateway("shared", hostname), env.route("web", "one", gatewayParent("shared"))
	env.backend("one")
	env.backend("two")
	env.create(g, route)
	Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("one"))
	Eventually(programmed(g)).Should(Equal("True Programmed"))
	Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
	return g, route
}

func toService(name string) func(*gatewayv1.HTTPRoute) {
	return func(r *gatewayv1.HTTPRoute) { r.Spec.Rules[0].BackendRefs[0].Name = gatewayv1.ObjectName(name) }
}

var _ = Describe("with the data plane Envoy, the controller", withEnvoy, func() {
	It("serves a changed route in milliseconds, without a request to Cloudflare", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, route := env.serveWithEnvoy("*.example.com")
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		var durations []time.Duration
		for i := range 40 {
			name := []string{"two", "one"}[i%2]
			update(route, toService(name))
			start := time.Now()
			Eventually(env.visit).WithPolling(time.Millisecond).WithArguments("shared", "a.example.com", "/").Should(Equal(name))
			durations = append(durations, time.Since(start))
		}
		slices.Sort(durations)
		AddReportEntry(fmt.Sprintf("measured: a route change is served after %s (median), %s (maximum)", durations[len(durations)/2], durations[len(durations)-1]))
		Expect(env.cloudflare.Count("", "")).To(BeZero())
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(dataPlaneReady(g)()).To(Equal("True Ready"))
	})

	It("serves 900 new routes with two writes to Cloudflare", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		const count = 900
		hostname := func(i int) string { return fmt.Sprintf("h%03d.example.com", i) }
		var creating sync.WaitGroup
		next := make(chan int)
		for range 16 {
			creating.Go(func() {
				defer GinkgoRecover()
				for i := range next {
					route := env.route(fmt.Sprintf("r%03d", i), "two", gatewayParent("shared"))
					route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(hostname(i))}
					Expect(kube.Create(ctx, route)).To(Succeed())
				}
			})
		}
		for i := range count {
			next <- i
		}
		close(next)
		creating.Wait()
		created := time.Now()
		for i := range count {
			Eventually(env.visit).WithPolling(5*time.Millisecond).WithArguments("shared", hostname(i), "/").Should(Equal("two"))
		}
		AddReportEntry(fmt.Sprintf("measured: %d routes are served %s after the last create", count, time.Since(created)))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeNumerically("<=", 2))
	})

	It("follows the endpoints of a headless Service without a reconcile", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		slice := env.backend("headless", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
		env.backend("elsewhere")
		route := env.route("headless", "headless", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"headless.example.com"}
		env.create(route)
		Eventually(env.visit).WithArguments("shared", "headless.example.com", "/").Should(Equal("headless"))

		moved := env.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("moved")) }))
		update(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{moved} })
		start := time.Now()
		Eventually(env.visit).WithPolling(5*time.Millisecond).WithArguments("shared", "headless.example.com", "/").Should(Equal("moved"))
		AddReportEntry(fmt.Sprintf("measured: a moved endpoint is followed after %s", time.Since(start)))

		// If a Service's owner writes a connector's address to its EndpointSlices, they
		// still never lead to the connector.
		pod := env.connectorPods()[0]
		update(slice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Addresses, s.Ports[0].Port = []string{pod.Status.PodIP}, ptr.To[int32](2001)
		})
		Eventually(env.visit).WithArguments("shared", "headless.example.com", "/ready").Should(Equal("503"))
		Consistently(env.visit, time.Second).WithArguments("shared", "headless.example.com", "/ready").Should(Equal("503"))
	})

	It("serves changes of a paused Gateway's routes", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, route := env.serveWithEnvoy("*.example.com")
		update(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(env.tunnelCondition(g, "Ready")).Should(HaveSuffix("Paused"))
		update(route, toService("two"))
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("two"))
	})

	It("starts Envoys as a new leader, without losing a request", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, route := env.serveWithEnvoy("*.example.com")
		waiting := func() (names []string) {
			for _, pod := range env.connectorPods() {
				if !isPodReady(&pod) && pod.DeletionTimestamp == nil {
					names = append(names, pod.Name)
				}
			}
			return names
		}
		Eventually(env.connectorPods).Should(HaveLen(2))
		Eventually(waiting).Should(BeEmpty())
		env.stop()
		// A new pod waits for a leader, and the other one serves.
		pods := env.connectorPods()
		env.delete(&pods[0])
		Eventually(func() int { return len(env.connectorPods()) }).Should(Equal(2))
		Eventually(waiting).Should(HaveLen(1))
		Consistently(env.visit, 2*time.Second).WithArguments("shared", "a.example.com", "/").Should(Equal("one"))
		Expect(waiting()).To(HaveLen(1))
		update(route, toService("two"))
		env.startWithEnvoy("--leader-election=true")
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("two"))
		Eventually(waiting).Should(BeEmpty())
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
	})

	It("keeps the Envoys of a Gateway that is not accepted", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		settings := env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{})
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{CAPool: ptr.To("/etc/ca.pem")}
		})
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		env.stop()
		env.startWithEnvoy()
		Consistently(env.visit, 3*time.Second).WithArguments("shared", "a.example.com", "/").Should(Equal("one"))
		update(settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.OriginRequest = nil })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
	})

	It("serves a deleted Gateway until its Tunnel is gone", func() {
		env := newEnvoyEnvironment()
		address := freeAddress()
		env.startWithEnvoy("--retirement-delay=3s", "--metrics-address="+address)
		g, _ := env.serveWithEnvoy("*.example.com")
		id := env.tunnel("shared")
		shared := []string{"gateway_namespace=" + env.namespace, "gateway=shared"}
		Eventually(metricValue(address, "tunnel_gateway_connected_envoys", shared...)).Should(Equal(2.0))
		Eventually(metricValue(address, "tunnel_gateway_data_plane_ready", shared...)).Should(Equal(1.0))
		Expect(metricValue(address, "tunnel_gateway_xds_pushes_total", append(shared, "resources=routes")...)()).To(BeNumerically(">=", 2))
		Expect(metricValue(address, "tunnel_gateway_xds_rejections_total", append(shared, "resources=routes")...)()).To(BeZero())
		Expect(metricValue(address, "tunnel_gateway_xds_acknowledgement_seconds", "resources=routes")()).To(BeNumerically(">=", 2))

		env.delete(g)
		Consistently(env.getThrough, 2*time.Second).WithArguments(id, "a.example.com", "/").Should(Equal("one"))
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
		Eventually(fetchMetrics).WithArguments(address).ShouldNot(ContainSubstring(`gateway="shared"`))
	})
})

// connectorPods returns the connector pods of all Gateways.
func (env *environment) connectorPods() []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(context.Background(), &pods, client.InNamespace(env.controllerNamespace), client.HasLabels{"tunnelgateway.dev/tunnel"})).To(Succeed())
	return pods.Items
}

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
