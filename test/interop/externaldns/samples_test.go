package externaldns

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// sampleWorld is the world of the samples, whose names are fixed.
func sampleWorld() *world {
	w := &world{platform: "platform", name: "example.com"}
	w.serve(w.name)
	return w
}

func applySamples(pattern string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(samples, pattern))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		applyFile(context.Background(), file)
	}
}

// The specs stand in the order of the guide, and each adds to the cluster.
var _ = Describe("the samples", Ordered, func() {
	var w *world
	BeforeAll(func() { w = sampleWorld() })

	common := []string{"shared.example.com", "team-a.example.com", "shop.team-b.example.com"}

	It("of the demo get a record for each name that is served, and none for the team that came late", func() {
		applySamples("*.yaml")
		Eventually(w.attached("HTTPRoute", "platform/home", "shared")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "team-a/web", "team-a")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "team-b/shop", "team-b")).Should(Equal(accepted))
		Eventually(w.acceptedEntry("ListenerSet", "team-b/team-b-late", "taken")).Should(Equal("False HostnameConflict"))
		w.expectCNAMEs(w.cnames(w.target("shared"), common...))
		w.expectCNAMEs(w.cnames(w.target("shared"), "shared.example.com"), withoutSets)
	})

	It("of targets, wildcards and two parents get those records", func() {
		applySamples("external-dns/*.yaml")
		Eventually(w.attached("HTTPRoute", "team-c/web", "team-c")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "team-d/all", "team-d")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "team-e/shop", "team-e")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "team-e/shop", "apps")).Should(Equal(accepted))
		records := w.cnames(w.target("shared"), append(common, "*.team-d.example.com")...)
		records = append(records, w.cnames("edge.example.net", "team-c.example.com")...)
		records = append(records, w.cnames(w.target("apps"), "shop.apps.example.com")...)
		w.expectCNAMEs(records)
		w.expectCNAMEs(append(w.cnames(w.target("shared"), "shared.example.com"),
			w.cnames(w.target("apps"), "shop.apps.example.com")...), withoutSets)
	})
})
