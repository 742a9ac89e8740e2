package certmanager

import (
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
	Eventually(gatewaySays).WithArguments(gateway("platform", "parent")).Should(HaveExactElements(setServes, serves))
	for _, team := range teams {
		Eventually(setSays).WithArguments(set(team, team)).Should(HaveExactElements(setServes, serves))
		Eventually(w.get).WithArguments("platform/parent", team+".com", "/").Should(Equal("ping." + team))
	}
}

// secretVersion returns the version of the Secret with the team's certificate,
// which changes with every write.
func secretVersion(team string) string {
	GinkgoHelper()
	return fresh(secret(team, team+"-tls")).ResourceVersion
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
		versions := map[string]string{"foo": secretVersion("foo"), "bar": secretVersion("bar")}

		By("moving while the Ingresses still serve")
		install(migrated[2:]...)
		w.expectServed()
		for _, team := range teams {
			Expect(owner(team, team+"-tls")).To(Equal("Ingress " + team))
			Expect(secretVersion(team)).To(Equal(versions[team]))
		}
		seen := watchStatuses("platform", "foo", "bar")
		seen.settle()
		seen.forget()
		w.edge.ResetRequests()

		By("deleting the Ingresses, with which their Certificates go")
		remove(read(ingresses)...)
		for _, team := range teams {
			Eventually(ready).WithArguments(team, team+"-tls").Should(Equal("none"))
			Expect(secretVersion(team)).To(Equal(versions[team]), "the Secret stays")
		}
		seen.settle()
		Expect(ready("foo", "foo-tls")).To(Equal("none"), "cert-manager does not look at the ListenerSet by itself")

		By("touching the ListenerSets")
		touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/moved":"true"}}}`))
		for _, team := range teams {
			Expect(kube.Patch(ctx, set(team, team), touch)).To(Succeed())
			Eventually(ready).WithArguments(team, team+"-tls").Should(Equal("True"))
			Expect(owner(team, team+"-tls")).To(Equal("ListenerSet " + team))
			Expect(signedBy(team, team+"-tls")).To(Equal("ClusterIssuer ca-issuer"))
		}
		seen.settle()
		Expect(w.pushes()).To(BeZero())
		for _, object := range []client.Object{gateway("platform", "parent"), set("foo", "foo"), set("bar", "bar")} {
			Expect(seen.of(object)).To(HaveLen(1), key(object))
		}
		w.expectServed()
	})
})
