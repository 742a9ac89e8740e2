package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// external-dns annotations. Earlier versions use the prefix alphaPrefix.
const (
	targetAnnotation      = "external-dns.kubernetes.io/target"
	alphaTargetAnnotation = alphaPrefix + "target"
	alphaPrefix           = "external-dns.alpha.kubernetes.io/"
	proxiedAnnotation     = "external-dns.kubernetes.io/cloudflare-proxied"
)

var _ = Describe("the target annotation", func() {
	var e *environment
	var tunnel string

	BeforeEach(func() {
		e = newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("PLATFORM/home", sharedGateway, "home.ZONE") + route("TEAM/web", teamSet, "web.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		tunnel = e.tunnelTarget("shared")
	})

	expected := func(home, web string) []string {
		return append(e.cnames(home, "home.ZONE"), e.cnames(web, "web.ZONE")...)
	}

	It("on the Gateway applies to its ListenerSets too", func() {
		e.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "gateway.example.net")
		e.expectCNAMEs(expected("gateway.example.net", "gateway.example.net"))
	})

	It("on a ListenerSet applies to the hostnames of the ListenerSet only", func() {
		e.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		e.expectCNAMEs(expected(tunnel, "set.example.net"))
	})

	It("on a ListenerSet takes precedence over the one on the Gateway", func() {
		e.expectCNAMEs(expected(tunnel, tunnel))
		e.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "gateway.example.net")
		e.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		e.expectCNAMEs(expected("gateway.example.net", "set.example.net"))
	})

	It("has no effect on a route or under its old name", func() {
		e.annotate("HTTPRoute", "TEAM/web", targetAnnotation, "route.example.net")
		e.annotate("ListenerSet", "TEAM/set", alphaTargetAnnotation, "set.example.net")
		e.annotate("Gateway", "PLATFORM/shared", alphaTargetAnnotation, "gateway.example.net")
		e.expectCNAMEs(expected(tunnel, tunnel))
		e.expectCNAMEs(expected("gateway.example.net", "set.example.net"), "--annotation-prefix="+alphaPrefix)
	})

	It("on a ListenerSet conflicts with the Gateway's for a shared route", func() {
		e.annotate("ListenerSet", "TEAM/set", targetAnnotation, "set.example.net")
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("all", "*.apps.ZONE", allNamespaces)) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"), listener("shop", "shop.apps.ZONE")) +
			route("TEAM/shop", teamSet+", "+sharedGateway, "shop.apps.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/shop", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/shop", "shared")).Should(Equal(accepted))
		log, err := e.runOnce()
		Expect(err).To(HaveOccurred())
		Expect(log).To(ContainSubstring("failed to submit all changes"))

		By("setting the same target on the Gateway")
		e.annotate("Gateway", "PLATFORM/shared", targetAnnotation, "set.example.net")
		e.expectCNAMEs(append(expected("set.example.net", "set.example.net"), e.cnames("set.example.net", "shop.apps.ZONE")...))
	})
})

var _ = Describe("a record", func() {
	var e *environment

	BeforeEach(func() {
		e = newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("one", "one.ZONE"), listener("two", "two.ZONE")) +
			route("PLATFORM/one", sharedGateway, "one.ZONE") + route("PLATFORM/two", sharedGateway, "two.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/one", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/two", "shared")).Should(Equal(accepted))
	})

	unproxied := func(name string) string {
		return record{e.expand(name), "CNAME", e.tunnelTarget("shared"), false}.String()
	}

	It("is not proxied without --cloudflare-proxied, and becomes proxied with it", func() {
		e.expectCNAMEs([]string{unproxied("one.ZONE"), unproxied("two.ZONE")}, "!--cloudflare-proxied")
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "one.ZONE", "two.ZONE"))
	})

	It("follows the route's annotation but not the Gateway's", func() {
		e.annotate("HTTPRoute", "PLATFORM/one", proxiedAnnotation, "false")
		e.annotate("Gateway", "PLATFORM/shared", proxiedAnnotation, "false")
		e.expectCNAMEs(append(e.cnames(e.tunnelTarget("shared"), "two.ZONE"), unproxied("one.ZONE")))
		e.annotate("HTTPRoute", "PLATFORM/one", proxiedAnnotation, "true")
		e.annotate("Gateway", "PLATFORM/shared", proxiedAnnotation, "true")
		e.expectCNAMEs(append(e.cnames(e.tunnelTarget("shared"), "one.ZONE"), unproxied("two.ZONE")), "!--cloudflare-proxied")
	})
})
