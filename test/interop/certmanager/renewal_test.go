package certmanager

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// sharedGateway is a Gateway with a certificate and the ListenerSets of two teams.
type sharedGateway struct {
	*environment
	gateway         *gatewayv1.Gateway
	team, otherTeam *gatewayv1.ListenerSet // team has listeners web and api
	later           *gatewayv1.HTTPRoute   // not created yet
	history         *statusHistory
}

// newSharedGateway creates a shared Gateway and waits until it serves all its hostnames.
func newSharedGateway(teamAnnotations ...string) *sharedGateway {
	GinkgoHelper()
	t := &sharedGateway{environment: newEnvironment()}
	namespace := t.namespace("").Name
	create(t.namespace(""), t.class())
	createIssuer("", t.id)
	t.gateway = t.environment.gateway(namespace, httpsListener("home", "home.example.com"), clusterIssuerAnnotation+"="+t.id)
	t.team = listenerSet(namespace, "team", t.gateway,
		[]gatewayv1.Listener{httpsListener("web", "web.example.com"), httpsListener("api", "api.example.com")}, teamAnnotations...)
	t.otherTeam = listenerSet(namespace, "other-team", t.gateway, []gatewayv1.Listener{httpsListener("other", "*.other.example.com")})
	create(t.gateway, t.team, t.otherTeam)
	createRoute(t.team, "web", "web.example.com")
	createRoute(t.team, "api", "api.example.com")
	createRoute(t.otherTeam, "other", "one.other.example.com")
	// Otherwise, the controller can see the later route before its Service, and push twice.
	later, service := route(t.otherTeam, "later", "later.other.example.com")
	t.later = later
	create(service)

	Eventually(gatewayConditions).WithArguments(t.gateway).Should(HaveExactElements(setProgrammed, listenerProgrammed))
	Eventually(listenerSetConditions).WithArguments(t.team).Should(HaveExactElements(setProgrammed, listenerProgrammed, listenerProgrammed))
	Eventually(listenerSetConditions).WithArguments(t.otherTeam).Should(HaveExactElements(setProgrammed, listenerProgrammed))
	for host, service := range map[string]string{"web.example.com": "web.", "api.example.com": "api.", "one.other.example.com": "other."} {
		Eventually(t.answerFor).WithArguments(host).Should(Equal(service + namespace))
	}
	t.history = watchStatuses(namespace)
	t.resetHistory()
	return t
}

// resetHistory waits until the controller is idle, and then discards the records.
func (t *sharedGateway) resetHistory() {
	GinkgoHelper()
	t.history.waitUntilQuiet()
	t.history.reset()
	t.edge.ResetRequests()
}

// answerFor sends a request for the host and returns the Service that responded, or the
// status code.
func (t *sharedGateway) answerFor(host string) string {
	GinkgoHelper()
	return t.answer(t.gateway.Namespace+"/"+t.gateway.Name, host, "/")
}

// expectNoChange checks that the controller has neither pushed a configuration nor
// written a status since resetHistory. It then creates a route and waits until the
// controller pushes it, which proves that the controller still processes events.
func (t *sharedGateway) expectNoChange() {
	GinkgoHelper()
	t.history.waitUntilQuiet()
	create(t.later)
	Eventually(t.answerFor).WithArguments("later.other.example.com").Should(Equal("later." + t.gateway.Namespace))
	Eventually(func() []string { return t.history.statuses(t.otherTeam) }).Should(HaveLen(2), "the status counts the later route")
	Expect(t.pushes()).To(Equal(1), "the push of the later route")
	Expect(t.history.statuses(t.gateway)).To(HaveLen(1))
	Expect(t.history.statuses(t.team)).To(HaveLen(1))
}

var _ = Describe("an existing certificate", func() {
	It("is renewed manually without a status change or a push", func() {
		t := newSharedGateway()
		renew(t.gateway.Namespace, "home-tls")
		renew(t.gateway.Namespace, "web-tls")
		t.expectNoChange()
	})

	It("is renewed automatically without a status change or a push", func() {
		// An hour is the shortest duration that cert-manager's webhook allows.
		t := newSharedGateway("cert-manager.io/duration=1h", "cert-manager.io/renew-before=59m54s")
		namespace := t.gateway.Namespace
		before := revision(namespace, "web-tls")
		Eventually(revision).WithArguments(namespace, "web-tls").Should(BeNumerically(">=", before+2))
		t.expectNoChange()
		Expect(storedCertificate(namespace, "web-tls").NotAfter).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
	})

	It("moves to another issuer without a status change or a push", func() {
		t := newSharedGateway()
		namespace := t.gateway.Namespace
		createIssuer(namespace, "other")
		update(t.team, func(s *gatewayv1.ListenerSet) { annotations{issuerAnnotation + "=other"}.replaceIn(s) })
		Eventually(func() string { return storedCertificate(namespace, "web-tls").Issuer.CommonName }).Should(Equal("other"))
		Eventually(func() string { return storedCertificate(namespace, "api-tls").Issuer.CommonName }).Should(Equal("other"))
		Expect(signedBy(namespace, "web-tls")).To(Equal("Issuer other"))
		t.expectNoChange()
	})

	It("keeps working while cert-manager recreates its deleted Certificate", func(ctx SpecContext) {
		t := newSharedGateway()
		namespace := t.gateway.Namespace
		before := get(certificate(namespace, "web-tls")).GetUID()
		Expect(kube.Delete(ctx, certificate(namespace, "web-tls"))).To(Succeed())
		Eventually(func() bool {
			c := certificate(namespace, "web-tls")
			return exists(c) && c.GetUID() != before && condition(c, "Ready") == "True"
		}).Should(BeTrue())
		t.expectNoChange()
	})

	It("works again after its Secret is deleted", func(ctx SpecContext) {
		t := newSharedGateway()
		namespace := t.gateway.Namespace
		conflicting := listenerSet(namespace, "conflicting", t.gateway, []gatewayv1.Listener{httpsListener("web", "web.example.com")})
		conflicting.Spec.Listeners[0].TLS = nil // without a certificate, the conflict is the only reason why it is not programmed
		create(conflicting)
		createRoute(conflicting, "conflicting")
		const conflict = "Accepted=False HostnameConflict, Conflicted=True HostnameConflict, Programmed=False HostnameConflict, ResolvedRefs=True ResolvedRefs"
		Eventually(listenerSetConditions).WithArguments(conflicting).Should(HaveExactElements(setListenersInvalid, conflict))
		t.resetHistory()

		By("deleting the Secret while cert-manager is stopped")
		stopCertManager()
		old := get(secret(namespace, "web-tls")).UID
		Expect(kube.Delete(ctx, secret(namespace, "web-tls"))).To(Succeed())
		Eventually(listenerSetConditions).WithArguments(t.team).Should(HaveExactElements(setProgrammed, certificateMissing, listenerProgrammed))
		Eventually(t.answerFor).WithArguments("web.example.com").Should(Equal("404"))
		Expect(t.answerFor("api.example.com")).To(Equal("api." + namespace))
		Expect(t.answerFor("one.other.example.com")).To(Equal("other." + namespace))

		By("starting cert-manager again")
		startCertManager()
		Eventually(listenerSetConditions).WithArguments(t.team).Should(HaveExactElements(setProgrammed, listenerProgrammed, listenerProgrammed))
		Eventually(t.answerFor).WithArguments("web.example.com").Should(Equal("web." + namespace))
		Expect(get(secret(namespace, "web-tls")).UID).NotTo(Equal(old))
		t.expectOneInterruption(conflicting)

		By("deleting the Secret while cert-manager runs")
		old = get(secret(namespace, "web-tls")).UID
		Expect(kube.Delete(ctx, secret(namespace, "web-tls"))).To(Succeed())
		Eventually(func() bool {
			s := secret(namespace, "web-tls")
			return exists(s) && s.UID != old
		}).Should(BeTrue())
		Eventually(listenerSetConditions).WithArguments(t.team).Should(HaveExactElements(setProgrammed, listenerProgrammed, listenerProgrammed))
		Eventually(t.answerFor).WithArguments("web.example.com").Should(Equal("web." + namespace))
		t.history.waitUntilQuiet()
		Expect(t.pushes()).To(Or(Equal(2), Equal(4)), "cert-manager may recreate the Secret before the controller notices the deletion")
	})
})

// expectOneInterruption checks that only the listener web was interrupted, and only once.
func (t *sharedGateway) expectOneInterruption(conflicting *gatewayv1.ListenerSet) {
	GinkgoHelper()
	t.history.waitUntilQuiet()
	Expect(t.pushes()).To(Equal(2), "one push removes the hostname, and one adds it again")
	Expect(t.history.transitions(t.team, "web", gatewayv1.ListenerEntryConditionResolvedRefs)).To(
		HaveExactElements("True ResolvedRefs", "False InvalidCertificateRef", "True ResolvedRefs"))
	Expect(t.history.transitions(t.team, "web", gatewayv1.ListenerEntryConditionAccepted)).To(HaveExactElements("True Accepted"))
	Expect(t.history.transitions(t.team, "api", gatewayv1.ListenerEntryConditionProgrammed)).To(HaveExactElements("True Programmed"))
	Expect(t.history.transitions(conflicting, "web", gatewayv1.ListenerEntryConditionConflicted)).To(HaveExactElements("True HostnameConflict"))
	Expect(t.history.statuses(t.otherTeam)).To(HaveLen(1))
	Expect(t.history.statuses(t.gateway)).To(HaveLen(1))
}
