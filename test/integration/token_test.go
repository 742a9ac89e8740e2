package integration

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const tokenPath = "/accounts/*/cfd_tunnel/*/token"

var _ = Describe("the controller", ownership, func() {
	It("stores the tunnel's token in a Secret owned by the Tunnel", func(ctx SpecContext) {
		env := newEnvironment()
		env.start("--inventory-interval=10s")
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(env.tunnelToken).WithArguments("shared").Should(Not(BeEmpty()))
		account, tunnel, err := provider.Token(env.tunnelToken("shared")).Credentials()
		Expect(err).NotTo(HaveOccurred())
		Expect(account).To(Equal("account"))
		Expect(string(tunnel)).To(Equal(env.tunnel("shared")))
		secret := env.tokenSecret("shared")
		Expect(metav1.IsControlledBy(secret, env.tunnelObject(g))).To(BeTrue())
		Expect(secret.Labels).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"))

		By("restarting the controller, which does not read the token again")
		env.waitUntilIdle(ctx)
		env.stop()
		env.cloudflare.ResetRequests()
		env.start("--inventory-interval=10s")
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodGet, tokenPath)).To(BeZero())

		By("restoring the deleted Secret")
		before := env.tunnelToken("shared")
		env.delete(secret)
		Eventually(env.tunnelToken).WithArguments("shared").Should(Equal(before))

		By("updating the rotated token after connectors disconnect")
		env.cloudflare.RotateToken(env.tunnel("shared"))
		env.cloudflare.Connect(env.tunnel("shared"), 1)
		env.cloudflare.Disconnect(env.tunnel("shared"))
		Eventually(env.tunnelToken).WithArguments("shared").ShouldNot(Equal(before))

		By("deleting the Secret with the Tunnel")
		env.deleteAndWait(g)
		Eventually(env.tunnelToken).WithArguments("shared").Should(BeEmpty())
	})

	It("does not change a Secret without the Tunnel as owner", func() {
		env := newEnvironment()
		name := tunnel.ConnectorName(types.NamespacedName{Namespace: env.namespace, Name: "shared"})
		env.create(&corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, name), Data: map[string][]byte{"token": []byte("unrelated")}})
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"), "Programmed does not depend on the Secret")
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False ObjectTaken"))
		env.deleteAndWait(g)
		Expect(env.tunnelToken("shared")).To(Equal("unrelated"))
	})

	It("uses a new API token after a change of its Secret", func() {
		env := newEnvironment()
		env.cloudflare.SetToken("first")
		credentials := &corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, "cloudflare"), Data: map[string][]byte{"token": []byte("first\n")}}
		env.create(credentials)
		env.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+env.controllerNamespace+"/cloudflare")
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("reporting that the API token is rejected")
		env.cloudflare.SetToken("second")
		env.create(env.route("web", "web", gatewayParent("shared")))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("rejects the API token"))
		update(credentials, func(s *corev1.Secret) { s.Data["token"] = []byte("second") })
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("deleting the Secret before the Gateway, and recreating it")
		env.delete(credentials)
		Eventually(env.tunnelCondition(g, "CredentialsValid")).Should(Equal("False CredentialsMissing"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "the configuration stays in effect")
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())
		Eventually(env.tunnelPhase(g)).Should(Equal("Blocked"))
		Expect(env.tunnel("shared")).NotTo(BeEmpty())
		env.create(&corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, "cloudflare"), Data: map[string][]byte{"token": []byte("second")}})
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
	})

	It("recovers when the missing API token Secret is created", func() {
		env := newEnvironment()
		env.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+env.controllerNamespace+"/cloudflare")
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("Secret " + env.controllerNamespace + "/cloudflare: it does not exist"))
		env.create(&corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, "cloudflare"), Data: map[string][]byte{"token": []byte("any")}})
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
	})
})

// readSecret returns a Secret in the controller's namespace. The Secret is empty if it
// does not exist.
func (env *environment) readSecret(name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, name)}
	Expect(client.IgnoreNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(secret), secret))).To(Succeed())
	return secret
}

// tokenSecret returns the Secret with the token for the Gateway's tunnel.
func (env *environment) tokenSecret(gateway string) *corev1.Secret {
	GinkgoHelper()
	return env.readSecret(tunnel.ConnectorName(types.NamespacedName{Namespace: env.namespace, Name: gateway}))
}

// tunnelToken returns the stored token for the Gateway's tunnel.
func (env *environment) tunnelToken(gateway string) string {
	GinkgoHelper()
	return string(env.tokenSecret(gateway).Data["token"])
}
