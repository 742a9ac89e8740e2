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

var _ = Describe("a Gateway that the controller cannot read", lifecycle, func() {
	It("keeps its tunnel if its GatewayClass is deleted", func() {
		w := newWorld()
		w.start()
		second := w.secondClass()
		g, canary := w.gateway("shared", "a.example.com"), w.gateway("canary", "canary.example.com")
		canary.Spec.GatewayClassName = gatewayv1.ObjectName(second)
		w.create(w.service("web"), g, canary, w.route("web", "web", toGateway("shared")))
		before := w.served(g)
		Eventually(programmed(canary)).Should(Equal("True Programmed"))

		class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: w.class}}
		w.delete(class)
		if !w.isGone(class) { // remove the finalizers, as an administrator might do
			change(class, func(c *gatewayv1.GatewayClass) { c.Finalizers = nil })
		}
		Eventually(w.isGone).WithArguments(class).Should(BeTrue())
		w.addListener(canary, "more.example.com")
		w.keeps(before)

		By("restarting the controller")
		w.stop()
		w.start()
		w.addListener(canary, "other.example.com")
		w.keeps(before)
	})

	It("keeps its tunnel if its namespace is not watched", func() {
		w := newWorld()
		out := w.namespace + "-out"
		w.start()
		g, service := w.gateway("shared", "a.example.com"), w.service("web")
		route := w.route("web", "web", toGateway("shared"))
		g.Namespace, service.Namespace, route.Namespace = out, out, out
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: out}}, g, service, route)
		before := w.served(g)

		By("restarting the controller with another namespace only")
		w.stop()
		w.start("--namespaces=" + w.namespace)
		canary := w.gateway("canary", "canary.example.com")
		w.create(canary)
		Eventually(programmed(canary)).Should(Equal("True Programmed"))
		w.keeps(before)

		By("deleting the Gateway in the namespace that is not watched")
		w.delete(g)
		w.addListener(canary, "more.example.com")
		w.keeps(before)
	})

	DescribeTable("keeps its tunnel while the API server", func(fault apiFault) {
		w := newWorld()
		proxy := newAPIProxy()
		w.start("--kubeconfig=" + proxy.kubeconfig)
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g, w.hostRoute("a"))
		before := w.served(g)

		By("starting the fault while the controller runs")
		proxy.inject(&fault)
		Eventually(proxy.failedReads).Should(BeNumerically(">=", aFewTimes))
		w.keeps(before)

		By("ending the fault")
		proxy.clear()
		w.create(w.hostRoute("b"))
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("a.example.com", "b.example.com"))
		Expect(w.tunnel("shared")).To(Equal(before.tunnel))
		before = w.served(g)

		By("starting the controller during the fault, which may make it exit")
		w.stop()
		proxy.inject(&fault)
		w.start("--kubeconfig=" + proxy.kubeconfig)
		Eventually(func() bool { return hasExited(w.process.Exited()) || proxy.failedReads() >= aFewTimes }).Should(BeTrue())
		w.keeps(before)
		w.process.Kill()

		By("starting the controller after the fault")
		proxy.clear()
		w.start("--kubeconfig=" + proxy.kubeconfig)
		w.create(w.hostRoute("c"))
		Eventually(w.hostnames).WithArguments("shared").Should(ContainElement("c.example.com"))
		Expect(w.tunnel("shared")).To(Equal(before.tunnel))
		Expect(w.edge.Count(http.MethodDelete, "")).To(BeZero())
	},
		Entry("forbids access to Gateways", apiFault{concerns: ofGateways, answer: forbidden}),
		Entry("forbids every request", apiFault{concerns: ofAnything, answer: forbidden}),
		Entry("returns a plain 404 page for Gateways", apiFault{concerns: ofGateways, answer: noSuchPage}),
		Entry("returns a plain 404 page for every request", apiFault{concerns: ofAnything, answer: noSuchPage}),
		Entry("does not serve the Gateway resource", apiFault{concerns: ofGateways, answer: notServed, hidden: true}),
	)
})

// minFailedReads is the number of failed reads of Gateways after which the
// controller has noticed the fault. It retries a failed read after about one
// second.
const aFewTimes = 3

func hasExited(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

// hostRoute returns a route of the Gateway "shared" for <name>.example.com.
func (w *world) hostRoute(name string) *gatewayv1.HTTPRoute {
	route := w.route(name, "web", toGateway("shared"))
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")}
	return route
}

// waitUntilServed waits until the Gateway serves a.example.com, and returns the
// state of its tunnel.
func (w *world) served(g *gatewayv1.Gateway) stored {
	GinkgoHelper()
	answer := func() string {
		id, ok := w.edge.TunnelID(w.tunnelNameIn(g.Namespace, g.Name))
		if !ok {
			return "no tunnel"
		}
		return w.getFrom(id, "a.example.com", "/")
	}
	Eventually(answer).Should(Equal("web"))
	Eventually(programmed(g)).Should(Equal("True Programmed"))
	id, _ := w.edge.TunnelID(w.tunnelNameIn(g.Namespace, g.Name))
	return w.stored(id)
}

// expectUnchanged expects for two seconds that the tunnel exists and that its
// configuration does not change.
func (w *world) keeps(before stored) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(w.isLive(before.tunnel)).To(BeTrue(), "the tunnel still exists")
		g.Expect(w.stored(before.tunnel)).To(Equal(before))
	}).WithTimeout(2 * time.Second).Should(Succeed())
}

// addListener adds a listener to the Gateway and waits until the controller has
// updated the status, which shows that the controller works.
func (w *world) addListener(g *gatewayv1.Gateway, hostname gatewayv1.Hostname) {
	GinkgoHelper()
	change(g, func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: gatewayv1.SectionName("l" + hostname), Hostname: &hostname, Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		})
	})
	Eventually(func() map[string]string {
		return current(fresh(g).Status.Conditions, g, "Accepted", "Programmed")
	}).Should(HaveEach("True"))
}
