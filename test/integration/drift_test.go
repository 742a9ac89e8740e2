package integration

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
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
			w.edge.SetDocument(id, foreign)
			Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		}
		Eventually(w.notes).WithArguments(ctx, "shared", "ForeignEdit").Should(ContainElement(ContainSubstring("a.example.com")))
		text, _ := w.edge.Document(id)
		Expect(string(text)).To(ContainSubstring(`"enabled":true`), "warp-routing is not ours and stays")

		By("stopping at the third")
		w.edge.SetDocument(id, foreign)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("has stopped writing it"))
		Expect(programmed(g)()).To(Equal("False Pending"))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning DriftFight"))
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
		change(g, func(g *gatewayv1.Gateway) { g.Annotations[state.PausedAnnotation] = "true" })
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		change(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, state.PausedAnnotation) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
	})

	It("may keep the controller from pushing, who goes on computing", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		change(g, func(g *gatewayv1.Gateway) { g.Annotations[state.PausedAnnotation] = "true" })
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "what is in effect is in effect")
		w.edge.ResetRequests()
		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(routeSays(route, "shared")).Should(Equal("True Accepted"))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring(state.PausedAnnotation))

		By("holding a deletion too")
		w.delete(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("kept until its tunnel is deleted"))
		w.settle(ctx)
		Expect(w.edge.Count("", "")).To(BeZero())
		change(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, state.PausedAnnotation) })
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Expect(w.tunnel("shared")).To(BeEmpty())
	})
})

var _ = Describe("letting go", lifecycle, func() {
	It("leaves tunnel and document when it shall retain them", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		g.Annotations = map[string]string{state.DeletionPolicyAnnotation: "retain"}
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))

		By("deleting nothing while nobody knows what is meant")
		w.delete(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring(`is "retain", and not Delete or Retain`))
		change(g, func(g *gatewayv1.Gateway) { g.Annotations[state.DeletionPolicyAnnotation] = "Retain" })
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(w.token("shared")).To(BeEmpty())
	})

	It("does not wait for ever on a wrong API token", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.edge.SetToken("another")
		w.delete(g)
		Eventually(gatewayMessage(g)).Should(And(ContainSubstring("refuses the API token"), ContainSubstring(state.DeletionPolicyAnnotation+": Retain")))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning DeletionFailed"))
		change(g, func(g *gatewayv1.Gateway) { g.Annotations[state.DeletionPolicyAnnotation] = "Retain" })
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Expect(w.tunnel("shared")).NotTo(BeEmpty())
	})
})
