package certmanager

import (
	"math/big"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ingresses = "migration/before/ingresses.yaml"

// migrated are the manifests of the Gateway API, and what they need.
var migrated = []string{
	"migration/00-existing.yaml", "migration/01-issuers.yaml",
	"migration/10-platform.yaml", "migration/20-team-foo.yaml", "migration/30-team-bar.yaml",
}

var teams = []string{"foo", "bar"}

// expectServed is for both hostnames of the samples.
func (w *world) expectServed() {
	GinkgoHelper()
	Eventually(gatewaySays).WithArguments(gateway("parent")).Should(HaveExactElements(setServes, serves))
	for _, team := range teams {
		Eventually(setSays).WithArguments(set(team, team)).Should(HaveExactElements(setServes, serves))
		Eventually(w.get).WithArguments("platform/parent", team+".com", "/").Should(Equal("ping." + team))
	}
}

var _ = Describe("the migration from Ingress", func() {
	It("serves both hostnames with certificates in an empty cluster", func() {
		w := sampleWorld()
		install(migrated...)
		w.expectServed()
		for _, team := range teams {
			Expect(signedBy(team, team+"-tls")).To(Equal("ClusterIssuer ca-issuer"))
			Expect(owner(team, team+"-tls")).To(Equal("ListenerSet " + team))
			Expect(leaf(team, team+"-tls").DNSNames).To(HaveExactElements(team + ".com"))
		}
	})

	It("takes over the certificates of the Ingresses, and keeps them when the Ingresses go", func(ctx SpecContext) {
		w := sampleWorld()
		install(migrated[:2]...)
		install(ingresses)
		for _, team := range teams {
			Eventually(ready).WithArguments(team, team+"-tls").Should(Equal("True"))
			Expect(owner(team, team+"-tls")).To(Equal("Ingress " + team))
		}
		serials := map[string]*big.Int{}
		for _, team := range teams {
			serials[team] = leaf(team, team+"-tls").SerialNumber
		}

		By("moving while the Ingresses still serve")
		install(migrated[2:]...)
		w.expectServed()
		for _, team := range teams {
			Expect(owner(team, team+"-tls")).To(Equal("Ingress " + team))
			Expect(leaf(team, team+"-tls").SerialNumber).To(Equal(serials[team]))
		}
		seen := watchStatuses("platform", "foo", "bar")
		seen.settle()
		seen.forget()
		w.edge.ResetRequests()

		By("deleting the Ingresses, with which their Certificates go")
		remove(read(ingresses)...)
		for _, team := range teams {
			Eventually(ready).WithArguments(team, team+"-tls").Should(Equal("none"))
			Expect(leaf(team, team+"-tls").SerialNumber).To(Equal(serials[team]), "the Secret stays")
		}
		seen.settle()
		Expect(ready("foo", "foo-tls")).To(Equal("none"), "cert-manager does not look at the ListenerSet by itself")

		By("touching the Gateway, once for all teams")
		touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/moved":"true"}}}`))
		Expect(kube.Patch(ctx, gateway("parent"), touch)).To(Succeed())
		for _, team := range teams {
			Eventually(ready).WithArguments(team, team+"-tls").Should(Equal("True"))
			Expect(owner(team, team+"-tls")).To(Equal("ListenerSet " + team))
			Expect(signedBy(team, team+"-tls")).To(Equal("ClusterIssuer ca-issuer"))
			Expect(leaf(team, team+"-tls").SerialNumber).To(Equal(serials[team]), "nothing is issued anew")
		}
		seen.settle()
		Expect(w.pushes()).To(BeZero())
		for _, object := range []client.Object{gateway("parent"), set("foo", "foo"), set("bar", "bar")} {
			Expect(seen.of(object)).To(HaveLen(1), key(object))
		}
		w.expectServed()
	})
})
