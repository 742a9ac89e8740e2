package externaldns

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a running external-dns", func() {
	It("creates and deletes records with routes, ListenerSets and Gateways", func() {
		e := newEnvironment()
		e.startExternalDNS()
		records := func() []string { return e.dns.recordsOfType("!TXT") }

		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway) +
			listenerSet("TEAM/set", listener("one", "one.ZONE"), listener("two", "two.ZONE")) +
			route("TEAM/one", teamSet, "one.ZONE") + route("TEAM/two", teamSet, "two.ZONE"))
		tunnel := e.tunnelTarget("shared")
		Eventually(records).Should(ConsistOf(e.cnames(tunnel, "home.ZONE", "one.ZONE", "two.ZONE")))

		By("deleting a route")
		e.deleteObject("HTTPRoute", "TEAM/one")
		Eventually(records).Should(ConsistOf(e.cnames(tunnel, "home.ZONE", "two.ZONE")))

		By("deleting the ListenerSet but not its route")
		e.deleteObject("ListenerSet", "TEAM/set")
		Eventually(records).Should(ConsistOf(e.cnames(tunnel, "home.ZONE")))

		By("recreating the ListenerSet")
		e.apply(listenerSet("TEAM/set", listener("two", "two.ZONE")))
		Eventually(records).Should(ConsistOf(e.cnames(tunnel, "home.ZONE", "two.ZONE")))

		By("deleting the Gateway")
		e.deleteObject("Gateway", "PLATFORM/shared")
		Eventually(records).Should(BeEmpty())
		Expect(e.dns.recordsOfType("TXT")).To(BeEmpty())
	})
})

var _ = Describe("records", func() {
	It("without an owner never change", func() {
		e := newEnvironment()
		manual := []record{{e.expand("home.ZONE"), "CNAME", "elsewhere.example.net", true}, {e.expand("other.ZONE"), "A", "192.0.2.1", false}}
		for _, r := range manual {
			e.dns.addRecord(r)
		}
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("new", "new.ZONE")) + route("PLATFORM/all", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/all", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(append(e.cnames(e.tunnelTarget("shared"), "new.ZONE"), manual[0].String(), manual[1].String()))

		By("running external-dns with another owner ID")
		e.deleteObject("HTTPRoute", "PLATFORM/all")
		e.expectCNAMEs(append(e.cnames(e.tunnelTarget("shared"), "new.ZONE"), manual[0].String(), manual[1].String()),
			"!--txt-owner-id=my-cluster", "--txt-owner-id=another")
		e.expectCNAMEs([]string{manual[0].String(), manual[1].String()})
	})

	It("without an owner are adopted through a TXT record", func() {
		e := newEnvironment()
		manual := record{e.expand("home.ZONE"), "CNAME", "elsewhere.example.net", true}
		e.dns.addRecord(manual)
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		e.expectCNAMEs([]string{manual.String()})
		writes := e.dns.writeCount()

		e.dns.addRecord(record{"edns-cname." + manual.Name, "TXT", `"heritage=external-dns,external-dns/owner=my-cluster"`, false})
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"))
		Expect(e.dns.writeCount()).To(Equal(writes + 1))
		Expect(e.dns.recordsOfType("TXT")).To(HaveLen(1))
	})

	It("without an owner are not updated if they are correct", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		manual := record{e.expand("home.ZONE"), "CNAME", e.tunnelTarget("shared"), true}
		e.dns.addRecord(manual)
		e.dns.addRecord(record{"edns-cname." + manual.Name, "TXT", `"heritage=external-dns,external-dns/owner=my-cluster"`, false})
		log, err := e.runOnce()
		Expect(err).NotTo(HaveOccurred())
		Expect(log).NotTo(ContainSubstring("Changing record"))

		By("deleting the route, after which external-dns deletes the adopted record")
		e.deleteObject("HTTPRoute", "PLATFORM/home")
		e.expectCNAMEs(nil)
	})

	It("remain after their route is deleted under --policy=upsert-only", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		upsertOnly := []string{"!--policy=sync", "--policy=upsert-only"}
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"), upsertOnly...)
		tunnel := e.tunnelTarget("shared")
		e.deleteObject("HTTPRoute", "PLATFORM/home")
		e.expectCNAMEs(e.cnames(tunnel, "home.ZONE"), upsertOnly...)
		e.expectCNAMEs(nil)
	})

	It("for a hostname of two Gateways lead to one of them", func() {
		e := newEnvironment()
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + gateway("PLATFORM/other", listener("home", "home.ZONE")) +
			route("PLATFORM/home", sharedGateway) + route("PLATFORM/other", "{name: other}"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/other", "other")).Should(Equal(accepted))
		target := min(e.tunnelTarget("shared"), e.tunnelTarget("other"))
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
	})
})

// waitForLaterTimestamp waits until new objects get a later creation timestamp than the
// object. The timestamp has a resolution of one second, and the older object owns a
// hostname.
func (e *environment) waitForLaterTimestamp(kind, name string) {
	GinkgoHelper()
	created := e.creationTime(kind, name)
	Eventually(time.Now).Should(BeTemporally(">", created.Add(time.Second)))
}
