package integration

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// yamlBlock matches a page's YAML code block, which is indented inside a list.
var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// unservedKinds are the kinds whose CRDs are not installed. The value is the
// module under test/interop that applies them, or the reason why they are not
// applied to a cluster.
var unservedKinds = map[string]string{
	"Application":      "health",
	"ClusterIssuer":    "certmanager",
	"Certificate":      "certmanager",
	"Canary":           "flagger",
	"MetricTemplate":   "flagger",
	"AnalysisTemplate": "flagger, which runs its queries",
	"ScaledObject":     "flagger, which runs its query",
	"DNSEndpoint":      "externaldns",
	"Issuer":           "certmanager",
	"ServiceImport":    "its specs install a CRD of their own",
	"Kustomization":    "health; also a file that kustomize reads",
}

var _ = Describe("the documentation", users, func() {
	// A code block on a page is part of a sample, or a complete manifest.
	It("contains only manifests that the API server accepts", func(ctx SpecContext) {
		env := newEnvironment()
		config := readFiles("../../config", ".yaml")
		manifests := readFiles(samplesDir, ".yaml")
		for path, text := range readFiles("../../docs", ".md") {
			for i, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
				shown := strings.TrimPrefix(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n")
				isPartOf := func(file string) bool { return strings.Contains(file, shown) }
				if !slices.ContainsFunc(slices.Collect(maps.Values(config)), isPartOf) {
					manifests[fmt.Sprintf("%s, block %d", path, i)] = shown
				}
			}
		}
		applied := 0
		for source, text := range manifests {
			for _, object := range parseManifests(text, source) {
				if env.dryRun(ctx, object, source) {
					applied++
				}
			}
		}
		Expect(applied).To(BeNumerically(">", 100))
	})
})

// readFiles returns the files with an extension in a directory, by path.
func readFiles(dir, extension string) map[string]string {
	GinkgoHelper()
	files, tree := map[string]string{}, os.DirFS(dir)
	Expect(fs.WalkDir(tree, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != extension {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		files[filepath.Join(dir, path)] = string(text)
		return err
	})).To(Succeed())
	return files
}

// parseManifests returns the objects in a YAML text. It skips documents with
// neither a kind nor a version, such as Helm values or workflows.
func parseManifests(text, source string) []*unstructured.Unstructured {
	GinkgoHelper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed(), source)
		if object.GetKind() == "" && object.GetAPIVersion() == "" {
			continue
		}
		Expect(object.GetKind()).NotTo(BeEmpty(), "%s: kind or apiVersion is missing:\n%s", source, document)
		Expect(object.GetAPIVersion()).NotTo(BeEmpty(), "%s: kind or apiVersion is missing:\n%s", source, document)
		objects = append(objects, object)
	}
	return objects
}

// dryRun applies an object as a dry run, in the namespace of the environment
// because the object's own namespace may not exist. It reports whether the API
// server serves the kind.
func (env *environment) dryRun(ctx SpecContext, object *unstructured.Unstructured, source string) bool {
	GinkgoHelper()
	mapping, err := kube.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		Expect(unservedKinds).To(HaveKey(object.GetKind()), source)
		return false
	}
	Expect(err).NotTo(HaveOccurred(), source)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(env.namespace)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(kube), metav1.FieldValidationStrict)
	Expect(strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("docs"), client.ForceOwnership)).To(Succeed(), "%s: %s %s", source, object.GetKind(), object.GetName())
	return true
}
