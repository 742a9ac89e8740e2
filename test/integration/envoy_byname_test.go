package integration

import (
	"fmt"
	"io"
	"net/http"
	"slices"
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

// headless creates a headless Service with one pod, and a route for <name>.example.com.
// The pod answers with the text, which is the name at first.
func (env *environment) headless(name string) (text *atomic.Value, slice *discoveryv1.EndpointSlice) {
	GinkgoHelper()
	text = &atomic.Value{}
	text.Store(name)
	slice = env.backendAt(name, env.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, text.Load())
	})), func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	route := env.route(name, name, gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")}
	env.create(route)
	Eventually(env.visit).WithArguments("shared", name+".example.com", "/").Should(Equal(name))
	return text, slice
}

// keepVisiting visits the host until the returned function is called, which checks that
// each answer was one of the expected ones.
func (env *environment) keepVisiting(host string, expected ...string) (check func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	visits := 0
	unexpected := map[string]int{}
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				visits++
				if got := env.visit("shared", host, "/"); !slices.Contains(expected, got) {
					unexpected[got]++
				}
			}
		}
	}()
	return func() {
		GinkgoHelper()
		close(stop)
		<-done
		Expect(visits).To(BeNumerically(">", 10))
		Expect(unexpected).To(BeEmpty())
	}
}

var _ = Describe("with the data plane Envoy, a new leader", envoyRollouts, func() {
	It("keeps endpoints right while a Gateway is not accepted", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		reused, reusedSlice := env.headless("reused")
		deleted, deletedSlice := env.headless("deleted")
		_, moved := env.headless("moved")
		checkOne, checkMoved := env.keepVisiting("a.example.com", "one"), env.keepVisiting("moved.example.com", "moved", "elsewhere")
		settings := env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{})
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.OriginRequest = &v1alpha1.OriginRequest{CAPool: ptr.To("/etc/ca.pem")}
		})
		Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		env.stop()

		By("passing addresses to another tenant without a controller")
		ready := reusedSlice.Endpoints
		update(reusedSlice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{} })
		reused.Store("another tenant")
		deleted.Store("another tenant")
		env.delete(deletedSlice, &corev1.Service{ObjectMeta: deletedSlice.ObjectMeta})
		Expect(env.visit("shared", "reused.example.com", "/")).To(Equal("another tenant"))

		By("starting a leader that cannot build the routes")
		env.startWithEnvoy()
		for _, host := range []string{"reused.example.com", "deleted.example.com"} {
			Eventually(env.visitConnectors).WithArguments("shared", host, "/").Should(HaveEach("503"))
			Consistently(env.visit, time.Second).WithArguments("shared", host, "/").Should(Equal("503"))
		}
		Expect(env.visit("shared", "moved.example.com", "/")).To(Equal("moved"))
		Expect(accepted(g)()).To(Equal("False InvalidParameters"))

		By("changing endpoints and ports under this leader")
		elsewhere := env.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "elsewhere") }))
		update(moved, func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{elsewhere} })
		start := time.Now()
		Eventually(env.visit).WithPolling(5*time.Millisecond).WithArguments("shared", "moved.example.com", "/").Should(Equal("elsewhere"))
		AddReportEntry("measured: without a table, a moved endpoint is followed after " + time.Since(start).String())
		update(reusedSlice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = ready })
		reused.Store("reused")
		Eventually(env.visit).WithArguments("shared", "reused.example.com", "/").Should(Equal("reused"))
		service := &corev1.Service{ObjectMeta: reusedSlice.ObjectMeta}
		update(service, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		Eventually(env.visit).WithArguments("shared", "reused.example.com", "/").Should(Equal("503"))
		update(service, func(s *corev1.Service) { s.Spec.Ports[0].Port = 80 })
		Eventually(env.visit).WithArguments("shared", "reused.example.com", "/").Should(Equal("reused"))
		pod := env.connectorPods()[0]
		update(reusedSlice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{pod.Status.PodIP}}}
			s.Ports[0].Port = ptr.To[int32](2001)
		})
		Eventually(env.visitConnectors).WithArguments("shared", "reused.example.com", "/ready").Should(HaveEach("503"))
		Consistently(env.visit, time.Second).WithArguments("shared", "reused.example.com", "/ready").Should(Equal("503"))

		By("accepting the Gateway again")
		update(reusedSlice, func(s *discoveryv1.EndpointSlice) { s.Endpoints, s.Ports[0].Port = ready, ptr.To[int32](80) })
		update(settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.OriginRequest = nil })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(dataPlaneReady(g)).Should(Equal("True Ready"))
		Eventually(env.visit).WithArguments("shared", "reused.example.com", "/").Should(Equal("reused"))
		Eventually(env.visit).WithArguments("shared", "deleted.example.com", "/").Should(Equal("500"))
		checkOne()
		checkMoved()
	})
})
