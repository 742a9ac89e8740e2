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

var _ = Describe("somebody else", lifecycle, func() {
	It("is put right with an event that names the difference, and not fought with", func(ctx SpecContext) {
		w := newWorld()
		w.start("--drift-interval=10s")
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		id := w.tunnel("shared")

		By("putting two edits right")
		for range 2 {
			w.edge.SetConfiguration(id, foreign)
			Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		}
		Eventually(w.notes).WithArguments(ctx, "shared", "DriftRepaired").Should(ContainElement(ContainSubstring("a.example.com")))
		text, _ := w.edge.StoredConfiguration(id)
		Expect(string(text)).To(ContainSubstring(`"enabled":true`), "warp-routing is not ours and stays")

		By("stopping at the third")
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
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("418"), "also after a restart, and with changes")
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero())

		By("going on after a pause")
		change(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		change(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, v1alpha1.PausedAnnotation) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
	})

	It("may keep the controller from pushing, who goes on computing", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		change(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "what is in effect is in effect")
		w.edge.ResetRequests()
		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(routeSays(route, "shared")).Should(Equal("True Accepted"))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring(v1alpha1.PausedAnnotation))

		By("keeping the tunnel and its connectors when the Gateway is deleted")
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

var _ = Describe("a tunnel that retires", lifecycle, func() {
	It("is retained with its configuration when an administrator says so", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("waiting for a wrong API token, which delays no deletion")
		w.edge.SetToken("another")
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).WithTimeout(soonEnough).Should(BeTrue())
		Eventually(w.tunnelSays(g, v1alpha1.TunnelCredentialsValid)).Should(Equal("False Unauthorized"))
		change(w.tunnelObject(g), func(t *v1alpha1.Tunnel) { t.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
		Eventually(w.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("resuming when the Gateway returns")
		w.edge.SetToken("token")
		id := w.tunnel("shared")
		again := w.gateway("shared", "*.example.com")
		w.create(again)
		Eventually(programmed(again)).WithTimeout(90 * time.Second).Should(Equal("True Programmed"))
		Expect(fresh(again).Status.Addresses[0].Value).To(HavePrefix(id))
	})
})
