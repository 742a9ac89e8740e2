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

// yamlBlock is one of a page, which can be part of a list and so be indented.
var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// elsewhere are kinds whose CRDs are not in the cluster, and the module under
// test/interop that applies them, or what makes them no objects of a cluster.
var elsewhere = map[string]string{
	"Application":   "health",
	"ClusterIssuer": "certmanager",
	"Certificate":   "certmanager",
	"DNSEndpoint":   "externaldns",
	"Issuer":        "certmanager",
	"Kustomization": "health; and a file of kustomize",
}

var _ = Describe("the documentation", func() {
	// A block of a page is part of a sample, or stands for itself.
	It("shows manifests that the API server takes, and so are the samples", func(ctx SpecContext) {
		w := newWorld()
		config := texts("../../config", ".yaml")
		whole := texts(samples, ".yaml")
		for path, text := range texts("../../docs", ".md") {
			for i, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
				shown := strings.TrimPrefix(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n")
				isOf := func(file string) bool { return strings.Contains(file, shown) }
				if !slices.ContainsFunc(slices.Collect(maps.Values(config)), isOf) {
					whole[fmt.Sprintf("%s, block %d", path, i)] = shown
				}
			}
		}
		applied := 0
		for source, text := range whole {
			for _, object := range manifestsIn(text, source) {
				if w.dryRun(ctx, object, source) {
					applied++
				}
			}
		}
		Expect(applied).To(BeNumerically(">", 100))
	})
})

// texts returns the files of a kind in a folder, by their paths.
func texts(folder, extension string) map[string]string {
	GinkgoHelper()
	files, in := map[string]string{}, os.DirFS(folder)
	Expect(fs.WalkDir(in, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != extension {
			return err
		}
		text, err := fs.ReadFile(in, path)
		files[filepath.Join(folder, path)] = string(text)
		return err
	})).To(Succeed())
	return files
}

// manifestsIn returns the objects of a text. What has neither a kind nor a
// version is none: settings of Helm, or a workflow.
func manifestsIn(text, source string) []*unstructured.Unstructured {
	GinkgoHelper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed(), source)
		if object.GetKind() == "" && object.GetAPIVersion() == "" {
			continue
		}
		Expect(object.GetKind()).NotTo(BeEmpty(), "%s: half an object:\n%s", source, document)
		Expect(object.GetAPIVersion()).NotTo(BeEmpty(), "%s: half an object:\n%s", source, document)
		objects = append(objects, object)
	}
	return objects
}

// dryRun lets the API server check an object, in the world's namespace since its
// own may not be there, and reports whether it knows the kind.
func (w *world) dryRun(ctx SpecContext, object *unstructured.Unstructured, source string) bool {
	GinkgoHelper()
	mapping, err := kube.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		Expect(elsewhere).To(HaveKey(object.GetKind()), source)
		return false
	}
	Expect(err).NotTo(HaveOccurred(), source)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(w.namespace)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(kube), metav1.FieldValidationStrict)
	Expect(strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("docs"), client.ForceOwnership)).To(Succeed(), "%s: %s %s", source, object.GetKind(), object.GetName())
	return true
}
