package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("with other DNS settings, the controller", records, func() {
	It("makes no DNS call with mode Off", func(ctx SpecContext) {
		env := newDNSEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Mode = ptr.To(v1alpha1.DNSOff) })
		env.start()
		g := env.serve("shared", "a.example.com")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		Expect(env.zoneRequests()).To(BeEmpty())
		Expect(env.hasSigningKey()).To(BeFalse())
		Expect(dnsCondition(g)()).To(Equal("none"))

		By("managing the zone, and no longer managing it")
		env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Mode = ptr.To(v1alpha1.DNSManage) })
		Eventually(dnsCondition(g)).Should(Equal(published))
		Expect(env.hasSigningKey()).To(BeTrue())
		env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Mode = ptr.To(v1alpha1.DNSOff) })
		Eventually(dnsCondition(g)).Should(Equal("none"))
		env.cloudflare.ResetRequests()
		env.delete(g)
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.zoneRequests()).To(BeEmpty())
		Expect(env.names()).To(ConsistOf("a.example.com"))
	})

	It("only reports with a token that can only read", func(ctx SpecContext) {
		token := &v1alpha1.SecretKeyReference{Name: "dns-token"}
		env := newDNSEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.DNS.Mode, s.DNS.APIToken = ptr.To(v1alpha1.DNSObserve), token
		})
		grant := func(token string, permissions ...simulator.Permission) {
			env.cloudflare.Restrict(token, simulator.Grant{Zones: []string{env.zone}, Permissions: permissions})
		}
		env.cloudflare.Restrict("token", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
		grant("reader", simulator.ZoneRead, simulator.DNSRead)
		grant("writer", simulator.ZoneRead, simulator.DNSEdit)
		secret := &corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, token.Name), Data: map[string][]byte{"token": []byte("reader")}}
		env.create(secret)
		env.start()
		g := env.serve("shared", "a.example.com", "b.example.com", "c.d.example.com")
		Eventually(dnsCondition(g)).Should(Equal("False Pending"))
		Eventually(gatewayCondition(g, edgeCertificateReady)).Should(Equal("Unknown NotChecked"))
		Expect(env.records()).To(BeEmpty())
		Expect(env.hasSigningKey()).To(BeFalse())

		By("managing the zone, for which the permission is missing")
		env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Mode = ptr.To(v1alpha1.DNSManage) })
		Eventually(dnsCondition(g)).Should(Equal("False Forbidden"))
		Expect(env.records()).To(BeEmpty())
		Expect(programmed(g)()).To(Equal("True Programmed"))

		By("replacing the token")
		update(secret, func(s *corev1.Secret) { s.Data["token"] = []byte("writer") })
		Eventually(dnsCondition(g)).Should(Equal(published))
		Expect(env.names()).To(ConsistOf("a.example.com", "b.example.com", "c.d.example.com"))

		By("observing a record that an administrator creates")
		env.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Mode = ptr.To(v1alpha1.DNSObserve) })
		env.waitUntilIdle(ctx)
		writes := env.zoneWrites()
		external := env.serve("other", "external.example.com")
		Eventually(dnsCondition(external)).Should(Equal("False Pending"))
		env.addRecord("external.example.com", "CNAME", env.tunnel("other")+".cfargotunnel.com")
		env.stop() // the next read of the zone would follow after ten minutes
		env.start()
		Eventually(dnsCondition(external)).Should(Equal(published))
		Expect(env.zoneWrites()).To(Equal(writes))
	})

	It("publishes only hostnames that the annotation of the namespace permits", func() {
		env := newDNSEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.Hostnames = &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)}
		})
		permit(env.namespace, ptr.To("a.example.com"))
		env.start()
		g := env.serve("shared", "a.example.com", "b.example.com")
		team := env.team("team", ptr.To("team.example.com"), "team.example.com")
		Eventually(listenerSetCondition(team, dnsReady)).Should(Equal(published))
		Eventually(dnsCondition(g)).Should(Equal("False HostnameNotPermitted"))
		Expect(env.names()).To(ConsistOf("a.example.com", "team.example.com"))
		Expect(conditionMessage(latest(g).Status.Conditions, dnsReady)).To(ContainSubstring("b.example.com: "))
	})
})
