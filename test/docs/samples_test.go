package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sources are the files of which pages show parts, by their paths.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files, repository := map[string]string{}, os.DirFS(root)
	for _, folder := range []string{"config", "charts/tunnel-gateway/files"} {
		err := fs.WalkDir(repository, folder, func(path string, entry fs.DirEntry, err error) error {
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

// TestYAML: what a page shows of a manifest is in a file that a test applies,
// word for word; or it is a whole manifest, which the integration tests apply; or
// values of the chart, whose tests render them. Guides show files only.
func TestYAML(t *testing.T) {
	files := sources(t)
	for _, page := range pages(t) {
		for _, block := range page.Blocks("yaml") {
			guide := strings.HasPrefix(page.Path, "docs/guides/")
			if !isOf(block, files) && (guide || !whole(block) && !areValues(t, block)) {
				t.Errorf("%s shows what is in no file under config:\n%s", page.Path, block)
			}
		}
	}
}

func isOf(block string, files map[string]string) bool {
	for _, text := range files {
		if strings.Contains(text, block) {
			return true
		}
	}
	return false
}

// whole reports whether every document of a block is an object of Kubernetes.
func whole(block string) bool {
	for document := range strings.SplitSeq(block, "\n---\n") {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.APIVersion == "" || object.Kind == "" {
			return false
		}
	}
	return true
}

// areValues reports whether the chart has all the values of a block.
func areValues(t *testing.T, block string) bool {
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

// TestEverySampleIsShown: a page leads to every sample.
func TestEverySampleIsShown(t *testing.T) {
	led := map[string]bool{}
	var text strings.Builder
	for _, page := range pages(t) {
		text.Write(page.source)
		for _, link := range page.Links() {
			if u, err := url.Parse(link); err == nil && u.Scheme == "" {
				led[filepath.Join(filepath.Dir(page.Path), u.Path)] = true
			}
		}
	}
	for path := range sources(t) {
		folder := filepath.Dir(path)
		if strings.HasPrefix(path, "config/samples/") && !led[path] && !led[folder] && !strings.Contains(text.String(), path) {
			t.Errorf("no page leads to %s", path)
		}
	}
}
