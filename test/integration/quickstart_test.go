package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The spec follows docs/quickstart.md and applies its files.
var _ = Describe("the quick start", users, func() {
	It("serves the first team, then the second with another hostname", func() {
		const quickstart = "quickstart/"
		env := newEnvironment()
		env.start()
		get := func(host string) string {
			id, ok := env.cloudflare.TunnelID(env.tunnelNameIn("infra", "shared"))
			if !ok {
				return "no tunnel"
			}
			return env.getThrough(id, host, "/")
		}
		shared := &gatewayv1.Gateway{ObjectMeta: objectMetaIn("infra", "shared")}
		shop := &gatewayv1.ListenerSet{ObjectMeta: objectMetaIn("shop", "shop")}
		wiki := &gatewayv1.ListenerSet{ObjectMeta: objectMetaIn("wiki", "wiki")}

		env.applySamples(kube, quickstart+"00-infra.yaml")
		DeferCleanup(env.deleteAndWait, &gatewayv1.Gateway{ObjectMeta: objectMetaIn("infra", "shared")})
		Eventually(programmed(shared)).Should(Equal("True Programmed"))
		id, _ := env.cloudflare.TunnelID(env.tunnelNameIn("infra", "shared"))
		Expect(latest(shared).Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))

		env.applySamples(kube, quickstart+"10-shop.yaml")
		Eventually(listenerSetCondition(shop, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Eventually(get).WithArguments("shop.example.com").Should(Equal("shop"))

		env.applySamples(kube, quickstart+"20-wiki.yaml")
		Eventually(listenerSetCondition(wiki, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False ListenersNotValid"))
		Expect(listenerCondition(wiki, gatewayv1.ListenerEntryConditionConflicted)()).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "HostnameConflict"), HaveField("Message", Not(ContainSubstring("shop/")))))
		Expect(get("shop.example.com")).To(Equal("shop"))

		update(wiki, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname("wiki.example.com"))
		})
		Eventually(listenerSetCondition(wiki, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Eventually(get).WithArguments("wiki.example.com").Should(Equal("wiki"))
		Expect(get("shop.example.com")).To(Equal("shop"))
	})
})
