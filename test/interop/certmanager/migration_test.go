package certmanager

import (
	"math/big"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ingressSample = "migration/before/ingresses.yaml"

// migrationSamples are the manifests for the Gateway API and their prerequisites.
var migrationSamples = []string{
	"migration/00-existing.yaml", "migration/01-issuers.yaml",
	"migration/10-platform.yaml", "migration/20-team-foo.yaml", "migration/30-team-bar.yaml",
}

var migrationTeams = []string{"foo", "bar"}

// expectTeamsServed waits until the environment serves both teams' hostnames.
func (e *environment) expectTeamsServed() {
	GinkgoHelper()
	Eventually(gatewayConditions).WithArguments(sampleGateway("parent")).Should(HaveExactElements(setProgrammed, listenerProgrammed))
	for _, team := range migrationTeams {
		Eventually(listenerSetConditions).WithArguments(sampleListenerSet(team, team)).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Eventually(e.answer).WithArguments("platform/parent", team+".com", "/").Should(Equal("ping." + team))
	}
}

var _ = Describe("the migration from Ingress", func() {
	It("serves both hostnames with certificates in an empty cluster", func() {
		e := newSampleEnvironment()
		installSamples(migrationSamples...)
		e.expectTeamsServed()
		for _, team := range migrationTeams {
			Expect(signedBy(team, team+"-tls")).To(Equal("ClusterIssuer ca-issuer"))
			Expect(certificateOwner(team, team+"-tls")).To(Equal("ListenerSet " + team))
			Expect(storedCertificate(team, team+"-tls").DNSNames).To(HaveExactElements(team + ".com"))
		}
	})

	It("adopts the Ingresses' certificates and keeps them", func(ctx SpecContext) {
		e := newSampleEnvironment()
		installSamples(migrationSamples[:2]...)
		installSamples(ingressSample)
		for _, team := range migrationTeams {
			Eventually(readyStatus).WithArguments(team, team+"-tls").Should(Equal("True"))
			Expect(certificateOwner(team, team+"-tls")).To(Equal("Ingress " + team))
		}
		serials := map[string]*big.Int{}
		for _, team := range migrationTeams {
			serials[team] = storedCertificate(team, team+"-tls").SerialNumber
		}

		By("applying the new manifests while the Ingresses exist")
		installSamples(migrationSamples[2:]...)
		e.expectTeamsServed()
		for _, team := range migrationTeams {
			Expect(certificateOwner(team, team+"-tls")).To(Equal("Ingress " + team))
			Expect(storedCertificate(team, team+"-tls").SerialNumber).To(Equal(serials[team]))
		}
		history := watchStatuses("platform", "foo", "bar")
		history.waitUntilQuiet()
		history.reset()
		e.edge.ResetRequests()

		By("deleting the Ingresses, and with them their Certificates")
		deleteAll(readSample(ingressSample)...)
		for _, team := range migrationTeams {
			Eventually(readyStatus).WithArguments(team, team+"-tls").Should(Equal("none"))
			Expect(storedCertificate(team, team+"-tls").SerialNumber).To(Equal(serials[team]), "the Secret must not change")
		}
		history.waitUntilQuiet()
		Expect(readyStatus("foo", "foo-tls")).To(Equal("none"), "cert-manager does not reconcile the ListenerSet yet")

		By("annotating the Gateway, which makes cert-manager reconcile all ListenerSets")
		annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/moved":"true"}}}`))
		Expect(kube.Patch(ctx, sampleGateway("parent"), annotation)).To(Succeed())
		for _, team := range migrationTeams {
			Eventually(readyStatus).WithArguments(team, team+"-tls").Should(Equal("True"))
			Expect(certificateOwner(team, team+"-tls")).To(Equal("ListenerSet " + team))
			Expect(signedBy(team, team+"-tls")).To(Equal("ClusterIssuer ca-issuer"))
			Expect(storedCertificate(team, team+"-tls").SerialNumber).To(Equal(serials[team]), "cert-manager must not issue a new certificate")
		}
		history.waitUntilQuiet()
		Expect(e.pushes()).To(BeZero())
		for _, object := range []client.Object{sampleGateway("parent"), sampleListenerSet("foo", "foo"), sampleListenerSet("bar", "bar")} {
			Expect(history.statuses(object)).To(HaveLen(1), describe(object))
		}
		e.expectTeamsServed()
	})
})
