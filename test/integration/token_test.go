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

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const tokens = "/accounts/*/cfd_tunnel/*/token"

var _ = Describe("the controller", lifecycle, func() {
	It("stores the tunnel's token in a Secret owned by the Tunnel", func(ctx SpecContext) {
		w := newWorld()
		w.start("--inventory-interval=10s")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(w.token).WithArguments("shared").Should(Not(BeEmpty()))
		account, tunnel, err := provider.Token(w.token("shared")).Credentials()
		Expect(err).NotTo(HaveOccurred())
		Expect(account).To(Equal("account"))
		Expect(string(tunnel)).To(Equal(w.tunnel("shared")))
		secret := w.tokenSecret("shared")
		Expect(metav1.IsControlledBy(secret, w.tunnelObject(g))).To(BeTrue())
		Expect(secret.Labels).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"))

		By("restarting the controller, which does not read the token again")
		w.settle(ctx)
		w.stop()
		w.edge.ResetRequests()
		w.start("--inventory-interval=10s")
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodGet, tokens)).To(BeZero())

		By("restoring the deleted Secret")
		before := w.token("shared")
		w.delete(secret)
		Eventually(w.token).WithArguments("shared").Should(Equal(before))

		By("updating the rotated token after connectors disconnect")
		w.edge.RotateToken(w.tunnel("shared"))
		w.edge.Connect(w.tunnel("shared"), 1)
		w.edge.Disconnect(w.tunnel("shared"))
		Eventually(w.token).WithArguments("shared").ShouldNot(Equal(before))

		By("deleting the Secret with the Tunnel")
		w.deleteAndWait(g)
		Eventually(w.token).WithArguments("shared").Should(BeEmpty())
	})

	It("does not change a Secret that does not belong to the Tunnel", func() {
		w := newWorld()
		name := tunnel.ConnectorName(types.NamespacedName{Namespace: w.namespace, Name: "shared"})
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, name), Data: map[string][]byte{"token": []byte("unrelated")}})
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"), "Programmed does not depend on the Secret")
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False ObjectTaken"))
		w.deleteAndWait(g)
		Expect(w.token("shared")).To(Equal("unrelated"))
	})

	It("uses a new API token after a change of its Secret", func() {
		w := newWorld()
		w.edge.SetToken("first")
		credentials := &corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("first\n")}}
		w.create(credentials)
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.system+"/cloudflare")
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("reporting that the API token is rejected")
		w.edge.SetToken("second")
		w.create(w.route("web", "web", toGateway("shared")))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("refuses the API token"))
		change(credentials, func(s *corev1.Secret) { s.Data["token"] = []byte("second") })
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("deleting the Secret before the Gateway, and recreating it")
		w.delete(credentials)
		Eventually(w.tunnelSays(g, v1alpha1.TunnelCredentialsValid)).Should(Equal("False CredentialsMissing"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "the configuration stays in effect")
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Eventually(w.tunnelPhase(g)).Should(Equal("Blocked"))
		Expect(w.tunnel("shared")).NotTo(BeEmpty())
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("second")}})
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("reports that the Secret with the API token is missing, and recovers when it is created", func() {
		w := newWorld()
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.system+"/cloudflare")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("Secret " + w.system + "/cloudflare: it does not exist"))
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("any")}})
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
	})
})

// readSecret returns a Secret of the controller's namespace. The Secret is empty
// if it does not exist.
func (w *world) secret(name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: inNamespace(w.system, name)}
	Expect(client.IgnoreNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(secret), secret))).To(Succeed())
	return secret
}

// tokenSecret returns the Secret with the token of the Gateway's tunnel.
func (w *world) tokenSecret(gateway string) *corev1.Secret {
	GinkgoHelper()
	return w.secret(tunnel.ConnectorName(types.NamespacedName{Namespace: w.namespace, Name: gateway}))
}

// tunnelToken returns the stored token of the Gateway's tunnel.
func (w *world) token(gateway string) string {
	GinkgoHelper()
	return string(w.tokenSecret(gateway).Data["token"])
}
