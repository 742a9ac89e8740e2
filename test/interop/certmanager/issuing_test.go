package certmanager

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var _ = Describe("cert-manager", func() {
	It("issues a certificate, and the controller then programs the ListenerSet", func() {
		e := newEnvironment()
		namespace := e.namespace("")
		g := e.gateway(namespace.Name, httpListener("home", "home.example.com"))
		set := listenerSet(namespace.Name, "team", g, []gatewayv1.Listener{httpsListener("web", "team.example.com")}, issuerAnnotation+"=team-ca")
		create(namespace, e.class())
		history := watchStatuses(namespace.Name)
		create(g, set)
		createRoute(set, "web")

		By("applying the objects before the issuer exists")
		Eventually(listenerSetConditions).WithArguments(set).Should(HaveExactElements(setListenersInvalid, certificateMissing))
		c := meta.FindStatusCondition(set.Status.Listeners[0].Conditions, string(gatewayv1.ListenerEntryConditionResolvedRefs))
		Expect(c.Message).To(Equal("Secret " + namespace.Name + "/web-tls in certificateRefs does not exist."))
		Eventually(gatewayConditions).WithArguments(g).Should(HaveExactElements(setProgrammed, listenerProgrammed), "the Gateway does not depend on the ListenerSet")
		Eventually(readyStatus).WithArguments(namespace.Name, "web-tls").Should(Equal("False"))
		Expect(exists(secret(namespace.Name, "web-tls"))).To(BeFalse())
		Expect(*g.Status.AttachedListenerSets).To(BeZero())
		Expect(e.answer(namespace.Name+"/shared", "team.example.com", "/")).To(Equal("404"))

		By("creating the issuer")
		createIssuer(namespace.Name, "team-ca")
		Eventually(listenerSetConditions).WithArguments(set).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Eventually(e.answer).WithArguments(namespace.Name+"/shared", "team.example.com", "/").Should(Equal("web." + namespace.Name))
		Expect(signedBy(namespace.Name, "web-tls")).To(Equal("Issuer team-ca"))
		Expect(storedCertificate(namespace.Name, "web-tls").DNSNames).To(HaveExactElements("team.example.com"))
		Eventually(func() int32 { return *get(g).Status.AttachedListenerSets }).Should(BeEquivalentTo(1))

		Expect(history.transitions(set, "web", gatewayv1.ListenerEntryConditionResolvedRefs)).To(
			HaveExactElements("False InvalidCertificateRef", "True ResolvedRefs"))
		Expect(history.transitions(set, "web", gatewayv1.ListenerEntryConditionProgrammed)).To(
			HaveExactElements("False Invalid", "True Programmed"))
	})

	It("prefers the ListenerSet's annotation to the Gateway's", func() {
		e := newEnvironment()
		platform, team := e.namespace("-platform"), e.namespace("-team")
		createIssuer("", e.id+"-platform")
		createIssuer("", e.id+"-other")
		create(platform, team, e.class())
		createIssuer(team.Name, "team")
		g := e.gateway(platform.Name, httpsListener("home", "home.example.com"), clusterIssuerAnnotation+"="+e.id+"-platform")
		create(g)

		for _, set := range []struct {
			name        string
			annotations []string
			signedBy    string
		}{
			{"inherits", nil, "ClusterIssuer " + e.id + "-platform"},
			{"cluster-issuer", []string{clusterIssuerAnnotation + "=" + e.id + "-other"}, "ClusterIssuer " + e.id + "-other"},
			{"issuer", []string{issuerAnnotation + "=team"}, "Issuer team"},
		} {
			host := set.name + ".team.example.com"
			s := listenerSet(team.Name, set.name, g, []gatewayv1.Listener{httpsListener(set.name, host)}, set.annotations...)
			create(s)
			createRoute(s, set.name)
			Eventually(listenerSetConditions).WithArguments(s).Should(HaveExactElements(setProgrammed, listenerProgrammed))
			Expect(signedBy(team.Name, set.name+"-tls")).To(Equal(set.signedBy))
			Expect(certificateOwner(team.Name, set.name+"-tls")).To(Equal("ListenerSet " + set.name))
			Eventually(e.answer).WithArguments(platform.Name+"/shared", host, "/").Should(Equal(set.name + "." + team.Name))
		}
		Eventually(gatewayConditions).WithArguments(g).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Expect(signedBy(platform.Name, "home-tls")).To(Equal("ClusterIssuer " + e.id + "-platform"))
		Expect(certificateOwner(platform.Name, "home-tls")).To(Equal("Gateway shared"))
	})

	It("resolves the Gateway's Issuer annotation in the namespace of the ListenerSet", func() {
		e := newEnvironment()
		platform, team := e.namespace("-platform"), e.namespace("-team")
		create(platform, team, e.class())
		createIssuer(platform.Name, "default")
		createIssuer("", e.id+"-cluster")
		g := e.gateway(platform.Name, httpsListener("home", "home.example.com"), issuerAnnotation+"=default")
		inherits := listenerSet(team.Name, "inherits", g, []gatewayv1.Listener{httpsListener("web", "web.example.com")})
		overrides := listenerSet(team.Name, "overrides", g, []gatewayv1.Listener{httpsListener("api", "api.example.com")},
			clusterIssuerAnnotation+"="+e.id+"-cluster")
		create(g, inherits, overrides)

		Eventually(gatewayConditions).WithArguments(g).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Expect(signedBy(platform.Name, "home-tls")).To(Equal("Issuer default"))
		Eventually(listenerSetConditions).WithArguments(overrides).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Expect(signedBy(team.Name, "api-tls")).To(Equal("ClusterIssuer " + e.id + "-cluster"))
		Eventually(readyStatus).WithArguments(team.Name, "web-tls").Should(Equal("False"))
		Expect(listenerSetConditions(inherits)).To(HaveExactElements(setListenersInvalid, certificateMissing), "the Issuer in the Gateway's namespace is not used")

		createIssuer(team.Name, "default")
		Eventually(listenerSetConditions).WithArguments(inherits).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Expect(signedBy(team.Name, "web-tls")).To(Equal("Issuer default"))
	})

	It("issues only for listeners whose Gateway or ListenerSet names an issuer", func() {
		e := newEnvironment()
		namespace := e.namespace("")
		create(namespace, e.class())
		createIssuer(namespace.Name, "team")
		g := e.gateway(namespace.Name, httpsListener("home", "home.example.com"))
		withoutIssuer := listenerSet(namespace.Name, "without-issuer", g, []gatewayv1.Listener{httpsListener("web", "web.example.com")})
		withIssuer := listenerSet(namespace.Name, "with-issuer", g, []gatewayv1.Listener{httpsListener("api", "api.example.com")}, issuerAnnotation+"=team")
		create(g, withoutIssuer, withIssuer)

		Eventually(readyStatus).WithArguments(namespace.Name, "api-tls").Should(Equal("True"))
		Eventually(gatewayConditions).WithArguments(g).Should(HaveExactElements(partlyProgrammed, certificateMissing))
		Expect(readyStatus(namespace.Name, "web-tls")).To(Equal("none"))
		Expect(readyStatus(namespace.Name, "home-tls")).To(Equal("none"))
	})

	It("reports unsupported listeners, which are not programmed", func() {
		e := newEnvironment()
		namespace := e.namespace("")
		create(namespace, e.class())
		// cert-manager applies the Gateway's issuer-kind annotation even to a ListenerSet that names an issuer.
		g := e.gateway(namespace.Name, httpListener("home", "home.example.com"), "cert-manager.io/issuer-kind=Issuer")
		create(g)
		noHostname := httpsListener("no-hostname", "")
		noHostname.Hostname = nil
		otherNamespace := httpsListener("other-namespace", "other-namespace.example.com")
		otherNamespace.TLS.CertificateRefs[0].Namespace = ptr.To(gatewayv1.Namespace(issuerNamespace))
		issuer := issuerAnnotation + "=team"
		for _, unsupported := range []struct {
			listener    gatewayv1.Listener
			annotations []string
			event       string
			conditions  string
		}{
			{noHostname, []string{issuer}, "hostname cannot be empty", certificateMissing},
			{otherNamespace, []string{issuer}, "cross-namespace secret references are not allowed", strings.ReplaceAll(certificateMissing, "InvalidCertificateRef", "RefNotPermitted")},
			{httpsListener("both", "both.example.com"), []string{issuer, clusterIssuerAnnotation + "=team"},
				`both "cert-manager.io/issuer" and "cert-manager.io/cluster-issuer" may not be set`, certificateMissing},
			{httpsListener("kind", "kind.example.com"), []string{clusterIssuerAnnotation + "=team"},
				`both "cert-manager.io/cluster-issuer" and "cert-manager.io/issuer-kind" may not be set`, certificateMissing},
		} {
			s := listenerSet(namespace.Name, string(unsupported.listener.Name), g, []gatewayv1.Listener{unsupported.listener}, unsupported.annotations...)
			create(s)
			Eventually(badConfigEvents).WithArguments(s).Should(ContainElement(ContainSubstring(unsupported.event)))
			Eventually(listenerSetConditions).WithArguments(s).Should(HaveExactElements(setListenersInvalid, unsupported.conditions))
			Expect(readyStatus(namespace.Name, s.Name+"-tls")).To(Equal("none"))
		}
	})

	It("issues even for a ListenerSet that the Gateway does not allow", func() {
		e := newEnvironment()
		platform, other := e.namespace("-platform"), e.namespace("-other")
		createIssuer("", e.id)
		create(platform, other, e.class())
		g := e.gateway(platform.Name, httpListener("home", "home.example.com"), clusterIssuerAnnotation+"="+e.id)
		g.Spec.AllowedListeners.Namespaces.From = ptr.To(gatewayv1.NamespacesFromSame)
		s := listenerSet(other.Name, "web", g, []gatewayv1.Listener{httpsListener("web", "web.example.com")})
		create(g, s)
		createRoute(s, "web")
		Eventually(readyStatus).WithArguments(other.Name, "web-tls").Should(Equal("True"))
		Expect(signedBy(other.Name, "web-tls")).To(Equal("ClusterIssuer " + e.id))
		Eventually(listenerSetConditions).WithArguments(s).Should(HaveExactElements(setNotAllowed))
		Expect(e.answer(platform.Name+"/shared", "web.example.com", "/")).To(Equal("404"))
	})
})

// badConfigEvents returns the messages in cert-manager's BadConfig events for the object.
func badConfigEvents(o client.Object) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kube.List(context.Background(), &list, client.InNamespace(o.GetNamespace()))).To(Succeed())
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == o.GetName() && e.Type == corev1.EventTypeWarning && e.Reason == "BadConfig" {
			found = append(found, e.Message)
		}
	}
	return found
}
