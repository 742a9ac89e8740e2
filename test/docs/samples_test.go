package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sampleFiles returns the manifests that pages can show parts of, by path.
func sampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files, repository := map[string]string{}, os.DirFS(root)
	for _, directory := range []string{"config", "charts/tunnel-gateway/files"} {
		err := fs.WalkDir(repository, directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" {
				return err
			}
			text, err := fs.ReadFile(repository, path)
			files[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestYAMLOnThePagesIsTested(t *testing.T) {
	// A YAML block must be an exact part of a file that a test applies. It can also be a
	// complete manifest, which the integration tests apply, or chart values, which the
	// chart tests render. A complete manifest in a guide is only sufficient if a spec
	// follows the guide.
	files, followed := sampleFiles(t), followedGuides(t)
	for _, page := range pages(t) {
		guide := strings.HasPrefix(page.Path, "docs/guides/")
		for _, block := range page.Blocks("yaml") {
			isTested := isPartOf(block, files) || (!guide || followed[filepath.Base(page.Path)]) && isManifest(block) || !guide && isChartValues(t, block)
			if !isTested {
				t.Errorf("%s contains YAML that is not tested; move it to a file under config:\n%s", page.Path, block)
			}
		}
	}
}

// followedGuide matches the name of a guide whose manifests a spec applies.
var followedGuide = regexp.MustCompile(`env\.readGuide\("([^"]+)"`)

// followedGuides returns the names of the guides whose manifests the integration tests
// apply.
func followedGuides(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test", "integration", "guides_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	followed := map[string]bool{}
	for _, match := range followedGuide.FindAllSubmatch(text, -1) {
		followed[string(match[1])] = true
	}
	return followed
}

// isPartOf reports whether a file contains the block.
func isPartOf(block string, files map[string]string) bool {
	for _, text := range files {
		if strings.Contains(text, block) {
			return true
		}
	}
	return false
}

// isManifest reports whether every YAML document in a block is a Kubernetes object.
func isManifest(block string) bool {
	for document := range strings.SplitSeq(block, "\n---\n") {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.APIVersion == "" || object.Kind == "" {
			return false
		}
	}
	return true
}

// isChartValues reports whether the chart has all of a block's top-level values.
func isChartValues(t *testing.T, block string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "charts", "tunnel-gateway", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all, shown map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(block), &shown); err != nil {
		return false
	}
	for name := range shown {
		if _, ok := all[name]; !ok {
			return false
		}
	}
	return true
}

func TestEverySampleHasALink(t *testing.T) {
	linked := map[string]bool{}
	var text strings.Builder
	for _, page := range pages(t) {
		text.Write(page.source)
		for _, link := range page.Links() {
			if u, err := url.Parse(link); err == nil && u.Scheme == "" {
				linked[filepath.Join(filepath.Dir(page.Path), u.Path)] = true
			}
		}
	}
	for path := range sampleFiles(t) {
		directory := filepath.Dir(path)
		if strings.HasPrefix(path, "config/samples/") && !linked[path] && !linked[directory] && !strings.Contains(text.String(), path) {
			t.Errorf("no page links to or names %s", path)
		}
	}
}
