package integration

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

var _ = Describe("with dns.mode Manage, the controller", records, func() {
	// Deletions wait for one read of the zone per minute, so one spec contains all of them.
	It("creates, moves and deletes records, and never touches others", func(ctx SpecContext) {
		env := newDNSEnvironment()
		foreign := []string{"taken.example.com A 192.0.2.1", "text.example.com TXT \"note\""}
		env.addRecord("taken.example.com", "A", "192.0.2.1")
		env.addRecord("text.example.com", "TXT", "note")
		certificate := env.tlsSecret("cert")
		env.create(certificate)
		env.start()

		By("publishing the hostnames of two Gateways")
		shared := env.serve("shared", "one.example.com", "two.example.com", "taken.example.com")
		old := env.serve("old", "old.example.com")
		secure := env.listenerSet("secure", "secure.example.com")
		secure.Spec.Listeners[0].Port, secure.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
		secure.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
		env.create(secure, env.route("secure", "web", listenerSetParent("secure")))
		Eventually(env.records).Should(ConsistOf(slices.Concat(foreign, []string{
			env.cname("one.example.com", "shared"), env.cname("two.example.com", "shared"),
			env.cname("secure.example.com", "shared"), env.cname("old.example.com", "old"),
		})))
		Eventually(dnsCondition(old)).Should(Equal(published))
		Eventually(listenerSetCondition(secure, dnsReady)).Should(Equal(published))
		Eventually(dnsCondition(shared)).Should(Equal("False RecordConflict"))
		Expect(conditionMessage(latest(shared).Status.Conditions, dnsReady)).To(And(
			ContainSubstring("taken.example.com: "), ContainSubstring("Adopt it, delete it, or exclude the hostname."),
			Not(ContainSubstring("192.0.2.1")), Not(ContainSubstring("one.example.com"))))
		Expect(programmed(shared)()).To(Equal("True Programmed"))
		for _, host := range []string{"one.example.com", "two.example.com", "secure.example.com", "old.example.com"} {
			Expect(env.request(host)).To(Equal("web"), host)
		}
		env.expectMarks("one.example.com", "two.example.com", "secure.example.com", "old.example.com")

		By("restarting")
		env.waitUntilIdle(ctx)
		env.stop()
		before := env.database.Records(env.zone)
		env.cloudflare.ResetRequests()
		env.start()
		Eventually(env.zoneRequests).ShouldNot(BeEmpty())
		env.waitUntilIdle(ctx)
		Expect(env.zoneWrites()).To(BeZero())
		Expect(env.database.Records(env.zone)).To(Equal(before))

		By("serving a hostname with a second Gateway")
		other := env.serve("other", "one.example.com")
		Eventually(dnsCondition(other)).Should(Equal("False HeldByAnotherGateway"))
		Expect(env.records()).To(ContainElement(env.cname("one.example.com", "shared")))

		By("deleting a route, the route of the shared hostname, a Gateway and a certificate")
		id := env.recordID("one.example.com")
		env.delete(env.sectionRoute("shared", 0), env.sectionRoute("shared", 1), old, certificate)
		Eventually(env.records).Should(ConsistOf(append(foreign, env.cname("one.example.com", "other"), env.cname("secure.example.com", "shared"))))
		Expect(env.recordID("one.example.com")).To(Equal(id), "the record was changed, not replaced")
		Eventually(dnsCondition(other)).Should(Equal(published))
		Eventually(env.tunnelPhase(old)).Should(Equal("no Tunnel"))
		env.expectRecordsDeletedBeforeTunnel()

		By("excluding a hostname")
		env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Exclude = []string{"one.example.com"} })
		Eventually(env.comment).WithArguments("one.example.com").Should(BeEmpty())
		Expect(env.records()).To(ContainElement(env.cname("one.example.com", "other")))
	})

	It("distinguishes the zones of hostnames", func() {
		env := newDNSEnvironment()
		child := env.addZone(zones.Zone{Name: "child.example.com"})
		partial := env.addZone(zones.Zone{Name: "partial.test", Type: zones.Partial, Forwarded: []string{"a.partial.test"}})
		env.addZone(zones.Zone{Name: "pending.test", Status: zones.Pending})
		env.addZone(zones.Zone{Name: "foreign.test", Account: "another-account"})
		full := env.addZone(zones.Zone{Name: "full.test", RecordQuota: 10})
		for i := range 9 {
			name, kind, content := string(rune('a'+i))+".full.test", "TXT", "used"
			_, err := env.database.Create(full, zones.Fields{Name: &name, Type: &kind, Content: &content})
			Expect(err).NotTo(HaveOccurred())
		}
		env.addRecord("delegated.example.com", "NS", "ns.example.net")
		env.start()
		env.create(env.environment.gateway("shared", "shared.example.com"))
		want := map[string]string{
			"example.com": published, "*.wild.example.com": published, "a.wild.example.com": published, "a.child.example.com": published,
			"a.partial.test": published, "a.delegated.example.com": "False NoZone", "a.pending.test": "False NoZone",
			"a.foreign.test": "False NoZone", "a.unlisted.test": "False NoZone", "new.full.test": "False QuotaExceeded",
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

// expectRecordsDeletedBeforeTunnel checks that a tunnel was deleted, and that the last change
// of records came before.
func (env *dnsEnvironment) expectRecordsDeletedBeforeTunnel() {
	GinkgoHelper()
	lastChange, deletion := -1, -1
	for i, r := range env.cloudflare.Requests() {
		switch {
		case strings.HasPrefix(r.Path, "/zones") && r.Method != http.MethodGet:
			lastChange = i
		case r.Method == http.MethodDelete && !strings.HasSuffix(r.Path, "/connections"):
			deletion = i
		}
	}
	Expect(deletion).To(BeNumerically(">", lastChange))
	Expect(lastChange).To(BeNumerically(">=", 0))
}
