package externaldns

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("external-dns creates no record for", func() {
	It("a ListenerSet's conflicted listener until the hostname's owner is deleted", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")))
		e.apply(listenerSet("TEAM/first", listener("claimed", "claimed.ZONE")))
		Eventually(e.setAcceptance("TEAM/first")).Should(Equal(accepted))
		e.waitForLaterTimestamp("ListenerSet", "TEAM/first")
		e.apply(listenerSet("TEAM/set", listener("late", "claimed.ZONE"), listener("free", "free.ZONE")) +
			route("TEAM/takeover", "{kind: ListenerSet, name: set, sectionName: late}") +
			route("TEAM/whole", teamSet))
		Eventually(e.listenerAcceptance("ListenerSet", "TEAM/set", "late")).Should(Equal("False HostnameConflict"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/whole", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/takeover", "set")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "free.ZONE"))

		By("deleting the owner, after which the other ListenerSet claims the hostname")
		e.deleteObject("ListenerSet", "TEAM/first")
		Eventually(e.listenerAcceptance("ListenerSet", "TEAM/set", "late")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "free.ZONE", "claimed.ZONE"))
	})

	It("a ListenerSet whose listeners are all conflicted", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "home.ZONE")) + route("TEAM/web", teamSet))
		Eventually(e.setAcceptance("TEAM/set")).Should(Equal("False ListenersNotValid"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		e.expectCNAMEs(nil)
	})

	It("a ListenerSet that the Gateway does not allow", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) + route("TEAM/web", teamSet) +
			route("PLATFORM/home", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE", "web.ZONE"))

		e.apply(header("Gateway", "PLATFORM/shared") + "spec: {gatewayClassName: cloudflare-tunnel, " +
			"allowedListeners: {namespaces: {from: Same}}, listeners: [" + listener("home", "home.ZONE") + "]}")
		Eventually(e.setAcceptance("TEAM/set")).Should(Equal("False NotAllowed"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(HavePrefix("False"))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"))
	})

	It("a route that its parent does not accept", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("wide", "*.wide.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("TEAM/not-allowed", sharedGateway, "a.wide.ZONE") +
			route("PLATFORM/no-match", sharedGateway, "b.ZONE") +
			route("PLATFORM/not-allowed", teamSet, "web.ZONE") +
			route("TEAM/no-listener", "{kind: ListenerSet, name: set, sectionName: none}") +
			route("PLATFORM/partial", sharedGateway, "home.ZONE", "c.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/not-allowed", "shared")).Should(Equal("False NotAllowedByListeners"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/no-match", "shared")).Should(Equal("False NoMatchingListenerHostname"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/not-allowed", "set")).Should(Equal("False NotAllowedByListeners"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/no-listener", "set")).Should(Equal("False NoMatchingParent"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/partial", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"))
	})
})

var _ = Describe("external-dns creates a record for", func() {
	It("a conflicted listener of a Gateway, whose hostname returns 404", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("good", "good.ZONE"),
			`{name: http, port: 8080, protocol: HTTP, hostname: bad.ZONE}`,
			`{name: https, port: 8080, protocol: HTTPS, hostname: bad.ZONE, tls: {certificateRefs: [{name: none}]}}`) +
			route("PLATFORM/good", "{name: shared, sectionName: good}") +
			route("PLATFORM/bad", "{name: shared, sectionName: http}"))
		Eventually(e.listenerAcceptance("Gateway", "PLATFORM/shared", "http")).Should(Equal("False ProtocolConflict"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/good", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/bad", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "good.ZONE", "bad.ZONE"))
		Expect(e.responseCode("bad.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("a listener without a valid certificate, whose hostname returns 404", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"),
				`{name: tls, port: 443, protocol: HTTPS, hostname: tls.ZONE, tls: {certificateRefs: [{name: missing}]}}`) +
			route("TEAM/web", teamSet))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(e.listenerAcceptance("ListenerSet", "TEAM/set", "tls")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "web.ZONE", "tls.ZONE"))
		Expect(e.responseCode("tls.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("the hostname in an annotation of a route, which returns 404", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("all", "*.all.ZONE")) + route("PLATFORM/all", sharedGateway, "a.all.ZONE"))
		e.annotate("HTTPRoute", "PLATFORM/all", "external-dns.kubernetes.io/hostname", "b.all.ZONE")
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/all", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "a.all.ZONE", "b.all.ZONE"))
		Expect(e.responseCode("b.all.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("a route whose backend does not exist, whose hostname returns 500", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + header("HTTPRoute", "PLATFORM/home") +
			"spec: {parentRefs: [" + sharedGateway + "], rules: [{backendRefs: [{name: none, port: 80}]}]}")
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"))
		Expect(e.responseCode("home.ZONE")).To(Equal(http.StatusInternalServerError))
	})
})
