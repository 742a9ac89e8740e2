package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withoutSets takes the flag away that external-dns needs for ListenerSets.
const withoutSets = "!--gateway-listener-sets"

// cnames returns the CNAMEs of the zone's names to the target, proxied.
func (w *world) cnames(target string, names ...string) []string {
	records := make([]string, len(names))
	for i, name := range names {
		records[i] = record{w.text(name), "CNAME", target, true}.String()
	}
	return records
}

// expectCNAMEs runs external-dns and compares all records of the zone but those
// of ownership. A second run must find nothing to do.
func (w *world) expectCNAMEs(want []string, changes ...string) {
	GinkgoHelper()
	log, err := w.sync(changes...)
	Expect(err).NotTo(HaveOccurred(), "external-dns: %s", log)
	Expect(w.zones.list("!TXT")).To(ConsistOf(want))
	before := w.zones.changes()
	log, err = w.sync(changes...)
	Expect(err).NotTo(HaveOccurred(), "external-dns: %s", log)
	Expect(w.zones.list("!TXT")).To(ConsistOf(want))
	Expect(w.zones.changes()).To(Equal(before), "calls that change the zone")
}

var _ = Describe("the records of routes", func() {
	It("are CNAMEs to the tunnel, with a TXT record that says whose they are", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("one", "one.ZONE"), listener("two", "two.ZONE"), listener("idle", "idle.ZONE")) +
			route("PLATFORM/one", "{name: shared, sectionName: one}") +
			route("PLATFORM/two", sharedGateway, "two.ZONE"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/one", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/two", "shared")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "one.ZONE", "two.ZONE"))
		ownership := func(name, route string) string {
			return w.text(name) + ` TXT "heritage=external-dns,external-dns/owner=my-cluster,external-dns/resource=httproute/` + w.text(route) + `"`
		}
		Expect(w.zones.list("TXT")).To(ConsistOf(
			ownership("edns-cname.one.ZONE", "PLATFORM/one"), ownership("edns-cname.two.ZONE", "PLATFORM/two")))
	})

	It("exist for routes that are attached through a ListenerSet alone, with --gateway-listener-sets", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("web", "web.ZONE"), listener("idle", "idle.ZONE")) +
			route("TEAM/web", "{kind: ListenerSet, name: set, sectionName: web}"))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))

		w.expectCNAMEs(nil, withoutSets)
		w.expectCNAMEs(w.cnames(w.target("shared"), "web.ZONE"))
	})

	It("follow both parents of a route that names the Gateway and a ListenerSet", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("all", "*.apps.ZONE", openToAll)) +
			listenerSet("TEAM/set", listener("shop", "shop.apps.ZONE")) +
			route("TEAM/shop", teamSet+", "+sharedGateway, "shop.apps.ZONE"))
		Eventually(w.attached("HTTPRoute", "TEAM/shop", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/shop", "shared")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "shop.apps.ZONE"))
		w.expectCNAMEs(w.cnames(w.target("shared"), "shop.apps.ZONE"), withoutSets)

		By("with the wildcard of the Gateway's listener, once the route names no hostname")
		w.apply(route("TEAM/shop", teamSet+", "+sharedGateway))
		w.expectCNAMEs(w.cnames(w.target("shared"), "shop.apps.ZONE", "*.apps.ZONE"))
		w.expectCNAMEs(w.cnames(w.target("shared"), "*.apps.ZONE"), withoutSets)
	})

	It("do not exist without the flag when no listener of the Gateway itself admits the hostname", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE", openToAll)) +
			listenerSet("TEAM/set", listener("web", "web.ZONE")) +
			route("TEAM/web", teamSet+", "+sharedGateway, "web.ZONE"))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/web", "shared")).Should(Equal("False NoMatchingListenerHostname"))

		w.expectCNAMEs(nil, withoutSets)
		w.expectCNAMEs(w.cnames(w.target("shared"), "web.ZONE"))
	})

	It("are wildcards where the route takes the listener's hostname, and the route's own names otherwise", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) +
			listenerSet("TEAM/set", listener("all", "*.all.ZONE"), listener("some", "*.some.ZONE")) +
			route("TEAM/all", "{kind: ListenerSet, name: set, sectionName: all}") +
			route("TEAM/one", "{kind: ListenerSet, name: set, sectionName: all}", "one.all.ZONE") +
			route("TEAM/some", "{kind: ListenerSet, name: set, sectionName: some}", "a.some.ZONE", "b.c.some.ZONE", "*.d.some.ZONE", "some.ZONE"))
		Eventually(w.attached("HTTPRoute", "TEAM/all", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/one", "set")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "TEAM/some", "set")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "*.all.ZONE", "one.all.ZONE", "a.some.ZONE", "b.c.some.ZONE", "*.d.some.ZONE"))
		Expect(w.zones.list("TXT")).To(ContainElement(HavePrefix(w.text("edns-cname.wildcard.all.ZONE"))))
	})

	It("can be the zone's own name", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("apex", "ZONE")) + route("PLATFORM/apex", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/apex", "shared")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "ZONE"))
	})

	It("do not exist for a listener without hostname and a route without any", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", "{name: any, port: 80, protocol: HTTP}") +
			route("PLATFORM/any", sharedGateway) + route("PLATFORM/named", sharedGateway, "named.ZONE"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/any", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/named", "shared")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "named.ZONE"))
	})

	It("exist for GRPCRoutes at both kinds of parents", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("all", "*.grpc.ZONE", openToAll)) +
			listenerSet("TEAM/set", listener("api", "api.ZONE")) +
			grpcRoute("TEAM/set", teamSet) + grpcRoute("TEAM/gateway", sharedGateway, "a.grpc.ZONE"))
		Eventually(w.attached("GRPCRoute", "TEAM/set", "set")).Should(Equal(accepted))
		Eventually(w.attached("GRPCRoute", "TEAM/gateway", "shared")).Should(Equal(accepted))

		w.expectCNAMEs(w.cnames(w.target("shared"), "api.ZONE", "a.grpc.ZONE"))
		w.expectCNAMEs(w.cnames(w.target("shared"), "a.grpc.ZONE"), withoutSets)
	})
})
