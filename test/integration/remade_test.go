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
	It("gets one new tunnel each time, with all that still hangs on it", func() {
		undisturbed()
		l := newLife()
		l.start()
		l.addGateway()
		soon(l.right)
		const times = 5
		for range times {
			l.deleteGateway()
			again := l.world.gateway("shared", "*.example.com")
			// The name is free as soon as the finalizer is gone.
			Eventually(kube.Create).WithArguments(GinkgoT().Context(), again).
				WithPolling(5 * time.Millisecond).Should(Succeed())
			l.gateway = again
			soon(l.right)
		}
		Expect(l.edge.Tunnels()).To(HaveLen(1 + times))
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
		Entry("until all was let go", func(l *life, class string) {
			l.setClass(class)
			soon(l.released)
		}),
		Entry("for a moment", func(l *life, class string) {
			l.setClass(class)
		}),
		Entry("while the tunnel is being deleted", (*life).leaveDuringDeletion),
	)

	It("blames nobody else for the deletion of its old tunnel", func(ctx SpecContext) {
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
