package externaldns

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// propagation is how long the nameservers take to notice a change, at most.
const propagation = 3 * time.Second

var _ = Describe("the handover of records", func() {
	It("from external-dns to an installation changes no answer", func(ctx SpecContext) {
		e := newEnvironment()
		e.setMode("Manage", "home.ZONE")
		e.apply(managedGateway(listener("home", "home.ZONE")) + route("PLATFORM/home", "{name: managed}"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "managed")).Should(Equal(accepted))
		target := e.managedTarget()
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		delayRecords(propagation)
		check := e.keepLookingUp("home.ZONE", target)

		By("managing the record's zone, and adopting the record")
		e.setMode("Manage")
		e.adopt(ctx, "home.ZONE")
		mark := e.comment("home.ZONE")
		Expect(mark).To(HavePrefix("tgw managed "))
		Eventually(e.dnsReady).Should(Equal("True Published"))

		By("deleting the TXT record of external-dns, which then changes nothing")
		e.deleteOwner("home.ZONE")
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		Expect(e.comment("home.ZONE")).To(Equal(mark))
		check()

		By("deleting the route, after which the installation deletes the record")
		e.deleteObject("HTTPRoute", "PLATFORM/home")
		Eventually(func() []string { return e.dns.recordsOfType("!TXT") }, managedTimeout).Should(BeEmpty())
	})

	It("from external-dns changes no answer either if external-dns still runs, but the mark disappears", func(ctx SpecContext) {
		e := newEnvironment()
		e.setMode("Manage", "home.ZONE")
		e.apply(managedGateway(listener("home", "home.ZONE")) + route("PLATFORM/home", "{name: managed}"))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "managed")).Should(Equal(accepted))
		target := e.managedTarget()
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		delayRecords(propagation)
		check := e.keepLookingUp("home.ZONE", target)
		e.setMode("Manage")
		e.adopt(ctx, "home.ZONE")
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		Expect(e.comment("home.ZONE")).To(BeEmpty(), "external-dns removes comments of its records")

		By("deleting the TXT record of external-dns, and adopting the record again")
		e.deleteOwner("home.ZONE")
		e.adopt(ctx, "home.ZONE")
		mark := e.comment("home.ZONE")
		Expect(mark).To(HavePrefix("tgw managed "))
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		Expect(e.comment("home.ZONE")).To(Equal(mark))
		check()
	})

	It("from an installation to external-dns changes no answer", func() {
		e := newEnvironment()
		e.setMode("Manage")
		e.apply(managedGateway(listener("home", "home.ZONE")) + route("PLATFORM/home", "{name: managed}"))
		target := e.managedTarget()
		Eventually(e.dnsReady).Should(Equal("True Published"))
		delayRecords(propagation)
		check := e.keepLookingUp("home.ZONE", target)

		By("creating the TXT record of external-dns, and excluding the hostname")
		e.dns.addRecord(record{e.expand("edns-cname.home.ZONE"), "TXT", `"heritage=external-dns,external-dns/owner=my-cluster"`, false})
		e.setMode("Manage", "home.ZONE")
		Eventually(func() string { return e.comment("home.ZONE") }).Should(BeEmpty())
		e.expectCNAMEs(e.cnames(target, "home.ZONE"))
		check()

		By("deleting the route, after which external-dns deletes the record")
		e.deleteObject("HTTPRoute", "PLATFORM/home")
		e.expectCNAMEs(nil)
	})
})

// deleteOwner deletes the TXT record that makes external-dns the owner of the name's CNAME.
func (e *environment) deleteOwner(name string) {
	GinkgoHelper()
	owner := e.expand("edns-cname." + name)
	var found []zones.Record
	for _, r := range database.Records(e.dns.ids[0]) {
		if r.Name == owner {
			found = append(found, r)
		}
	}
	Expect(found).To(HaveLen(1))
	Expect(database.Delete(e.dns.ids[0], found[0].ID)).To(Succeed())
}
