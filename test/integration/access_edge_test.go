package integration

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// assertion is the header with which the edge sends a token to connectors.
const assertion = "Cf-Access-Jwt-Assertion"

var _ = Describe("A hostname with an application of Cloudflare Access", records, func() {
	const admin = adminHost

	It("admits only visitors whose tokens its policies allow now", func() {
		env := newAccessEnvironment()
		env.start()
		env.serve(admin, "open.example.com")
		Eventually(env.ask).WithArguments(admin).Should(Equal(http.StatusOK))
		policy := env.policy("admin", "l0", "employees", "contractors")
		env.protect(policy)
		Eventually(env.behind).WithArguments(admin).Should(Equal(http.StatusForbidden))

		By("checking tokens at the edge and behind it")
		Expect(env.ask(admin)).To(Equal(http.StatusFound))
		Expect(env.ask("open.example.com")).To(Equal(http.StatusOK))
		adas, eves, aud := env.login(admin, ada), env.login(admin, eve), env.application().AUD
		Expect(env.ask(admin, "Cookie", adas.Cookie())).To(Equal(http.StatusOK))
		Expect(env.reached.Load().Get(assertion)).To(Equal(adas.Token))
		Expect(env.ask(admin, "Cookie", eves.Cookie())).To(Equal(http.StatusOK))
		claims := simulator.Claims{Team: accessTeam, Audience: []string{aud}}
		expired := claims
		expired.IssuedAt = time.Now().Add(-2 * time.Hour)
		for token, want := range map[string]int{
			claims.Sign(): http.StatusOK, "": http.StatusForbidden,
			simulator.Claims{Team: accessTeam, Audience: []string{"another"}}.Sign(): http.StatusForbidden,
			expired.Sign(): http.StatusBadGateway, claims.Forge(): http.StatusBadGateway,
			simulator.Claims{Team: "another", Audience: []string{aud}}.Sign(): http.StatusBadGateway,
		} {
			Expect(env.behind(admin, assertion, token)).To(Equal(want))
			Expect(env.reached.Load() != nil).To(Equal(want == http.StatusOK))
		}

		By("removing a policy")
		update(policy, func(p *v1alpha1.AccessPolicy) { p.Spec.Policies = []v1alpha1.PolicyName{"employees"} })
		Eventually(env.ask).WithArguments(admin, "Cookie", eves.Cookie()).ShouldNot(Equal(http.StatusOK))
		Eventually(env.ask).WithArguments(admin, "Cookie", eves.Cookie()).Should(Equal(http.StatusFound))
		Expect(env.ask(admin, "Cookie", adas.Cookie())).To(Equal(http.StatusFound), "a token that was issued before")
		Expect(env.application().Revocations).To(Equal(1))
		_, err := env.cloudflare.Login(accessAccount, admin, eve)
		Expect(err).To(HaveOccurred())
		again := env.login(admin, ada)
		Eventually(env.ask).WithArguments(admin, "Cookie", again.Cookie()).Should(Equal(http.StatusOK))
	})

	It("is closed to a token that another tenant's backend has seen", func() {
		env := newAccessEnvironment(func(spec *v1alpha1.TunnelConfigurationSpec) {
			spec.ListenerConfigurations = []v1alpha1.ListenerConfiguration{{
				ProtocolPort: v1alpha1.EveryPort, Hostname: "*.example.com",
				Access: &v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"employees"}},
			}}
		})
		env.start()
		env.serve("*.example.com")
		tenant := env.namespace + "-tenant"
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
		env.permit(tenant, "tenant.example.com")
		set := env.listenerSetIn(tenant, "tenant", "tenant.example.com")
		route := env.route("tenant", "web", listenerSetParent("tenant"))
		service := env.service("web")
		route.Namespace, service.Namespace = tenant, tenant
		env.create(service, set, route)
		Eventually(func() []string {
			var domains []string
			for _, app := range env.applications.Applications(accessAccount) {
				domains = append(domains, app.Domains...)
			}
			return domains
		}).Should(ConsistOf("*.example.com", "tenant.example.com"))

		session := env.login("a.example.com", ada)
		Eventually(env.ask).WithArguments("a.example.com", "Cookie", session.Cookie()).Should(Equal(http.StatusOK))
		own := env.login("tenant.example.com", ada)
		Eventually(env.ask).WithArguments("tenant.example.com", "Cookie", own.Cookie()).Should(Equal(http.StatusOK))
		Expect(env.ask("a.example.com", "Cookie", session.Cookie())).To(Equal(http.StatusOK))
		seen := env.reached.Load()
		Expect(seen.Get(assertion)).To(Equal(session.Token))
		Expect(seen.Get("Cookie")).To(Equal(simulator.Session{Token: session.Token}.Cookie()), "the edge removes the binding cookie")
		for _, host := range []string{"a.example.com", "b.example.com", "tenant.example.com"} {
			Expect(env.ask(host, "Cookie", seen.Get("Cookie"), assertion, session.Token)).To(Equal(http.StatusFound), host)
			Expect(env.ask(host, "Cf-Access-Token", session.Token)).To(Equal(http.StatusFound), host)
		}
		Expect(env.behind("tenant.example.com", assertion, session.Token)).To(Equal(http.StatusForbidden))
		Expect(env.ask("tenant.example.com", "Cookie", session.Cookie())).To(Equal(http.StatusFound))
	})

	It("has its preflight requests answered by the edge if the AccessPolicy has cors", func() {
		env := newAccessEnvironment()
		env.start()
		env.serve(admin, "api.example.com")
		env.protect(env.policy("admin", "l0", "employees"))
		api := env.policy("api", "l1", "employees")
		api.Spec.CORS = &v1alpha1.AccessCORS{
			AllowOrigins: []string{"https://app.example.com"}, AllowMethods: []string{"PUT"}, AllowCredentials: ptr.To(true), MaxAge: ptr.To[int32](600),
		}
		env.protect(api)
		preflight := func(host string) edgeAnswer {
			return env.sendTo(env.cloudflare.Visitors(), http.MethodOptions, host,
				headerOf([]string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "PUT"}))
		}
		got := preflight("api.example.com")
		Expect(got.status).To(Equal(http.StatusOK))
		Expect(got.header.Get("Access-Control-Allow-Origin")).To(Equal("https://app.example.com"))
		Expect(got.header.Get("Access-Control-Allow-Credentials")).To(Equal("true"))
		Expect(got.header.Get("Access-Control-Max-Age")).To(Equal("600"))
		refused := preflight(admin)
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.reached).To(BeNil())
		Expect(got.reached).To(BeNil())
	})

	It("shares the wildcard's application with preview environments that come and go", func() {
		const previews = 8 // the limit on writes does not slow them down
		env := newAccessEnvironment()
		env.start()
		env.serve("*.example.com")
		env.protect(env.policy("previews", "l0", "employees"))
		before, writes := env.accessRequests(), env.cloudflare.Count(http.MethodPut, configurationPath)
		for i := range previews {
			name := fmt.Sprintf("pr-%d", i)
			preview := env.route(name, "web", gatewayParent("shared"))
			preview.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")}
			env.create(preview)
			Eventually(env.hostnames).WithArguments("shared").Should(ContainElement(name + ".example.com"))
			Expect(env.ask(name + ".example.com")).To(Equal(http.StatusFound))
			Expect(env.behind(name + ".example.com")).To(Equal(http.StatusForbidden))
			session := env.login(name+".example.com", ada)
			Expect(env.ask(name+".example.com", "Cookie", session.Cookie())).To(Equal(http.StatusOK))
			env.delete(preview)
			Eventually(env.hostnames).WithArguments("shared").ShouldNot(ContainElement(name + ".example.com"))
		}
		after := env.accessRequests()
		delete(before, "GET apps") // the controller lists the applications periodically
		delete(after, "GET apps")
		Expect(after).To(Equal(before), "no call about Access for a preview")
		Expect(env.applications.Applications(accessAccount)).To(HaveLen(1))
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath) - writes).To(BeNumerically("<=", 2*previews))
	})
})
