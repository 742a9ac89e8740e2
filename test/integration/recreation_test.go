package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a recreated Gateway", ownership, func() {
	It("keeps its tunnel if the retirement delay has not expired", func() {
		expectedConfigurations()
		s := newScenario()
		s.start("--retirement-delay=5s")
		s.addGateway()
		expectSoon(s.expectServed)
		id := s.tunnel("shared")
		for range 5 {
			s.deleteGateway()
			recreated := s.environment.gateway("shared", "*.example.com")
			Eventually(kube.Create).WithArguments(GinkgoT().Context(), recreated).WithPolling(5 * time.Millisecond).Should(Succeed())
			s.gateway = recreated
			expectSoon(s.expectServed)
		}
		Expect(s.tunnel("shared")).To(Equal(id))
		Expect(s.cloudflare.Tunnels()).To(HaveLen(1))
	})

	It("has a new tunnel if the old one was deleted", func() {
		expectedConfigurations()
		s := newScenario()
		s.start()
		s.addGateway()
		expectSoon(s.expectServed)
		s.deleteGateway()
		expectSoon(s.expectDeleted)
		s.addGateway()
		expectSoon(s.expectServed)
		Expect(s.cloudflare.Tunnels()).To(HaveLen(2))
	})

	DescribeTable("is served again after another controller has managed it", func(changeClass func(s *scenario, class string)) {
		expectedConfigurations()
		s, other := newScenario(), newEnvironment() // the controller in other does not run
		s.start()
		s.addGateway()
		expectSoon(s.expectServed)
		changeClass(s, other.className)
		s.setClass(s.className)
		expectSoon(s.expectServed)
	},
		Entry("until the tunnel is deleted", func(s *scenario, class string) {
			s.setClass(class)
			expectSoon(s.expectCleanedUp)
		}),
		Entry("for a moment", func(s *scenario, class string) {
			s.setClass(class)
		}),
		Entry("while the tunnel is being deleted", (*scenario).changeClassDuringDeletion),
	)

	It("does not cause an event about a lost tunnel", func(ctx SpecContext) {
		expectedConfigurations()
		s, other := newScenario(), newEnvironment()
		s.start()
		s.addGateway()
		expectSoon(s.expectServed)
		for range 8 { // the controller's cache is in a different state each time
			s.changeClassDuringDeletion(other.className)
			s.setClass(s.className)
			expectSoon(s.expectServed)
		}
		Expect(s.events(ctx, "shared")).NotTo(ContainElement("Warning TunnelLost"))
	})
})

// changeClassDuringDeletion gives the Gateway another GatewayClass and returns while the
// controller deletes the tunnel.
func (s *scenario) changeClassDuringDeletion(class string) {
	GinkgoHelper()
	before := s.cloudflare.Count(http.MethodDelete, tunnelPath)
	s.cloudflare.Inject(simulator.Fault{Method: http.MethodDelete, Path: tunnelPath, Latency: 500 * time.Millisecond, Times: 1})
	s.setClass(class)
	Eventually(s.cloudflare.Count).WithArguments(http.MethodDelete, tunnelPath).Should(Equal(before + 1))
}

func (s *scenario) setClass(class string) {
	GinkgoHelper()
	update(s.gateway, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(class) })
}
