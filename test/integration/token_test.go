package integration

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const tokens = "/accounts/*/cfd_tunnel/*/token"

var _ = Describe("tokens", lifecycle, func() {
	It("keeps the tunnel's token in a Secret of the Gateway", func(ctx SpecContext) {
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
		secret := w.secret("shared-tunnel-token")
		Expect(metav1.IsControlledBy(secret, fresh(g))).To(BeTrue())
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

		By("deleting it with the Gateway")
		w.deleteAndWait(g)
		Expect(w.token("shared")).To(BeEmpty())
	})

	It("leaves a Secret alone that is not the Gateway's", func(ctx SpecContext) {
		w := newWorld()
		w.create(&corev1.Secret{ObjectMeta: w.meta("shared-tunnel-token"), Data: map[string][]byte{"token": []byte("mine")}})
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning TokenFailed"))
		Eventually(programmed(g)).Should(Equal("True Programmed"), "the hostnames do not depend on it")
		w.deleteAndWait(g)
		Expect(w.token("shared")).To(Equal("mine"))
	})

	It("takes a new API token from its Secret, and keeps the Secret while a tunnel needs it", func() {
		w := newWorld()
		w.edge.SetToken("first")
		credentials := &corev1.Secret{ObjectMeta: w.meta("cloudflare"), Data: map[string][]byte{"token": []byte("first\n")}}
		w.create(credentials)
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.namespace+"/cloudflare")
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(func() []string { return fresh(credentials).Finalizers }).Should(HaveLen(1))

		By("saying that the token was revoked")
		w.edge.SetToken("second")
		w.create(w.route("web", "web", toGateway("shared")))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("refuses the API token"))
		change(credentials, func(s *corev1.Secret) { s.Data["token"] = []byte("second") })
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))

		By("deleting everything at once, the Secret first")
		w.delete(credentials, g)
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Eventually(w.isGone).WithArguments(credentials).Should(BeTrue())
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("says that the Secret with the API token is missing, and goes on when it is there", func() {
		w := newWorld()
		w.start("--cloudflare-api-token=", "--cloudflare-api-token-secret="+w.namespace+"/cloudflare")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(gatewayMessage(g)).Should(ContainSubstring("Secret " + w.namespace + "/cloudflare: it does not exist"))
		w.create(&corev1.Secret{ObjectMeta: w.meta("cloudflare"), Data: map[string][]byte{"token": []byte("any")}})
		Eventually(programmed(g), "5s").Should(Equal("True Programmed"))
	})
})

// secret reads a Secret; one that does not exist is empty.
func (w *world) secret(name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta(name)}
	Expect(client.IgnoreNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(secret), secret))).To(Succeed())
	return secret
}

// token returns what the Secret of the Gateway holds.
func (w *world) token(gateway string) string {
	GinkgoHelper()
	return string(w.secret(gateway + "-tunnel-token").Data["token"])
}
