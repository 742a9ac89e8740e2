package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withoutListenerSets removes the flag that makes external-dns read ListenerSets.
const withoutListenerSets = "!--gateway-listener-sets"

// cnames returns proxied CNAMEs from the names to the target.
func (e *environment) cnames(target string, names ...string) []string {
	records := make([]string, len(names))
	for i, name := range names {
		records[i] = record{e.expand(name), "CNAME", target, true}.String()
	}
	return records
}

// expectCNAMEs runs external-dns and compares all records except the TXT records,
// which store the ownership. A second run must not change the zone.
func (e *environment) expectCNAMEs(want []string, changes ...string) {
	GinkgoHelper()
	log, err := e.runOnce(changes...)
	Expect(err).NotTo(HaveOccurred(), "external-dns: %s", log)
	Expect(e.dns.recordsOfType("!TXT")).To(ConsistOf(want))
	before := e.dns.writeCount()
	log, err = e.runOnce(changes...)
	Expect(err).NotTo(HaveOccurred(), "external-dns: %s", log)
	Expect(e.dns.recordsOfType("!TXT")).To(ConsistOf(want))
	Expect(e.dns.writeCount()).To(Equal(before), "the second run must not change records")
}

var _ = Describe("the records of routes", func() {
	It("are CNAMEs to the tunnel with an owner TXT record", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("one", "one.ZONE"), listener("two", "two.ZONE"), listener("idle", "idle.ZONE")) +
			route("PLATFORM/one", "{name: shared, sectionName: one}") +
			route("PLATFORM/two", sharedGateway, "two.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/one", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/two", "shared")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "one.ZONE", "two.ZONE"))
		ownership := func(name, route string) string {
			return e.expand(name) + ` TXT "heritage=external-dns,external-dns/owner=my-cluster,external-dns/resource=httproute/` + e.expand(route) + `"`
		}
		Expect(e.dns.recordsOfType("TXT")).To(ConsistOf(
			ownership("edns-cname.one.ZONE", "PLATFORM/one"), ownership("edns-cname.two.ZONE", "PLATFORM/two")))
	})

	It("exist for routes that attach to a ListenerSet only, with --gateway-listener-sets", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"), listener("idle", "idle.ZONE")) +
			route("TEAM/web", "{kind: ListenerSet, name: set, sectionName: web}"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))

		e.expectCNAMEs(nil, withoutListenerSets)
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "web.ZONE"))
	})

	It("contain the hostnames of both parents of a route", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("all", "*.apps.ZONE", allNamespaces)) +
			listenerSet("TEAM/set", listener("shop", "shop.apps.ZONE")) +
			route("TEAM/shop", teamSet+", "+sharedGateway, "shop.apps.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/shop", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/shop", "shared")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "shop.apps.ZONE"))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "shop.apps.ZONE"), withoutListenerSets)

		By("removing the route's hostname, which adds the listener's wildcard")
		e.apply(route("TEAM/shop", teamSet+", "+sharedGateway))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "shop.apps.ZONE", "*.apps.ZONE"))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "*.apps.ZONE"), withoutListenerSets)
	})

	It("do not exist without the flag for an unmatched hostname", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE", allNamespaces)) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("TEAM/web", teamSet+", "+sharedGateway, "web.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/web", "shared")).Should(Equal("False NoMatchingListenerHostname"))

		e.expectCNAMEs(nil, withoutListenerSets)
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "web.ZONE"))
	})

	It("have the route's hostnames, or else the listener's wildcard", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("all", "*.all.ZONE"), listener("some", "*.some.ZONE")) +
			route("TEAM/all", "{kind: ListenerSet, name: set, sectionName: all}") +
			route("TEAM/one", "{kind: ListenerSet, name: set, sectionName: all}", "one.all.ZONE") +
			route("TEAM/some", "{kind: ListenerSet, name: set, sectionName: some}", "a.some.ZONE", "b.c.some.ZONE", "*.d.some.ZONE", "some.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/all", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/one", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "TEAM/some", "set")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "*.all.ZONE", "one.all.ZONE", "a.some.ZONE", "b.c.some.ZONE", "*.d.some.ZONE"))
		Expect(e.dns.recordsOfType("TXT")).To(ContainElement(HavePrefix(e.expand("edns-cname.wildcard.all.ZONE"))))
	})

	It("can have the name of the zone", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("apex", "ZONE")) + route("PLATFORM/apex", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/apex", "shared")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "ZONE"))
	})

	It("do not exist without a hostname", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", "{name: any, port: 80, protocol: HTTP}") +
			route("PLATFORM/any", sharedGateway) + route("PLATFORM/named", sharedGateway, "named.ZONE"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/any", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/named", "shared")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "named.ZONE"))
	})

	It("exist for GRPCRoutes of Gateways and ListenerSets", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("all", "*.grpc.ZONE", allNamespaces)) +
			listenerSet("TEAM/set", listener("api", "api.ZONE")) +
			grpcRoute("TEAM/set", teamSet) + grpcRoute("TEAM/gateway", sharedGateway, "a.grpc.ZONE"))
		Eventually(e.routeAcceptance("GRPCRoute", "TEAM/set", "set")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("GRPCRoute", "TEAM/gateway", "shared")).Should(Equal(accepted))

		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "api.ZONE", "a.grpc.ZONE"))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "a.grpc.ZONE"), withoutListenerSets)
	})
})
