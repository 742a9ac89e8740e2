package integration

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("an external change", lifecycle, func() {
	It("is reverted with an event until it recurs too often", func(ctx SpecContext) {
		env := newEnvironment()
		env.start("--drift-interval=10s")
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		id := env.tunnel("shared")

		By("reverting two external changes")
		for range 2 {
			env.cloudflare.SetConfiguration(id, externalConfiguration)
			Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		}
		Eventually(env.eventMessages).WithArguments(ctx, "shared", "DriftRepaired").Should(ContainElement(ContainSubstring("a.example.com")))
		text, _ := env.cloudflare.StoredConfiguration(id)
		Expect(string(text)).To(ContainSubstring(`"enabled":true`), "the controller does not manage warp-routing")

		By("making a third external change")
		env.cloudflare.SetConfiguration(id, externalConfiguration)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("has stopped writing it"))
		Expect(programmed(g)()).To(Equal("False Pending"))
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Warning DriftContested"))
		env.stop()
		env.cloudflare.ResetRequests()
		env.start("--drift-interval=10s")
		additional := env.route("more", "web", gatewayParent("shared"))
		env.create(additional)
		Eventually(routeAccepted(additional, "shared")).Should(Equal("True Accepted"))
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(Equal(1))
		env.waitUntilIdle(ctx)
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("418"), "the controller does not write, even after a restart and with changes")
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeZero())

		By("pausing and resuming the Gateway")
		update(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		update(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, v1alpha1.PausedAnnotation) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))
	})
})

var _ = Describe("a paused Gateway", lifecycle, func() {
	It("keeps its tunnel unchanged while its status is updated", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		update(g, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.PausedAnnotation, "true")
		})
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "the configuration in effect is current")
		env.cloudflare.ResetRequests()
		route := env.route("web", "web", gatewayParent("shared"))
		env.create(route)
		Eventually(routeAccepted(route, "shared")).Should(Equal("True Accepted"))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring(v1alpha1.PausedAnnotation))

		By("deleting the Gateway while it is paused")
		env.delete(g)
		Eventually(env.tunnelPhase(g)).Should(Equal("Blocked"))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count("", "")).To(BeZero())
		Expect(exists(env.deployment())).To(BeTrue())
		update(env.tunnelObject(g), func(t *v1alpha1.Tunnel) { t.Spec.Paused = false })
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
	})
})

var _ = Describe("a retiring tunnel", lifecycle, func() {
	It("is retained if an administrator sets the deletion policy", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("deleting the Gateway while the API token is invalid")
		env.cloudflare.SetToken("another")
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())
		Eventually(env.tunnelCondition(g, "CredentialsValid")).Should(Equal("False Unauthorized"))
		update(env.tunnelObject(g), func(t *v1alpha1.Tunnel) { t.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
		Eventually(env.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("recreating the Gateway with a valid API token")
		env.cloudflare.SetToken("token")
		id := env.tunnel("shared")
		recreated := env.gateway("shared", "*.example.com")
		env.create(recreated)
		Eventually(programmed(recreated)).Should(Equal("True Programmed"))
		Expect(latest(recreated).Status.Addresses[0].Value).To(HavePrefix(id))
	})
})
