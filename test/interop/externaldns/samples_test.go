package externaldns

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// newSampleEnvironment creates an environment for the samples, whose names are fixed.
func newSampleEnvironment() *environment {
	e := &environment{platform: "platform", zone: "example.com"}
	e.addZones(e.zone)
	return e
}

// applySamples applies the samples whose paths match the pattern.
func applySamples(pattern string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(samples, pattern))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		applyFile(context.Background(), file)
	}
}

// The specs follow the guide's order. Each adds objects to the cluster.
var _ = Describe("the samples", Ordered, func() {
	var e *environment
	BeforeAll(func() { e = newSampleEnvironment() })

	common := []string{"shared.example.com", "team-a.example.com", "shop.team-b.example.com"}

	It("for the demo get a record per hostname without conflict", func() {
		applySamples("*.yaml")
		Eventually(e.routeAcceptance("HTTPRoute", "platform/home", "shared")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "team-a/web", "team-a")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "team-b/shop", "team-b")).Should(Equal(accepted))
		Eventually(e.listenerAcceptance("ListenerSet", "team-b/team-b-late", "taken")).Should(Equal("False HostnameConflict"))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), common...))
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "shared.example.com"), withoutListenerSets)
	})

	It("for external-dns get records for targets, wildcards and two parents", func() {
		applySamples("external-dns/*.yaml")
		Eventually(e.routeAcceptance("HTTPRoute", "team-c/web", "team-c")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "team-d/all", "team-d")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "team-e/shop", "team-e")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "team-e/shop", "apps")).Should(Equal(accepted))
		records := e.cnames(e.tunnelTarget("shared"), append(common, "*.team-d.example.com")...)
		records = append(records, e.cnames("edge.example.net", "team-c.example.com")...)
		records = append(records, e.cnames(e.tunnelTarget("apps"), "shop.apps.example.com")...)
		e.expectCNAMEs(records)
		e.expectCNAMEs(append(e.cnames(e.tunnelTarget("shared"), "shared.example.com"),
			e.cnames(e.tunnelTarget("apps"), "shop.apps.example.com")...), withoutListenerSets)
	})
})
