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

var _ = Describe("issuing", func() {
	It("programs a ListenerSet by itself once its certificate is there", func() {
		w := newWorld()
		home := w.namespace("")
		g := w.gateway(home.Name, plain("own", "own.example.com"))
		set := listenerSet(home.Name, "team", g, []gatewayv1.Listener{secure("web", "team.example.com")}, issuerAnnotation+"=team-ca")
		create(home, w.class())
		seen := watchStatuses(home.Name)
		create(g, set)
		createRoute(set, "web")

		By("waiting for an issuer that does not exist yet")
		Eventually(setSays).WithArguments(set).Should(HaveExactElements(setInvalid, waits))
		c := meta.FindStatusCondition(set.Status.Listeners[0].Conditions, string(gatewayv1.ListenerEntryConditionResolvedRefs))
		Expect(c.Message).To(Equal("Secret " + home.Name + "/web-tls in certificateRefs does not exist."))
		Eventually(gatewaySays).WithArguments(g).Should(HaveExactElements(setServes, serves), "the Gateway does not wait")
		Eventually(ready).WithArguments(home.Name, "web-tls").Should(Equal("False"))
		Expect(exists(secret(home.Name, "web-tls"))).To(BeFalse())
		Expect(*g.Status.AttachedListenerSets).To(BeZero())
		Expect(w.get(home.Name+"/shared", "team.example.com", "/")).To(Equal("404"))

		By("issuing")
		createIssuer(home.Name, "team-ca")
		Eventually(setSays).WithArguments(set).Should(HaveExactElements(setServes, serves))
		Eventually(w.get).WithArguments(home.Name+"/shared", "team.example.com", "/").Should(Equal("web." + home.Name))
		Expect(signedBy(home.Name, "web-tls")).To(Equal("Issuer team-ca"))
		Expect(leaf(home.Name, "web-tls").DNSNames).To(HaveExactElements("team.example.com"))
		Eventually(func() int32 { return *fresh(g).Status.AttachedListenerSets }).Should(BeEquivalentTo(1))

		Expect(seen.transitions(set, "web", gatewayv1.ListenerEntryConditionResolvedRefs)).To(
			HaveExactElements("False InvalidCertificateRef", "True ResolvedRefs"))
		Expect(seen.transitions(set, "web", gatewayv1.ListenerEntryConditionProgrammed)).To(
			HaveExactElements("False Invalid", "True Programmed"))
	})

	It("takes a Gateway's annotation as the default, and a ListenerSet's before it", func() {
		w := newWorld()
		platform, team := w.namespace("-platform"), w.namespace("-team")
		createIssuer("", w.id+"-platform")
		createIssuer("", w.id+"-other")
		create(platform, team, w.class())
		createIssuer(team.Name, "team")
		g := w.gateway(platform.Name, secure("own", "own.example.com"), clusterIssuerAnnotation+"="+w.id+"-platform")
		create(g)

		for _, set := range []struct {
			name        string
			annotations []string
			signedBy    string
		}{
			{"inherits", nil, "ClusterIssuer " + w.id + "-platform"},
			{"cluster", []string{clusterIssuerAnnotation + "=" + w.id + "-other"}, "ClusterIssuer " + w.id + "-other"},
			{"own", []string{issuerAnnotation + "=team"}, "Issuer team"},
		} {
			host := set.name + ".team.example.com"
			s := listenerSet(team.Name, set.name, g, []gatewayv1.Listener{secure(set.name, host)}, set.annotations...)
			create(s)
			createRoute(s, set.name)
			Eventually(setSays).WithArguments(s).Should(HaveExactElements(setServes, serves))
			Expect(signedBy(team.Name, set.name+"-tls")).To(Equal(set.signedBy))
			Expect(owner(team.Name, set.name+"-tls")).To(Equal("ListenerSet " + set.name))
			Eventually(w.get).WithArguments(platform.Name+"/shared", host, "/").Should(Equal(set.name + "." + team.Name))
		}
		Eventually(gatewaySays).WithArguments(g).Should(HaveExactElements(setServes, serves))
		Expect(signedBy(platform.Name, "own-tls")).To(Equal("ClusterIssuer " + w.id + "-platform"))
		Expect(owner(platform.Name, "own-tls")).To(Equal("Gateway shared"))
	})

	It("looks for a Gateway's default Issuer in the namespace of the ListenerSet", func() {
		w := newWorld()
		platform, team := w.namespace("-platform"), w.namespace("-team")
		create(platform, team, w.class())
		createIssuer(platform.Name, "house")
		createIssuer("", w.id+"-cluster")
		g := w.gateway(platform.Name, secure("own", "own.example.com"), issuerAnnotation+"=house")
		inherits := listenerSet(team.Name, "inherits", g, []gatewayv1.Listener{secure("web", "web.example.com")})
		overrides := listenerSet(team.Name, "overrides", g, []gatewayv1.Listener{secure("api", "api.example.com")},
			clusterIssuerAnnotation+"="+w.id+"-cluster")
		create(g, inherits, overrides)

		Eventually(gatewaySays).WithArguments(g).Should(HaveExactElements(setServes, serves))
		Expect(signedBy(platform.Name, "own-tls")).To(Equal("Issuer house"))
		Eventually(setSays).WithArguments(overrides).Should(HaveExactElements(setServes, serves))
		Expect(signedBy(team.Name, "api-tls")).To(Equal("ClusterIssuer " + w.id + "-cluster"))
		Eventually(ready).WithArguments(team.Name, "web-tls").Should(Equal("False"))
		Expect(setSays(inherits)).To(HaveExactElements(setInvalid, waits), "the Gateway's Issuer is not the team's")

		createIssuer(team.Name, "house")
		Eventually(setSays).WithArguments(inherits).Should(HaveExactElements(setServes, serves))
		Expect(signedBy(team.Name, "web-tls")).To(Equal("Issuer house"))
	})

	It("issues where only the ListenerSet names an issuer, and not where nobody does", func() {
		w := newWorld()
		home := w.namespace("")
		create(home, w.class())
		createIssuer(home.Name, "team")
		g := w.gateway(home.Name, secure("own", "own.example.com"))
		nobody := listenerSet(home.Name, "nobody", g, []gatewayv1.Listener{secure("web", "web.example.com")})
		itself := listenerSet(home.Name, "itself", g, []gatewayv1.Listener{secure("api", "api.example.com")}, issuerAnnotation+"=team")
		create(g, nobody, itself)

		Eventually(ready).WithArguments(home.Name, "api-tls").Should(Equal("True"))
		Eventually(gatewaySays).WithArguments(g).Should(HaveExactElements(halfServes, waits))
		Expect(ready(home.Name, "web-tls")).To(Equal("none"))
		Expect(ready(home.Name, "own-tls")).To(Equal("none"))
	})

	It("says in an event what cert-manager cannot use, and the listener waits", func() {
		w := newWorld()
		home := w.namespace("")
		create(home, w.class())
		// Of the Gateway's annotations, issuer-kind reaches a ListenerSet that has an issuer of its own too.
		g := w.gateway(home.Name, plain("own", "own.example.com"), "cert-manager.io/issuer-kind=Issuer")
		create(g)
		nameless := secure("nameless", "")
		nameless.Hostname = nil
		elsewhere := secure("elsewhere", "elsewhere.example.com")
		elsewhere.TLS.CertificateRefs[0].Namespace = ptr.To(gatewayv1.Namespace(issuerNamespace))
		one := issuerAnnotation + "=team"
		for _, bad := range []struct {
			listener    gatewayv1.Listener
			annotations []string
			complaint   string
			says        string
		}{
			{nameless, []string{one}, "hostname cannot be empty", waits},
			{elsewhere, []string{one}, "cross-namespace secret references are not allowed", strings.ReplaceAll(waits, "InvalidCertificateRef", "RefNotPermitted")},
			{secure("both", "both.example.com"), []string{one, clusterIssuerAnnotation + "=team"},
				`both "cert-manager.io/issuer" and "cert-manager.io/cluster-issuer" may not be set`, waits},
			{secure("kind", "kind.example.com"), []string{clusterIssuerAnnotation + "=team"},
				`both "cert-manager.io/cluster-issuer" and "cert-manager.io/issuer-kind" may not be set`, waits},
		} {
			s := listenerSet(home.Name, string(bad.listener.Name), g, []gatewayv1.Listener{bad.listener}, bad.annotations...)
			create(s)
			Eventually(complaints).WithArguments(s).Should(ContainElement(ContainSubstring(bad.complaint)))
			Eventually(setSays).WithArguments(s).Should(HaveExactElements(setInvalid, bad.says))
			Expect(ready(home.Name, s.Name+"-tls")).To(Equal("none"))
		}
	})

	It("issues for a ListenerSet that the Gateway does not allow, which serves nothing", func() {
		w := newWorld()
		platform, stranger := w.namespace("-platform"), w.namespace("-stranger")
		createIssuer("", w.id)
		create(platform, stranger, w.class())
		g := w.gateway(platform.Name, plain("own", "own.example.com"), clusterIssuerAnnotation+"="+w.id)
		g.Spec.AllowedListeners.Namespaces.From = ptr.To(gatewayv1.NamespacesFromSame)
		s := listenerSet(stranger.Name, "web", g, []gatewayv1.Listener{secure("web", "web.example.com")})
		create(g, s)
		createRoute(s, "web")
		Eventually(ready).WithArguments(stranger.Name, "web-tls").Should(Equal("True"))
		Expect(signedBy(stranger.Name, "web-tls")).To(Equal("ClusterIssuer " + w.id))
		const invalid = "Accepted=False Invalid, Conflicted=False NoConflicts, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"
		Eventually(setSays).WithArguments(s).Should(HaveExactElements(setRefused, invalid))
		Expect(w.get(platform.Name+"/shared", "web.example.com", "/")).To(Equal("404"))
	})
})

// complaints returns what cert-manager complained about on the object.
func complaints(o client.Object) []string {
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
