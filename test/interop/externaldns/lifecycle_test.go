package externaldns

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("external-dns as it runs in a cluster", func() {
	It("follows events: records come and go with routes, ListenerSets and Gateways", func() {
		w := newWorld()
		w.run()
		records := func() []string { return w.zones.list("!TXT") }

		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway) +
			listenerSet("TEAM/set", listener("one", "one.ZONE"), listener("two", "two.ZONE")) +
			route("TEAM/one", teamSet, "one.ZONE") + route("TEAM/two", teamSet, "two.ZONE"))
		tunnel := w.target("shared")
		Eventually(records).Should(ConsistOf(w.cnames(tunnel, "home.ZONE", "one.ZONE", "two.ZONE")))

		By("deleting a route")
		w.delete("HTTPRoute", "TEAM/one")
		Eventually(records).Should(ConsistOf(w.cnames(tunnel, "home.ZONE", "two.ZONE")))

		By("deleting the ListenerSet, while its route stays")
		w.delete("ListenerSet", "TEAM/set")
		Eventually(records).Should(ConsistOf(w.cnames(tunnel, "home.ZONE")))

		By("making the ListenerSet anew")
		w.apply(listenerSet("TEAM/set", listener("two", "two.ZONE")))
		Eventually(records).Should(ConsistOf(w.cnames(tunnel, "home.ZONE", "two.ZONE")))

		By("deleting the Gateway")
		w.delete("Gateway", "PLATFORM/shared")
		Eventually(records).Should(BeEmpty())
		Expect(w.zones.list("TXT")).To(BeEmpty())
	})
})

var _ = Describe("records", func() {
	It("that are not its own are left alone, even when a route wants the name", func() {
		w := newWorld()
		byHand := []record{{w.text("home.ZONE"), "CNAME", "elsewhere.example.net", true}, {w.text("other.ZONE"), "A", "192.0.2.1", false}}
		for _, r := range byHand {
			w.zones.add(r)
		}
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE"), listener("new", "new.ZONE")) + route("PLATFORM/all", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/all", "shared")).Should(Equal(accepted))
		w.expectCNAMEs(append(w.cnames(w.target("shared"), "new.ZONE"), byHand[0].String(), byHand[1].String()))

		By("another owner, who neither changes nor deletes the first's")
		w.delete("HTTPRoute", "PLATFORM/all")
		w.expectCNAMEs(append(w.cnames(w.target("shared"), "new.ZONE"), byHand[0].String(), byHand[1].String()),
			"!--txt-owner-id=my-cluster", "--txt-owner-id=another")
		w.expectCNAMEs([]string{byHand[0].String(), byHand[1].String()})
	})

	It("become its own by a TXT record, and are changed in one call", func() {
		w := newWorld()
		byHand := record{w.text("home.ZONE"), "CNAME", "elsewhere.example.net", true}
		w.zones.add(byHand)
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		w.expectCNAMEs([]string{byHand.String()})
		calls := w.zones.changes()

		w.zones.add(record{"edns-cname." + byHand.Name, "TXT", `"heritage=external-dns,external-dns/owner=my-cluster"`, false})
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"))
		Expect(w.zones.changes()).To(Equal(calls + 1))
		Expect(w.zones.list("TXT")).To(HaveLen(1))
	})

	It("become its own without a change when they lead to the tunnel already", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		byHand := record{w.text("home.ZONE"), "CNAME", w.target("shared"), true}
		w.zones.add(byHand)
		w.zones.add(record{"edns-cname." + byHand.Name, "TXT", `"heritage=external-dns,external-dns/owner=my-cluster"`, false})
		log, err := w.sync()
		Expect(err).NotTo(HaveOccurred())
		Expect(log).NotTo(ContainSubstring("Changing record"))

		By("deleting the route, with which they go as its own do")
		w.delete("HTTPRoute", "PLATFORM/home")
		w.expectCNAMEs(nil)
	})

	It("stay behind under --policy=upsert-only", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		upsertOnly := []string{"!--policy=sync", "--policy=upsert-only"}
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"), upsertOnly...)
		tunnel := w.target("shared")
		w.delete("HTTPRoute", "PLATFORM/home")
		w.expectCNAMEs(w.cnames(tunnel, "home.ZONE"), upsertOnly...)
		w.expectCNAMEs(nil)
	})

	It("of a name that two Gateways serve lead to one of them", func() {
		w := newWorld()
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + gateway("PLATFORM/other", listener("home", "home.ZONE")) +
			route("PLATFORM/home", sharedGateway) + route("PLATFORM/other", "{name: other}"))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "PLATFORM/other", "other")).Should(Equal(accepted))
		one := min(w.target("shared"), w.target("other"))
		w.expectCNAMEs(w.cnames(one, "home.ZONE"))
	})
})

// waitForAnotherSecond waits until what is made now is younger than the object:
// the time of creation counts in seconds, and decides who owns a hostname.
func (w *world) waitForAnotherSecond(kind, name string) {
	GinkgoHelper()
	made := w.created(kind, name)
	Eventually(time.Now).Should(BeTemporally(">", made.Add(time.Second)))
}
