package certmanager

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// tenancy is a Gateway with a certificate of its own, and the ListenerSets of
// two teams.
type tenancy struct {
	*world
	gateway    *gatewayv1.Gateway
	team, rest *gatewayv1.ListenerSet // team has the listeners web and api
	seen       *record
}

// newTenancy returns one that serves all of its hostnames.
func newTenancy(teamAnnotations ...string) *tenancy {
	GinkgoHelper()
	t := &tenancy{world: newWorld()}
	home := t.namespace("").Name
	create(t.namespace(""), t.class())
	createIssuer("", t.id)
	t.gateway = t.world.gateway(home, secure("own", "own.example.com"), clusterIssuerAnnotation+"="+t.id)
	t.team = listenerSet(home, "team", t.gateway,
		[]gatewayv1.Listener{secure("web", "web.example.com"), secure("api", "api.example.com")}, teamAnnotations...)
	t.rest = listenerSet(home, "rest", t.gateway, []gatewayv1.Listener{secure("rest", "*.rest.example.com")})
	create(t.gateway, t.team, t.rest)
	createRoute(t.team, "web", "web.example.com")
	createRoute(t.team, "api", "api.example.com")
	createRoute(t.rest, "rest", "one.rest.example.com")

	Eventually(gatewaySays).WithArguments(t.gateway).Should(HaveExactElements(setServes, serves))
	Eventually(setSays).WithArguments(t.team).Should(HaveExactElements(setServes, serves, serves))
	Eventually(setSays).WithArguments(t.rest).Should(HaveExactElements(setServes, serves))
	for host, service := range map[string]string{"web.example.com": "web.", "api.example.com": "api.", "one.rest.example.com": "rest."} {
		Eventually(t.ask).WithArguments(host).Should(Equal(service + home))
	}
	t.seen = watchStatuses(home)
	t.begin()
	return t
}

// begin waits until all is said, and forgets it.
func (t *tenancy) begin() {
	GinkgoHelper()
	t.seen.settle()
	t.seen.forget()
	t.edge.ResetRequests()
}

func (t *tenancy) ask(host string) string {
	GinkgoHelper()
	return t.get(t.gateway.Namespace+"/"+t.gateway.Name, host, "/")
}

// expectNothingHappened is for a change that the controller must have looked
// at: nothing was pushed for it and no status was written. One that comes after
// it and has to be pushed shows that the controller is awake.
func (t *tenancy) expectNothingHappened() {
	GinkgoHelper()
	t.seen.settle()
	createRoute(t.rest, "later", "later.rest.example.com")
	Eventually(t.ask).WithArguments("later.rest.example.com").Should(Equal("later." + t.gateway.Namespace))
	Eventually(func() []string { return t.seen.of(t.rest) }).Should(HaveLen(2), "it has one route more")
	Expect(t.pushes()).To(Equal(1), "that of the later route")
	Expect(t.seen.of(t.gateway)).To(HaveLen(1))
	Expect(t.seen.of(t.team)).To(HaveLen(1))
}

var _ = Describe("a certificate that is there", func() {
	It("is renewed by hand without a transition and without a push", func() {
		t := newTenancy()
		renew(t.gateway.Namespace, "own-tls")
		renew(t.gateway.Namespace, "web-tls")
		t.expectNothingHappened()
	})

	It("renews itself in time without a transition and without a push", func() {
		// An hour is the shortest duration that cert-manager's webhook allows.
		t := newTenancy("cert-manager.io/duration=1h", "cert-manager.io/renew-before=59m54s")
		namespace := t.gateway.Namespace
		before := revision(namespace, "web-tls")
		Eventually(revision).WithArguments(namespace, "web-tls").Should(BeNumerically(">=", before+2))
		t.expectNothingHappened()
		Expect(leaf(namespace, "web-tls").NotAfter).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
	})

	It("comes from another issuer without a transition and without a push", func() {
		t := newTenancy()
		namespace := t.gateway.Namespace
		createIssuer(namespace, "other")
		change(t.team, func(s *gatewayv1.ListenerSet) { annotations{issuerAnnotation + "=other"}.on(s) })
		Eventually(func() string { return leaf(namespace, "web-tls").Issuer.CommonName }).Should(Equal("other"))
		Eventually(func() string { return leaf(namespace, "api-tls").Issuer.CommonName }).Should(Equal("other"))
		Expect(signedBy(namespace, "web-tls")).To(Equal("Issuer other"))
		t.expectNothingHappened()
	})

	It("stays in force when its Certificate is deleted by hand, which comes back", func(ctx SpecContext) {
		t := newTenancy()
		namespace := t.gateway.Namespace
		before := fresh(certificate(namespace, "web-tls")).GetUID()
		Expect(kube.Delete(ctx, certificate(namespace, "web-tls"))).To(Succeed())
		Eventually(func() bool {
			c := certificate(namespace, "web-tls")
			return exists(c) && c.GetUID() != before && condition(c, "Ready") == "True"
		}).Should(BeTrue())
		t.expectNothingHappened()
	})

	It("heals after its Secret was deleted, and nobody else loses anything meanwhile", func(ctx SpecContext) {
		t := newTenancy()
		namespace := t.gateway.Namespace
		rival := listenerSet(namespace, "rival", t.gateway, []gatewayv1.Listener{secure("web", "web.example.com")})
		rival.Spec.Listeners[0].TLS = nil // it needs no certificate: its conflict is all that keeps it from serving
		create(rival)
		createRoute(rival, "rival")
		const conflict = "Accepted=False HostnameConflict, Conflicted=True HostnameConflict, Programmed=False HostnameConflict, ResolvedRefs=True ResolvedRefs"
		Eventually(setSays).WithArguments(rival).Should(HaveExactElements(setInvalid, conflict))
		t.begin()

		By("deleting the Secret while cert-manager is away")
		stopCertManager()
		old := fresh(secret(namespace, "web-tls")).UID
		Expect(kube.Delete(ctx, secret(namespace, "web-tls"))).To(Succeed())
		Eventually(setSays).WithArguments(t.team).Should(HaveExactElements(setServes, waits, serves))
		Eventually(t.ask).WithArguments("web.example.com").Should(Equal("404"))
		Expect(t.ask("api.example.com")).To(Equal("api." + namespace))
		Expect(t.ask("one.rest.example.com")).To(Equal("rest." + namespace))

		By("starting cert-manager again")
		startCertManager()
		Eventually(setSays).WithArguments(t.team).Should(HaveExactElements(setServes, serves, serves))
		Eventually(t.ask).WithArguments("web.example.com").Should(Equal("web." + namespace))
		Expect(fresh(secret(namespace, "web-tls")).UID).NotTo(Equal(old))
		t.expectHealed(rival)

		By("deleting it while cert-manager runs")
		old = fresh(secret(namespace, "web-tls")).UID
		Expect(kube.Delete(ctx, secret(namespace, "web-tls"))).To(Succeed())
		Eventually(func() bool {
			s := secret(namespace, "web-tls")
			return exists(s) && s.UID != old
		}).Should(BeTrue())
		Eventually(setSays).WithArguments(t.team).Should(HaveExactElements(setServes, serves, serves))
		Eventually(t.ask).WithArguments("web.example.com").Should(Equal("web." + namespace))
		t.seen.settle()
		Expect(t.pushes()).To(Or(Equal(2), Equal(4)), "the second time it may be back before anybody looked")
	})
})

// expectHealed is for a listener that was away once and is back.
func (t *tenancy) expectHealed(rival *gatewayv1.ListenerSet) {
	GinkgoHelper()
	t.seen.settle()
	Expect(t.pushes()).To(Equal(2), "out, and in again")
	Expect(t.seen.transitions(t.team, "web", gatewayv1.ListenerEntryConditionResolvedRefs)).To(
		HaveExactElements("True ResolvedRefs", "False InvalidCertificateRef", "True ResolvedRefs"))
	Expect(t.seen.transitions(t.team, "web", gatewayv1.ListenerEntryConditionAccepted)).To(HaveExactElements("True Accepted"))
	Expect(t.seen.transitions(t.team, "api", gatewayv1.ListenerEntryConditionProgrammed)).To(HaveExactElements("True Programmed"))
	Expect(t.seen.transitions(rival, "web", gatewayv1.ListenerEntryConditionConflicted)).To(HaveExactElements("True HostnameConflict"))
	Expect(t.seen.of(t.rest)).To(HaveLen(1))
	Expect(t.seen.of(t.gateway)).To(HaveLen(1))
}
