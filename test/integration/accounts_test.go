package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("the Cloudflare account of a GatewayClass", func() {
	It("overrides the controller's account, and requires its API token until the tunnel is deleted", func() {
		w := newWorld()
		w.edge.SetToken("first")
		credentials, settings, class := w.classAccount()
		w.start("--cloudflare-account-id=another", "--cloudflare-api-token=wrong")
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		for _, request := range w.edge.Requests() {
			Expect(request.Path).To(HavePrefix("/accounts/account/"))
		}
		Eventually(w.token).WithArguments("shared").ShouldNot(BeEmpty())
		account, _, err := provider.Token(w.token("shared")).Credentials()
		Expect(err).NotTo(HaveOccurred())
		Expect(account).To(Equal("account"))
		Expect(w.tunnelObject(g).Spec.AccountID).To(Equal("account"))

		By("rotating the API token in its Secret")
		w.edge.SetToken("second")
		change(credentials, func(s *corev1.Secret) { s.Data["api-token"] = []byte("second") })
		w.create(w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))

		By("deleting the Gateway, its class, the settings and the Secret together")
		w.delete(credentials, settings, class, g)
		for _, object := range []client.Object{g, credentials, settings, class} {
			Eventually(w.isGone).WithArguments(object).Should(BeTrue(), "%T", object)
		}
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False CredentialsMissing"))
		Expect(w.tunnel("shared")).NotTo(BeEmpty())

		By("recreating the Secret")
		w.create(&corev1.Secret{ObjectMeta: inNamespace(w.system, credentials.Name), Data: map[string][]byte{"api-token": []byte("second")}})
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
		Eventually(w.leftOver).WithArguments("shared").Should(BeEmpty())
	})

	It("does not move an existing tunnel when the class starts to refer to it", func() {
		w := newWorld()
		w.edge.SetToken("first")
		w.start("--cloudflare-api-token=first")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.classAccount()
		Eventually(func() *v1alpha1.SecretKeyReference { return w.tunnelObject(g).Spec.Credentials }).ShouldNot(BeNil())
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
	})

	It("is used to delete the tunnel of a Gateway that moves to another controller", func() {
		w, other := newWorld(), newWorld()
		_, settings, _ := w.classAccount()
		change(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
		})
		w.start("--cloudflare-account-id=another")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		change(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.class) })
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
	})
})

var _ = Describe("the controller", func() {
	It("is ready even if the Cloudflare API is unavailable", func() {
		w := newWorld()
		w.edge.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		address := freeAddress()
		w.start("--health-address=" + address)
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(answer).WithArguments("http://" + address + "/readyz").Should(Equal(http.StatusOK))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("cannot be reached"))
		for _, path := range []string{"/readyz", "/healthz"} {
			Expect(answer("http://"+address+path)).To(Equal(http.StatusOK), path)
		}
		w.edge.ClearFaults()
		Eventually(programmed(g)).WithTimeout(time.Minute).Should(Equal("True Programmed"))
	})
})

// createClassAccount makes the GatewayClass use the account "account", with an
// API token under the key "api-token" of a Secret.
func (w *world) classAccount() (*corev1.Secret, *v1alpha1.TunnelConfiguration, *gatewayv1.GatewayClass) {
	GinkgoHelper()
	credentials := &corev1.Secret{ObjectMeta: inNamespace(w.system, "cloudflare"), Data: map[string][]byte{"api-token": []byte("first")}}
	settings := w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Account: &v1alpha1.Account{
		AccountID:         ptr.To("account"),
		APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "cloudflare", Key: ptr.To("api-token")},
	}})
	w.create(credentials, settings)
	return credentials, settings, w.referClass("defaults")
}

// getStatusCode returns the status code of the response to a GET request, or 0
// if the request fails.
func answer(url string) int {
	response, err := http.Get(url) // #nosec G107 -- the controller of the test
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
