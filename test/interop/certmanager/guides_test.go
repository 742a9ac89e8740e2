package certmanager

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the samples of the guides", func() {
	It("are all applied here", func() {
		applied := append([]string{ingresses}, migrated...)
		for _, files := range [][]string{certManagerSamples, issuersOfLetsEncrypt, {challengeSample, helmValues}} {
			applied = append(applied, files...)
		}
		for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
			for _, folder := range []string{"cert-manager", "migration"} {
				found, err := filepath.Glob(filepath.Join(samples, folder, pattern))
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
