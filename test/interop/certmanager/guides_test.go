package certmanager

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

var _ = Describe("the guides", func() {
	DescribeTable("show what is in the samples that are applied here, word for word", func(guide, folder string) {
		text, err := os.ReadFile(filepath.Join(repository, "docs", "guides", guide))
		Expect(err).NotTo(HaveOccurred())
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		Expect(blocks).NotTo(BeEmpty())
		var files []string
		for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
			found, err := filepath.Glob(filepath.Join(samples, folder, pattern))
			Expect(err).NotTo(HaveOccurred())
			files = append(files, found...)
		}
		var all strings.Builder
		for _, file := range files {
			sample, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			all.Write(sample)
		}
		for _, block := range blocks {
			Expect(all.String()).To(ContainSubstring(block[1]))
		}
	},
		Entry("about cert-manager", "cert-manager.md", "cert-manager"),
		Entry("about the migration", "migration-from-ingress.md", "migration"),
	)

	It("have no manifest that is not applied", func() {
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
