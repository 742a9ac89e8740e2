package integration

import (
	"net/http"

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
	It("overrides the controller's account until the tunnel is deleted", func() {
		env := newEnvironment()
		env.cloudflare.SetToken("first")
		credentials, settings, class := env.createClassAccount()
		env.start("--cloudflare-account-id=another", "--cloudflare-api-token=wrong")
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		for _, request := range env.cloudflare.Requests() {
			Expect(request.Path).To(HavePrefix("/accounts/account/"))
		}
		Eventually(env.tunnelToken).WithArguments("shared").ShouldNot(BeEmpty())
		account, _, err := provider.Token(env.tunnelToken("shared")).Credentials()
		Expect(err).NotTo(HaveOccurred())
		Expect(account).To(Equal("account"))
		Expect(env.tunnelObject(g).Spec.AccountID).To(Equal("account"))

		By("rotating the API token in its Secret")
		env.cloudflare.SetToken("second")
		update(credentials, func(s *corev1.Secret) { s.Data["api-token"] = []byte("second") })
		env.create(env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))

		By("deleting the Gateway, its class, the settings and the Secret together")
		env.delete(credentials, settings, class, g)
		for _, object := range []client.Object{g, credentials, settings, class} {
			Eventually(env.isGone).WithArguments(object).Should(BeTrue(), "%T", object)
		}
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False CredentialsMissing"))
		Expect(env.tunnel("shared")).NotTo(BeEmpty())

		By("recreating the Secret")
		env.create(&corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, credentials.Name), Data: map[string][]byte{"api-token": []byte("second")}})
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
		Eventually(env.remainingObjects).WithArguments("shared").Should(BeEmpty())
	})

	It("does not move an existing tunnel when it is set", func() {
		env := newEnvironment()
		env.cloudflare.SetToken("first")
		env.start("--cloudflare-api-token=first")
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.createClassAccount()
		Eventually(func() *v1alpha1.SecretKeyReference { return env.tunnelObject(g).Spec.Credentials }).ShouldNot(BeNil())
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(1))
	})

	It("deletes the tunnel when the Gateway moves to another controller", func() {
		env, other := newEnvironment(), newEnvironment()
		_, settings, _ := env.createClassAccount()
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
		})
		env.start("--cloudflare-account-id=another")
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		update(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.className) })
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
	})
})

var _ = Describe("the controller", func() {
	It("is ready even if the Cloudflare API is unavailable", func() {
		env := newEnvironment()
		env.cloudflare.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		address := freeAddress()
		env.start("--health-address=" + address)
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(getStatusCode).WithArguments("http://" + address + "/readyz").Should(Equal(http.StatusOK))
		Eventually(gatewayMessage(g)).Should(ContainSubstring("is unavailable"))
		for _, path := range []string{"/readyz", "/healthz"} {
			Expect(getStatusCode("http://"+address+path)).To(Equal(http.StatusOK), path)
		}
		env.cloudflare.ClearFaults()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
	})
})

// createClassAccount makes the GatewayClass use the account "account", with an API token
// under the Secret key "api-token".
func (env *environment) createClassAccount() (*corev1.Secret, *v1alpha1.TunnelConfiguration, *gatewayv1.GatewayClass) {
	GinkgoHelper()
	credentials := &corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, "cloudflare"), Data: map[string][]byte{"api-token": []byte("first")}}
	settings := env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Account: &v1alpha1.Account{
		AccountID:         ptr.To("account"),
		APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "cloudflare", Key: ptr.To("api-token")},
	}})
	env.create(credentials, settings)
	return credentials, settings, env.useClassSettings("defaults")
}

// getStatusCode sends a GET request and returns the status code, or 0 if the request
// fails.
func getStatusCode(url string) int {
	response, err := http.Get(url) // #nosec G107 -- the controller of the test
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
