package integration

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// respond returns a handler that responds with the text.
func respond(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

var _ = Describe("with the data plane Envoy, the controller", withEnvoy, func() {
	It("keeps visitors of a Service with sessionAffinity on one pod through every connector", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		service := env.service("pods")
		slice := env.backend("pods", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
		update(slice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = nil
			for i := range 3 {
				s.Endpoints = append(s.Endpoints, env.serve(respond(fmt.Sprint("pod ", i))))
			}
		})
		route := env.route("pods", "pods", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"pods.example.com"}
		env.create(route)
		pods := func(visitor string) func() []string {
			return func() []string {
				reached := sets.New[string]()
				for range 24 { // the edge simulator uses both connectors
					reached.Insert(env.visit("shared", "pods.example.com", "/", "CF-Connecting-IP: "+visitor))
				}
				return sets.List(reached)
			}
		}
		visitors := []string{"203.0.113.1", "203.0.113.2", "2001:db8::1", "198.51.100.7", "192.0.2.99", "192.0.2.5"}
		Eventually(pods(visitors[0])).Should(HaveLen(3))
		update(service, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
		used := sets.New[string]()
		for _, visitor := range visitors {
			Eventually(pods(visitor)).Should(HaveLen(1))
			used.Insert(pods(visitor)()...)
		}
		Expect(used.Len()).To(BeNumerically(">", 1))
		update(service, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityNone })
		Eventually(pods(visitors[0])).Should(HaveLen(3))
	})

	It("takes circuit breakers and outlier detection from the GatewayClass without replacing a connector", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		release := make(chan struct{})
		env.backendAt("busy", env.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				<-release
			}
		})))
		route := env.route("busy", "busy", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"busy.example.com"}
		env.create(route)
		Eventually(env.visit).WithArguments("shared", "busy.example.com", "/").Should(BeEmpty())
		env.waitUntilIdle(ctx)
		before := env.connectorPods()
		env.cloudflare.ResetRequests()
		env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) {
			c.Connector.Envoy = &v1alpha1.EnvoyProxy{
				OutlierDetection: ptr.To(v1alpha1.OutlierDetectionDisabled), CircuitBreakers: &v1alpha1.CircuitBreakers{Requests: ptr.To[int32](1)},
			}
		})
		env.waitUntilIdle(ctx)
		var holding sync.WaitGroup
		for range 4 { // each Envoy holds one, and the others try again
			holding.Go(func() {
				defer GinkgoRecover()
				Eventually(env.visit).WithArguments("shared", "busy.example.com", "/hold").Should(BeEmpty())
			})
		}
		Eventually(env.visit).WithArguments("shared", "busy.example.com", "/").Should(Equal("503"))
		Eventually(func(g Gomega) {
			for range 16 {
				g.Expect(env.visit("shared", "busy.example.com", "/")).To(Equal("503"))
				g.Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
			}
		}).Should(Succeed())
		close(release)
		holding.Wait()
		Eventually(env.visit).WithArguments("shared", "busy.example.com", "/").Should(BeEmpty())
		Consistently(env.connectorPods, time.Second).Should(HaveExactElements(haveUIDsOf(before)...))
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeZero())
		Expect(dataPlaneReady(g)()).To(Equal("True Ready"))
	})
})

// haveUIDsOf matches the same pods, each in any state.
func haveUIDsOf(pods []corev1.Pod) []any {
	matchers := make([]any, len(pods))
	for i := range pods {
		matchers[i] = HaveField("UID", pods[i].UID)
	}
	return matchers
}
