package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a Gateway that comes back", lifecycle, func() {
	It("keeps its tunnel when it returns before the retirement delay has passed", func() {
		undisturbed()
		l := newLife()
		l.start("--retirement-delay=5s")
		l.addGateway()
		soon(l.right)
		id := l.tunnel("shared")
		for range 5 {
			l.deleteGateway()
			again := l.world.gateway("shared", "*.example.com")
			Eventually(kube.Create).WithArguments(GinkgoT().Context(), again).WithPolling(5 * time.Millisecond).Should(Succeed())
			l.gateway = again
			soon(l.right)
		}
		Expect(l.tunnel("shared")).To(Equal(id))
		Expect(l.edge.Tunnels()).To(HaveLen(1))
	})

	It("gets one new tunnel when it returns later, with all that still refers to it", func() {
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

	DescribeTable("is served again when its class was another controller's for a while", func(leave func(l *life, class string)) {
		undisturbed()
		l, nobody := newLife(), newWorld() // no controller of that one runs
		l.start()
		l.addGateway()
		soon(l.right)
		leave(l, nobody.class)
		l.setClass(l.class)
		soon(l.right)
	},
		Entry("until its tunnel was deleted", func(l *life, class string) {
			l.setClass(class)
			soon(l.withdrawn)
		}),
		Entry("for a moment", func(l *life, class string) {
			l.setClass(class)
		}),
		Entry("while the tunnel is being deleted", (*life).leaveDuringDeletion),
	)

	It("does not report the deletion of its old tunnel as a loss", func(ctx SpecContext) {
		undisturbed()
		l, nobody := newLife(), newWorld()
		l.start()
		l.addGateway()
		soon(l.right)
		for range 8 { // what the cache knows when it is looked at again is a matter of luck
			l.leaveDuringDeletion(nobody.class)
			l.setClass(l.class)
			soon(l.right)
		}
		Expect(l.events(ctx, "shared")).NotTo(ContainElement("Warning TunnelLost"))
	})
})

// leaveDuringDeletion gives the Gateway another class and returns while its
// tunnel is being deleted.
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
