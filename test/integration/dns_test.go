package integration

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

var _ = Describe("with dns.mode Manage, the controller", records, func() {
	// Deletions wait for one read of the zone per minute, and a record that ends a wildcard waits
	// for a minute. So one spec contains all of them.
	It("creates, moves and deletes records, and never touches others", func(ctx SpecContext) {
		s := newRecordScenario()
		s.publish()
		s.restart(ctx)
		changed := s.change()
		s.expectChanged(changed)

		By("excluding a hostname")
		s.changeSettings(func(c *v1alpha1.TunnelConfigurationSpec) { c.DNS.Exclude = []string{"one.example.com"} })
		Eventually(s.comment).WithArguments("one.example.com").Should(BeEmpty())
		Expect(s.records()).To(ContainElement(s.cname("one.example.com", "other")))
	})

	It("distinguishes the zones of hostnames", func() {
		env := newDNSEnvironment()
		child := env.addZone(zones.Zone{Name: "child.example.com"})
		partial := env.addZone(zones.Zone{Name: "partial.test", Type: zones.Partial, Forwarded: []string{"a.partial.test"}})
		env.addZone(zones.Zone{Name: "pending.test", Status: zones.Pending})
		env.addZone(zones.Zone{Name: "elsewhere.test", Account: "another-account"})
		full := env.addZone(zones.Zone{Name: "full.test", RecordQuota: 10})
		for i := range 9 {
			name, kind, content := string(rune('a'+i))+".full.test", "TXT", "used"
			_, err := env.database.Create(full, zones.Fields{Name: &name, Type: &kind, Content: &content})
			Expect(err).NotTo(HaveOccurred())
		}
		env.addRecord("delegated.example.com", "NS", "ns.example.net")
		env.start()
		env.create(env.gateway("shared", "shared.example.com"))
		want := map[string]string{
			"example.com": published, "*.wild.example.com": published, "a.wild.example.com": published, "a.child.example.com": published,
			"a.partial.test": published, "a.delegated.example.com": "False NoZone", "a.pending.test": "False NoZone",
			"a.elsewhere.test": "False NoZone", "a.unlisted.test": "False NoZone", "new.full.test": "False QuotaExceeded",
		}
		sets := env.hostnameSets(slices.Sorted(maps.Keys(want))...)
		Eventually(conditionsOf(sets, dnsReady)).Should(Equal(want))
		Expect(env.records()).To(ConsistOf(
			env.cname("example.com", "shared"), env.cname("*.wild.example.com", "shared"), env.cname("a.wild.example.com", "shared"),
			"delegated.example.com NS ns.example.net"))
		Expect(env.recordsIn(child)).To(ConsistOf(env.cname("a.child.example.com", "shared")))
		Expect(env.recordsIn(partial)).To(ConsistOf(env.cname("a.partial.test", "shared")))
		Expect(env.recordsIn(full)).To(HaveLen(9))
		for _, host := range []string{"example.com", "a.wild.example.com", "x.y.wild.example.com", "a.child.example.com", "a.partial.test"} {
			Expect(env.request(host)).To(BeElementOf("web", "404"), host)
		}

		By("comparing the hostnames with the certificates of the edge")
		covered := conditionsOf(map[string]*gatewayv1.ListenerSet{"example.com": sets["example.com"], "a.wild.example.com": sets["a.wild.example.com"]}, edgeCertificateReady)
		Eventually(covered).Should(Equal(map[string]string{"example.com": "True Covered", "a.wild.example.com": "False NotCovered"}))
		Expect(conditionMessage(latest(sets["a.wild.example.com"]).Status.Conditions, edgeCertificateReady)).To(ContainSubstring("*.wild.example.com"))
	})
})

// addZone adds a zone of the controllers' account, unless it has another one, and lists it in
// the settings. It returns the zone's ID.
func (env *dnsEnvironment) addZone(z zones.Zone) string {
	GinkgoHelper()
	if z.Account == "" {
		z.Account = dnsAccount
	}
	env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DNS.Zones = append(s.DNS.Zones, v1alpha1.DNSZone{Name: z.Name})
	})
	return env.database.Add(z)
}

// record returns the record of example.com with the name, which must be its only one.
func (env *dnsEnvironment) record(name string) zones.Record {
	GinkgoHelper()
	all := env.database.Records(env.zone)
	i := slices.IndexFunc(all, func(r zones.Record) bool { return r.Name == name })
	Expect(i).To(BeNumerically(">=", 0), "%s has no record", name)
	return all[i]
}

func (env *dnsEnvironment) recordID(name string) string { return env.record(name).ID }

func (env *dnsEnvironment) comment(name string) string { return env.record(name).Comment }

// expectMarks checks that the records are proxied and have different comments that name the
// installation, which a Free zone accepts.
func (env *dnsEnvironment) expectMarks(names ...string) {
	GinkgoHelper()
	marks := map[string]bool{}
	for _, name := range names {
		r := env.record(name)
		Expect(r.Proxied).To(BeTrue(), name)
		Expect(r.Comment).To(MatchRegexp(`^tgw %s [a-z2-7]{24}$`, env.namespace), name)
		marks[r.Comment] = true
	}
	Expect(marks).To(HaveLen(len(names)))
}
