package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("an external change", lifecycle, func() {
	It("is reverted with an event that names the difference, until it recurs too often", func(ctx SpecContext) {
		w := newWorld()
		w.start("--drift-interval=10s")
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		id := w.tunnel("shared")

		By("reverting two external changes")
		for range 2 {
			w.edge.SetConfiguration(id, foreign)
			Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		}
		Eventually(w.notes).WithArguments(ctx, "shared", "DriftRepaired").Should(ContainElement(ContainSubstring("a.example.com")))
		text, _ := w.edge.StoredConfiguration(id)
		Expect(string(text)).To(ContainSubstring(`"enabled":true`), "the controller does not manage warp-routing")

		By("making a third external change")
		w.edge.SetConfiguration(id, foreign)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("has stopped writing it"))
		Expect(programmed(g)()).To(Equal("False Pending"))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning DriftContested"))
		w.stop()
		w.edge.ResetRequests()
		w.start("--drift-interval=10s")
		more := w.route("more", "web", toGateway("shared"))
		w.create(more)
		Eventually(routeSays(more, "shared")).Should(Equal("True Accepted"))
		Eventually(w.edge.Count).WithArguments(http.MethodGet, configurations).Should(Equal(1))
		w.settle(ctx)
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("418"), "the controller does not write, even after a restart and with changes")
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero())

		By("pausing and resuming the Gateway")
		change(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		change(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, v1alpha1.PausedAnnotation) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
	})

})

var _ = Describe("a paused Gateway", lifecycle, func() {
	It("does not change its tunnel, but its status is updated", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		change(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "the configuration in effect is current")
		w.edge.ResetRequests()
		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(routeSays(route, "shared")).Should(Equal("True Accepted"))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring(v1alpha1.PausedAnnotation))

		By("deleting the Gateway while it is paused")
		w.delete(g)
		Eventually(w.tunnelPhase(g)).Should(Equal("Blocked"))
		w.settle(ctx)
		Expect(w.edge.Count("", "")).To(BeZero())
		Expect(exists(w.deployment())).To(BeTrue())
		change(w.tunnelObject(g), func(t *v1alpha1.Tunnel) { t.Spec.Paused = false })
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
	})
})

var _ = Describe("a retiring tunnel", lifecycle, func() {
	It("is retained with its configuration if an administrator sets the deletion policy Retain", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("deleting the Gateway while the API token is invalid")
		w.edge.SetToken("another")
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).WithTimeout(soonEnough).Should(BeTrue())
		Eventually(w.tunnelSays(g, v1alpha1.TunnelCredentialsValid)).Should(Equal("False Unauthorized"))
		change(w.tunnelObject(g), func(t *v1alpha1.Tunnel) { t.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
		Eventually(w.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("recreating the Gateway with a valid API token")
		w.edge.SetToken("token")
		id := w.tunnel("shared")
		recreated := w.gateway("shared", "*.example.com")
		w.create(recreated)
		Eventually(programmed(recreated)).WithTimeout(90 * time.Second).Should(Equal("True Programmed"))
		Expect(fresh(recreated).Status.Addresses[0].Value).To(HavePrefix(id))
	})
})
