package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What external-dns reads, and what its earlier versions read.
const (
	targetAnnotation    = "external-dns.kubernetes.io/target"
	oldTargetAnnotation = oldPrefix + "target"
	oldPrefix           = "external-dns.alpha.kubernetes.io/"
	proxiedAnnotation   = "external-dns.kubernetes.io/cloudflare-proxied"
)

var _ = Describe("the target annotation", func() {
	var w *world
	var tunnel string

	BeforeEach(func() {
		w = newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("PLATFORM/home", sharedGateway, "home.ZONE") + route("TEAM/web", teamSet, "web.ZONE"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		tunnel = w.target("shared")
	})

	both := func(home, web string) []string {
		return append(w.cnames(home, "home.ZONE"), w.cnames(web, "web.ZONE")...)
	}

	It("on the Gateway is for its own names and those of its ListenerSets", func() {
		w.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "gateway.example.net")
		w.expectCNAMEs(both("gateway.example.net", "gateway.example.net"))
	})

	It("on the ListenerSet is for the set's names alone", func() {
		w.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		w.expectCNAMEs(both(tunnel, "set.example.net"))
	})

	It("on both: the set's goes first for the set's names", func() {
		w.expectCNAMEs(both(tunnel, tunnel))
		w.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "gateway.example.net")
		w.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		w.expectCNAMEs(both("gateway.example.net", "set.example.net"))
	})

	It("is not read on a route, nor under its old name unless external-dns is told that prefix", func() {
		w.annotate("HTTPRoute", "TEAM/web", targetAnnotation, "route.example.net")
		w.annotate("ListenerSet", "TEAM/set", oldTargetAnnotation, "set.example.net")
		w.annotate("Gateway", "PLATFORM/shared", oldTargetAnnotation, "gateway.example.net")
		w.expectCNAMEs(both(tunnel, tunnel))
		w.expectCNAMEs(both("gateway.example.net", "set.example.net"), "--annotation-prefix="+oldPrefix)
	})

	It("on the set gives a name with both parents two targets, which cannot be", func() {
		w.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("all", "*.apps.ZONE", openToAll)) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"), listener("shop", "shop.apps.ZONE")) +
			route("TEAM/shop", teamSet+", "+sharedGateway, "shop.apps.ZONE"))
		Eventually(w.attached("HTTPRoute", "TEAM/shop", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/shop", "shared")).Should(Equal(accepted))
		log, err := w.sync()
		Expect(err).To(HaveOccurred())
		Expect(log).To(ContainSubstring("failed to submit all changes"))

		By("giving the Gateway the same target")
		w.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "set.example.net")
		w.expectCNAMEs(append(both("set.example.net", "set.example.net"), w.cnames("set.example.net", "shop.apps.ZONE")...))
	})
})

var _ = Describe("whether a record is proxied", func() {
	var w *world

	BeforeEach(func() {
		w = newWorld()
		w.apply(gateway("PLATFORM/shared", listener("one", "one.ZONE"), listener("two", "two.ZONE")) +
			route("PLATFORM/one", sharedGateway, "one.ZONE") + route("PLATFORM/two", sharedGateway, "two.ZONE"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/one", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/two", "shared")).Should(Equal(accepted))
	})

	plain := func(name string) string {
		return record{w.text(name), "CNAME", w.target("shared"), false}.String()
	}

	It("is no without --cloudflare-proxied, and is put right when the flag is added", func() {
		w.expectCNAMEs([]string{plain("one.ZONE"), plain("two.ZONE")}, "!--cloudflare-proxied")
		w.expectCNAMEs(w.cnames(w.target("shared"), "one.ZONE", "two.ZONE"))
	})

	It("is what the annotation of a route says, with and without the flag; that of a Gateway is not read", func() {
		w.annotate("HTTPRoute", "PLATFORM/one", proxiedAnnotation, "false")
		w.annotate("Gateway", "PLATFORM/shared", proxiedAnnotation, "false")
		w.expectCNAMEs(append(w.cnames(w.target("shared"), "two.ZONE"), plain("one.ZONE")))
		w.annotate("HTTPRoute", "PLATFORM/one", proxiedAnnotation, "true")
		w.annotate("Gateway", "PLATFORM/shared", proxiedAnnotation, "true")
		w.expectCNAMEs(append(w.cnames(w.target("shared"), "one.ZONE"), plain("two.ZONE")), "!--cloudflare-proxied")
	})
})
