package certmanager

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the samples in the guides", func() {
	It("are all covered by the specs", func() {
		applied := append([]string{ingressSample}, migrationSamples...)
		for _, files := range [][]string{certManagerSamples, letsEncryptIssuers, {challengeSample, helmValues}} {
			applied = append(applied, files...)
		}
		for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
			for _, directory := range []string{"cert-manager", "migration"} {
				found, err := filepath.Glob(filepath.Join(samples, directory, pattern))
				Expect(err).NotTo(HaveOccurred())
				for _, file := range found {
					name, err := filepath.Rel(samples, file)
					Expect(err).NotTo(HaveOccurred())
					Expect(applied).To(ContainElement(name))
				}
			}
		}
	})
})
