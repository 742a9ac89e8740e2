package externaldns

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what is refused", func() {
	It("is a conflicted entry of a ListenerSet: its hostname stays its owner's until that is gone", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")))
		w.apply(listenerSet("TEAM/first", listener("taken", "taken.ZONE")))
		Eventually(w.accepted("TEAM/first")).Should(Equal(accepted))
		w.waitForAnotherSecond("ListenerSet", "TEAM/first")
		w.apply(listenerSet("TEAM/set", listener("late", "taken.ZONE"), listener("free", "free.ZONE")) +
			route("TEAM/takeover", "{kind: ListenerSet, name: set, sectionName: late}") +
			route("TEAM/whole", teamSet))
		Eventually(w.acceptedEntry("ListenerSet", "TEAM/set", "late")).Should(Equal("False HostnameConflict"))
		Eventually(w.attached("HTTPRoute", "TEAM/whole", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/takeover", "set")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "free.ZONE"))

		By("deleting the owner, so that the other one inherits")
		w.delete("ListenerSet", "TEAM/first")
		Eventually(w.acceptedEntry("ListenerSet", "TEAM/set", "late")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "free.ZONE", "taken.ZONE"))
	})

	It("is a ListenerSet of which every entry conflicts", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "home.ZONE")) + route("TEAM/web", teamSet))
		Eventually(w.accepted("TEAM/set")).Should(Equal("False ListenersNotValid"))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		w.expectCNAMEs(nil)
	})

	It("is a ListenerSet that the Gateway does not allow", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) + route("TEAM/web", teamSet) +
			route("PLATFORM/home", sharedGateway))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE", "web.ZONE"))

		w.apply(header("Gateway", "PLATFORM/shared") + "spec: {gatewayClassName: cloudflare-tunnel, " +
			"allowedListeners: {namespaces: {from: Same}}, listeners: [" + listener("home", "home.ZONE") + "]}")
		Eventually(w.accepted("TEAM/set")).Should(Equal("False NotAllowed"))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(HavePrefix("False"))
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"))
	})

	It("is a route that its parent does not accept", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("wide", "*.wide.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("TEAM/foreign", sharedGateway, "a.wide.ZONE") +
			route("PLATFORM/elsewhere", sharedGateway, "b.ZONE") +
			route("PLATFORM/foreign", teamSet, "web.ZONE") +
			route("TEAM/nowhere", "{kind: ListenerSet, name: set, sectionName: none}") +
			route("PLATFORM/some", sharedGateway, "home.ZONE", "c.ZONE"))
		Eventually(w.attached("HTTPRoute", "TEAM/foreign", "shared")).Should(Equal("False NotAllowedByListeners"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/elsewhere", "shared")).Should(Equal("False NoMatchingListenerHostname"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/foreign", "set")).Should(Equal("False NotAllowedByListeners"))
		Eventually(w.attached("HTTPRoute", "TEAM/nowhere", "set")).Should(Equal("False NoMatchingParent"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/some", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"))
	})
})

var _ = Describe("what external-dns does not look at", func() {
	It("is the status of a Gateway's own listeners: one in conflict has its record all the same, and its name answers 404", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("good", "good.ZONE"),
			`{name: http, port: 8080, protocol: HTTP, hostname: bad.ZONE}`,
			`{name: https, port: 8080, protocol: HTTPS, hostname: bad.ZONE, tls: {certificateRefs: [{name: none}]}}`) +
			route("PLATFORM/good", "{name: shared, sectionName: good}") +
			route("PLATFORM/bad", "{name: shared, sectionName: http}"))
		Eventually(w.acceptedEntry("Gateway", "PLATFORM/shared", "http")).Should(Equal("False ProtocolConflict"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/good", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/bad", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "good.ZONE", "bad.ZONE"))
		Expect(w.answer("bad.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("is whether a listener is programmed: one whose certificate does not resolve has its record, and its name answers 404", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"),
				`{name: tls, port: 443, protocol: HTTPS, hostname: tls.ZONE, tls: {certificateRefs: [{name: missing}]}}`) +
			route("TEAM/web", teamSet))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(w.acceptedEntry("ListenerSet", "TEAM/set", "tls")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "web.ZONE", "tls.ZONE"))
		Expect(w.answer("tls.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("is what the controller reads: the hostname in a route's annotation has its record, and answers 404", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("all", "*.all.ZONE")) + route("PLATFORM/all", sharedGateway, "a.all.ZONE"))
		w.annotate("HTTPRoute", "PLATFORM/all", "external-dns.kubernetes.io/hostname", "b.all.ZONE")
		Eventually(w.attached("HTTPRoute", "PLATFORM/all", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "a.all.ZONE", "b.all.ZONE"))
		Expect(w.answer("b.all.ZONE")).To(Equal(http.StatusNotFound))
	})

	It("is whether a route's backends resolve: its name has a record, and answers 500", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + header("HTTPRoute", "PLATFORM/home") +
			"spec: {parentRefs: [" + sharedGateway + "], rules: [{backendRefs: [{name: none, port: 80}]}]}")
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"))
		Expect(w.answer("home.ZONE")).To(Equal(http.StatusInternalServerError))
	})
})
