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

var _ = Describe("tokens", lifecycle, func() {
	It("keeps the tunnel's token in a Secret of the Tunnel", func(ctx SpecContext) {
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

		By("not asking for it again after a restart")
		w.settle(ctx)
		w.stop()
		w.edge.ResetRequests()
		w.start("--inventory-interval=10s")
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodGet, tokens)).To(BeZero())

		By("putting it back when it is deleted")
		before := w.token("shared")
		w.delete(secret)
		Eventually(w.token).WithArguments("shared").Should(Equal(before))

		By("taking a rotated one when connectors are lost")
		w.edge.RotateToken(w.tunnel("shared"))
		w.edge.Connect(w.tunnel("shared"), 1)
		w.edge.Disconnect(w.tunnel("shared"))
		Eventually(w.token).WithArguments("shared").ShouldNot(Equal(before))

		By("deleting it with the Tunnel")
		w.deleteAndWait(g)
		Eventually(w.token).WithArguments("shared").Should(BeEmpty())
	})

	It("leaves a Secret alone that does not belong to the Tunnel", func() {
		w := newWorld()
		name := tunnel.ConnectorName(types.NamespacedName{Namespace: w.namespace, Name: "shared"})
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, name), Data: map[string][]byte{"token": []byte("mine")}})
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"), "the hostnames do not depend on it")
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False ObjectTaken"))
		w.deleteAndWait(g)
		Expect(w.token("shared")).To(Equal("mine"))
	})

	It("takes a new API token from its Secret", func() {
		w := newWorld()
		w.edge.SetToken("first")
		credentials := &corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("first\n")}}
		w.create(credentials)
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.system+"/cloudflare")
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("saying that the token was revoked")
		w.edge.SetToken("second")
		w.create(w.route("web", "web", toGateway("shared")))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("refuses the API token"))
		change(credentials, func(s *corev1.Secret) { s.Data["token"] = []byte("second") })
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("deleting the Secret before the Gateway, and restoring it")
		w.delete(credentials)
		Eventually(w.tunnelSays(g, v1alpha1.TunnelCredentialsValid)).Should(Equal("False CredentialsMissing"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "what is served stays served")
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Eventually(w.tunnelPhase(g)).Should(Equal("Blocked"))
		Expect(w.tunnel("shared")).NotTo(BeEmpty())
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("second")}})
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("says that the Secret with the API token is missing, and goes on when it is there", func() {
		w := newWorld()
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.system+"/cloudflare")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("Secret " + w.system + "/cloudflare: it does not exist"))
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"token": []byte("any")}})
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
	})
})

// secret reads a Secret of the controller's namespace; one that does not exist is
// empty.
func (w *world) secret(name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: inNamespace(w.system, name)}
	Expect(client.IgnoreNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(secret), secret))).To(Succeed())
	return secret
}

// tokenSecret reads the Secret with the token of a Gateway's tunnel.
func (w *world) tokenSecret(gateway string) *corev1.Secret {
	GinkgoHelper()
	return w.secret(tunnel.ConnectorName(types.NamespacedName{Namespace: w.namespace, Name: gateway}))
}

// token returns what that Secret holds.
func (w *world) token(gateway string) string {
	GinkgoHelper()
	return string(w.tokenSecret(gateway).Data["token"])
}
