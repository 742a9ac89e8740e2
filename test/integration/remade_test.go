package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a recreated Gateway", lifecycle, func() {
	It("keeps its tunnel if the retirement delay has not expired", func() {
		undisturbed()
		l := newLife()
		l.start("--retirement-delay=5s")
		l.addGateway()
		soon(l.right)
		id := l.tunnel("shared")
		for range 5 {
			l.deleteGateway()
			recreated := l.world.gateway("shared", "*.example.com")
			Eventually(kube.Create).WithArguments(GinkgoT().Context(), recreated).WithPolling(5 * time.Millisecond).Should(Succeed())
			l.gateway = recreated
			soon(l.right)
		}
		Expect(l.tunnel("shared")).To(Equal(id))
		Expect(l.edge.Tunnels()).To(HaveLen(1))
	})

	It("has one new tunnel with all its routes if the old tunnel was deleted", func() {
		undisturbed()
		l := newLife()
		l.start()
		l.addGateway()
		soon(l.right)
		l.deleteGateway()
		soon(l.gone)
		l.addGateway()
		soon(l.right)
		Expect(l.edge.Tunnels()).To(HaveLen(2))
	})

	DescribeTable("is served again after a temporary change to the class of another controller", func(leave func(l *life, class string)) {
		undisturbed()
		l, other := newLife(), newWorld() // the controller of other does not run
		l.start()
		l.addGateway()
		soon(l.right)
		leave(l, other.class)
		l.setClass(l.class)
		soon(l.right)
	},
		Entry("until the tunnel is deleted", func(l *life, class string) {
			l.setClass(class)
			soon(l.withdrawn)
		}),
		Entry("for a moment", func(l *life, class string) {
			l.setClass(class)
		}),
		Entry("while the tunnel is being deleted", (*life).leaveDuringDeletion),
	)

	It("does not report the deletion of its old tunnel as an external change", func(ctx SpecContext) {
		undisturbed()
		l, other := newLife(), newWorld()
		l.start()
		l.addGateway()
		soon(l.right)
		for range 8 { // the state of the controller's cache is different each time
			l.leaveDuringDeletion(other.class)
			l.setClass(l.class)
			soon(l.right)
		}
		Expect(l.events(ctx, "shared")).NotTo(ContainElement("Warning TunnelLost"))
	})
})

// changeClassDuringDeletion changes the class of the Gateway and returns while
// the controller deletes the tunnel.
func (l *life) leaveDuringDeletion(class string) {
	GinkgoHelper()
	before := l.edge.Count(http.MethodDelete, anyTunnel)
	l.edge.Inject(simulator.Fault{Method: http.MethodDelete, Path: anyTunnel, Latency: 500 * time.Millisecond, Times: 1})
	l.setClass(class)
	Eventually(l.edge.Count).WithArguments(http.MethodDelete, anyTunnel).Should(Equal(before + 1))
}

func (l *life) setClass(class string) {
	GinkgoHelper()
	change(l.gateway, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(class) })
}
