package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var _ = Describe("a Gateway whose state is unknown", ownership, func() {
	It("keeps its tunnel if its GatewayClass is deleted", func() {
		env := newEnvironment()
		env.start()
		second := env.createSecondClass()
		g, canary := env.gateway("shared", "a.example.com"), env.gateway("canary", "canary.example.com")
		canary.Spec.GatewayClassName = gatewayv1.ObjectName(second)
		env.create(env.service("web"), g, canary, env.route("web", "web", gatewayParent("shared")))
		before := env.waitUntilServed(g)
		Eventually(programmed(canary)).Should(Equal("True Programmed"))

		class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: env.className}}
		env.delete(class)
		if !env.isGone(class) { // remove the finalizers, as an administrator might do
			update(class, func(c *gatewayv1.GatewayClass) { c.Finalizers = nil })
		}
		Eventually(env.isGone).WithArguments(class).Should(BeTrue())
		env.addListener(canary, "more.example.com")
		env.expectUnchanged(before)

		By("restarting the controller")
		env.stop()
		env.start()
		env.addListener(canary, "other.example.com")
		env.expectUnchanged(before)
	})

	It("keeps its tunnel if its namespace is not watched", func() {
		env := newEnvironment()
		unwatched := env.namespace + "-out"
		env.start()
		g, service := env.gateway("shared", "a.example.com"), env.service("web")
		route := env.route("web", "web", gatewayParent("shared"))
		g.Namespace, service.Namespace, route.Namespace = unwatched, unwatched, unwatched
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unwatched}}, g, service, route)
		before := env.waitUntilServed(g)

		By("restarting the controller with another namespace only")
		env.stop()
		env.start("--namespaces=" + env.namespace)
		canary := env.gateway("canary", "canary.example.com")
		env.create(canary)
		Eventually(programmed(canary)).Should(Equal("True Programmed"))
		env.expectUnchanged(before)

		By("deleting the Gateway in the namespace that is not watched")
		env.delete(g)
		env.addListener(canary, "more.example.com")
		env.expectUnchanged(before)
	})

	DescribeTable("keeps its tunnel while the API server", func(fault apiFault) {
		env := newEnvironment()
		proxy := newAPIProxy()
		env.start("--kubeconfig=" + proxy.kubeconfig)
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g, env.hostRoute("a"))
		before := env.waitUntilServed(g)

		By("starting the fault while the controller runs")
		proxy.inject(&fault)
		Eventually(proxy.failedReads).Should(BeNumerically(">=", minFailedReads))
		env.expectUnchanged(before)

		By("ending the fault")
		proxy.clear()
		env.create(env.hostRoute("b"))
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("a.example.com", "b.example.com"))
		Expect(env.tunnel("shared")).To(Equal(before.tunnel))
		before = env.waitUntilServed(g)

		By("starting the controller during the fault, which may make it exit")
		env.stop()
		proxy.inject(&fault)
		env.start("--kubeconfig=" + proxy.kubeconfig)
		Eventually(func() bool { return hasExited(env.process.Exited()) || proxy.failedReads() >= minFailedReads }).Should(BeTrue())
		env.expectUnchanged(before)
		env.process.Kill()

		By("starting the controller after the fault")
		proxy.clear()
		env.start("--kubeconfig=" + proxy.kubeconfig)
		env.create(env.hostRoute("c"))
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElement("c.example.com"))
		Expect(env.tunnel("shared")).To(Equal(before.tunnel))
		Expect(env.cloudflare.Count(http.MethodDelete, "")).To(BeZero())
	},
		Entry("forbids access to Gateways", apiFault{matches: isGatewayPath, handler: forbidden}),
		Entry("forbids every request", apiFault{matches: anyPath, handler: forbidden}),
		Entry("returns a plain 404 page for Gateways", apiFault{matches: isGatewayPath, handler: pageNotFound}),
		Entry("returns a plain 404 page for every request", apiFault{matches: anyPath, handler: pageNotFound}),
		Entry("does not serve the Gateway resource", apiFault{matches: isGatewayPath, handler: resourceNotServed, hidesGateways: true}),
	)
})

// After minFailedReads failed Gateway reads, the controller has noticed the fault. It
// retries a failed read after about one second.
const minFailedReads = 3

func hasExited(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

// hostRoute returns a route on the Gateway "shared" for <name>.example.com.
func (env *environment) hostRoute(name string) *gatewayv1.HTTPRoute {
	route := env.route(name, "web", gatewayParent("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")}
	return route
}

// waitUntilServed waits until the Gateway serves a.example.com, and returns its tunnel's
// state.
func (env *environment) waitUntilServed(g *gatewayv1.Gateway) tunnelState {
	GinkgoHelper()
	response := func() string {
		id, ok := env.cloudflare.TunnelID(env.tunnelNameIn(g.Namespace, g.Name))
		if !ok {
			return "no tunnel"
		}
		return env.getThrough(id, "a.example.com", "/")
	}
	Eventually(response).Should(Equal("web"))
	Eventually(programmed(g)).Should(Equal("True Programmed"))
	id, _ := env.cloudflare.TunnelID(env.tunnelNameIn(g.Namespace, g.Name))
	return env.tunnelState(id)
}

// expectUnchanged expects for two seconds that the tunnel exists and that its
// configuration does not change.
func (env *environment) expectUnchanged(before tunnelState) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(env.isLive(before.tunnel)).To(BeTrue(), "the tunnel still exists")
		g.Expect(env.tunnelState(before.tunnel)).To(Equal(before))
	}).WithTimeout(2 * time.Second).Should(Succeed())
}

// addListener adds a listener to the Gateway and waits until the controller has
// updated the status, which shows that the controller works.
func (env *environment) addListener(g *gatewayv1.Gateway, hostname gatewayv1.Hostname) {
	GinkgoHelper()
	update(g, func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: gatewayv1.SectionName("l" + hostname), Hostname: &hostname, Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		})
	})
	Eventually(func() map[string]string {
		return conditionStatuses(latest(g).Status.Conditions, g, "Accepted", "Programmed")
	}).Should(HaveEach("True"))
}
