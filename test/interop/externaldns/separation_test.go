package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// commentAnnotation is the annotation with which tenants set the comment of a record.
const commentAnnotation = "external-dns.kubernetes.io/cloudflare-record-comment"

var _ = Describe("external-dns and an installation that manages records", func() {
	It("share a zone if a label separates their Gateways", func() {
		e := newEnvironment()
		e.setMode("Manage")
		e.startExternalDNS(separated)
		e.apply(managedGateway(listener("one", "one.ZONE"), listener("two", "two.ZONE")) + route("PLATFORM/one", "{name: managed, sectionName: one}") +
			route("PLATFORM/two", "{name: managed, sectionName: two}") +
			labeledGateway("PLATFORM/shared", listener("three", "three.ZONE"), listener("four", "four.ZONE")) +
			route("PLATFORM/three", "{name: shared, sectionName: three}") + route("PLATFORM/four", "{name: shared, sectionName: four}"))
		records := func() []string { return e.dns.recordsOfType("!TXT") }
		managed, external := e.cnames(e.managedTarget(), "one.ZONE", "two.ZONE"), e.cnames(e.tunnelTarget("shared"), "three.ZONE", "four.ZONE")
		Eventually(records).Should(ConsistOf(append(managed, external...)))
		Eventually(e.dnsReady).Should(Equal("True Published"))
		owners := func() []string { return e.dns.recordsOfType("TXT") }
		Eventually(owners).Should(ConsistOf(
			HavePrefix(e.expand("edns-cname.three.ZONE")), HavePrefix(e.expand("edns-cname.four.ZONE"))))
		mark := e.comment("one.ZONE")
		Expect(mark).To(HavePrefix("tgw managed "))
		Expect(e.comment("three.ZONE")).To(BeEmpty())

		By("deleting a route of each")
		e.deleteObject("HTTPRoute", "PLATFORM/three")
		Eventually(records, managedTimeout).Should(ConsistOf(append(managed, external[1])))
		e.deleteObject("HTTPRoute", "PLATFORM/two")
		Eventually(records, managedTimeout).Should(ConsistOf(managed[0], external[1]))
		Expect(owners()).To(HaveLen(1))
		Expect(e.comment("one.ZONE")).To(Equal(mark))
	})

	It("keep each other's records without a label, and the installation reports them", func() {
		e := newEnvironment()
		e.setMode("Observe")
		e.apply(managedGateway(listener("home", "home.ZONE")) + route("PLATFORM/home", "{name: managed}") +
			gateway("PLATFORM/shared", listener("taken", "taken.ZONE")) + route("PLATFORM/taken", sharedGateway))
		external := append(e.cnames(e.managedTarget(), "home.ZONE"), e.cnames(e.tunnelTarget("shared"), "taken.ZONE")...)
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "managed")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/taken", "shared")).Should(Equal(accepted))
		e.expectCNAMEs(external)

		By("managing the zone, with a hostname that external-dns has published elsewhere, and a new one")
		e.setMode("Manage")
		e.apply(managedGateway(listener("home", "home.ZONE"), listener("taken", "taken.ZONE"), listener("new", "new.ZONE")))
		records := append(external, e.cnames(e.managedTarget(), "new.ZONE")...)
		Eventually(func() []string { return e.dns.recordsOfType("!TXT") }).Should(ConsistOf(records))
		Eventually(e.dnsReady).Should(Equal("False RecordConflict"))
		mark := e.comment("new.ZONE")
		e.expectCNAMEs(records)
		Expect(e.comment("new.ZONE")).To(Equal(mark))
		Expect(e.dns.recordsOfType("TXT")).To(HaveLen(2), "external-dns does not own the new record")

		By("deleting the hostnames of the installation, which deletes only its own record")
		e.apply(managedGateway(listener("other", "other.ZONE")))
		Eventually(func() []string { return e.dns.recordsOfType("!TXT") }, managedTimeout).Should(ConsistOf(
			append(external, e.cnames(e.managedTarget(), "other.ZONE")...)))
	})

	It("leave forged marks without effect", func() {
		e := newEnvironment()
		e.setMode("Manage")
		e.apply(managedGateway(listener("home", "home.ZONE"), listener("edited", "edited.ZONE")) + route("PLATFORM/managed", "{name: managed}") +
			labeledGateway("PLATFORM/shared", listener("copied", "copied.ZONE"), listener("invented", "invented.ZONE"), listener("wanted", "wanted.ZONE")) +
			route("PLATFORM/copied", sharedGateway, "copied.ZONE") + route("PLATFORM/invented", sharedGateway, "invented.ZONE") +
			route("PLATFORM/wanted", sharedGateway, "wanted.ZONE"))
		Eventually(e.dnsReady).Should(Equal("True Published"))
		mark := e.comment("home.ZONE")
		e.annotate("HTTPRoute", "PLATFORM/copied", commentAnnotation, mark)
		e.annotate("HTTPRoute", "PLATFORM/wanted", commentAnnotation, mark)
		e.annotate("HTTPRoute", "PLATFORM/invented", commentAnnotation, "tgw managed aaaaaaaaaaaaaaaaaaaaaaaa")
		for _, name := range []string{"copied", "invented", "wanted"} {
			Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/"+name, "shared")).Should(Equal(accepted))
		}
		log, err := e.runOnce(separated)
		Expect(err).NotTo(HaveOccurred(), log)
		Expect(e.comment("copied.ZONE")).To(Equal(mark), "external-dns writes the tenant's comment")
		Expect(e.comment("invented.ZONE")).To(HavePrefix("tgw managed "))

		By("editing the target of a record, and copying a mark by hand to a record of the same tunnel")
		elsewhere, name, kind, target, proxied := "elsewhere.example.net", e.expand("byhand.ZONE"), "CNAME", e.managedTarget(), true
		zone := e.dns.ids[0]
		_, err = database.Patch(zone, e.stored("edited.ZONE").ID, zones.Fields{Content: &elsewhere})
		Expect(err).NotTo(HaveOccurred())
		_, err = database.Create(zone, zones.Fields{Name: &name, Type: &kind, Content: &target, Proxied: &proxied, Comment: &mark})
		Expect(err).NotTo(HaveOccurred())
		forged := map[string]zones.Record{}
		for _, name := range []string{"copied.ZONE", "invented.ZONE", "wanted.ZONE", "edited.ZONE", "byhand.ZONE"} {
			forged[name] = e.stored(name)
		}

		By("wanting one of the forged names, and no other one")
		e.apply(managedGateway(listener("wanted", "wanted.ZONE")))
		Eventually(func() []string { return e.dns.recordsOfType("!TXT") }, managedTimeout).Should(HaveLen(len(forged)), "home.ZONE is deleted")
		Eventually(e.dnsReady).Should(Equal("False RecordConflict"))
		for name, before := range forged {
			Expect(e.stored(name)).To(Equal(before))
		}
	})
})
